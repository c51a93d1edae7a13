from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from harness_lab.settlements import Settlements, read
from harness_lab.settlements.readers import archives

DATA = Path(__file__).parents[2] / ".." / "shared" / "data" / "inspect-log"
SECRET = "the secret plan of Kim Doe"  # noqa: S105
SUMS = {"input": "input_tokens", "output": "output_tokens", "read": "input_tokens_cache_read"}


def usage(fresh: int, *, read: int = 0, write: int = 0, total: int | None = None, **more: Any) -> dict[str, Any]:
    counts = {
        "input_tokens": fresh,
        "output_tokens": 7,
        "input_tokens_cache_read": read,
        "input_tokens_cache_write": write,
    }
    return {**counts, "total_tokens": fresh + read + write + 7 if total is None else total, **more}


def sample(number: int = 1, *, used: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    used = usage(50, read=30, write=5) if used is None else used
    output = {"model": "m-2026", "usage": used, "time": 1.5, "choices": [{"message": {"content": SECRET}}]}
    event = {"event": "model", "timestamp": "2026-01-01T10:00:00+02:00", "model": "v/m", "output": output}
    whole = {
        "id": number,
        "epoch": 1,
        "input": SECRET,
        "model_usage": {"v/m": used},
        "total_time": 3.0,
        "working_time": 2.0,
    }
    return {**whole, "scores": {"match": {"value": "C"}}, "events": [event, {"event": "tool"}], **changes}


def log(*samples: object, status: str = "success", **config: Any) -> dict[str, Any]:
    about = {"run_id": "log-1", "task": "t", "model": "v/m", "config": config, "packages": {"inspect_ai": "0.3.1"}}
    stats = {"model_usage": {"v/m": usage(10**6)}}
    return {"version": 2, "status": status, "eval": {**about, "eval_id": "e"}, "stats": stats, "samples": list(samples)}


def read_log(tmp_path: Path, data: object) -> Settlements:
    (tmp_path / "log.json").write_text(json.dumps(data), encoding="utf-8")
    return read(tmp_path / "log.json")


def packed(place: Path, data: dict[str, Any], *, method: int = zipfile.ZIP_DEFLATED) -> Path:
    samples = data.pop("samples")
    with zipfile.ZipFile(place, "w", method) as archive:
        archive.writestr("_journal/start.json", json.dumps({"eval": data["eval"]}))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_1.json", json.dumps(one))
        archive.writestr("header.json", json.dumps(data))
    return place


def zstandard(place: Path) -> None:
    """Rewrite a zip of stored members so that its one sample is packed with method 93."""
    data = bytearray(place.read_bytes())
    with zipfile.ZipFile(place) as archive:
        old = archive.getinfo("samples/1_epoch_1.json")
        content, directory = archive.read(old), archive.start_dir
    small = pa.Codec("zstd").compress(content, asbytes=True)
    body = old.header_offset + 30 + len(old.filename)
    data[body : body + len(content)] = small + b"\0" * (len(content) - len(small))
    central = data.index(b"samples/1_epoch_1.json", directory) - 46
    for at, method, size in ((old.header_offset, 8, 18), (central, 10, 20)):
        data[at + method : at + method + 2] = struct.pack("<H", 93)
        data[at + size : at + size + 4] = struct.pack("<I", len(small))
    place.write_bytes(data)


def test_a_sample_becomes_one_node_and_its_calls(tmp_path) -> None:
    table = read_log(tmp_path, log(sample(), time_limit=60, token_limit=100))
    node = table.nodes.iloc[0]
    wanted = {"run": "log-1/1/1", "record_unit": "run", "task_kind": "t", "backend": "v", "served_model": "m-2026"}
    wanted |= {"input_total": 85, "input_fresh": 50, "cache_read": 30, "cache_write": 5, "output": 7, "calls": 1}
    wanted |= {"duration_ns": 3 * 10**9, "wait_ns": 10**9, "delivered": True, "score": 1.0, "outcome": "completed"}
    wanted |= {"ceiling_time_ns": 60 * 10**9, "ceiling_tokens": 100, "overspent": False, "client_version": "0.3.1"}
    assert node[list(wanted)].to_dict() == wanted
    assert node["start_ns"] == 1_767_254_400_000_000_000
    assert table.calls is not None
    assert table.calls[["input_total", "duration_ns"]].to_numpy().tolist() == [[85, 1_500_000_000]]


def test_rows_that_count_the_cached_part_inside_are_told_by_their_total(tmp_path) -> None:
    table = read_log(tmp_path, log(sample(used=usage(50, read=30, total=57))))
    assert table.nodes[["input_total", "input_fresh", "cache_read"]].iloc[0].tolist() == [50, 20, 30]
    assert "otherwise than the format says" in table.report.notes[0]


def test_a_total_that_fits_no_reading_leaves_the_tokens_unknown(tmp_path) -> None:
    table = read_log(tmp_path, log(sample(used=usage(50, read=30, total=70))))
    assert table.nodes[["input_total", "output"]].isna().all(axis=None)
    assert "whose total fits no reading" in table.report.notes[0]


@pytest.mark.parametrize(
    ("changes", "status", "expected"),
    [
        ({"limit": {"type": "token", "limit": 5}}, "success", ["exhausted", "limit", "budget-exhausted"]),
        ({"limit": {"type": "message", "limit": 5}}, "success", ["exhausted", "limit", "steps-exhausted"]),
        ({"limit": {"type": "working", "limit": 5}}, "success", ["timed_out", "limit", "time-exhausted"]),
        ({"limit": {"type": "cost", "limit": 5}}, "success", ["exhausted", "limit", "cost-exhausted"]),
        ({"limit": {"type": "operator", "limit": 1}}, "success", ["cancelled", "user", pd.NA]),
        ({"limit": {"type": "context", "limit": 1}}, "success", ["failed", "model", pd.NA]),
        ({"error": {"message": "APIConnectionError"}}, "error", ["failed", "infrastructure", pd.NA]),
        ({"scores": None}, "cancelled", ["cancelled", pd.NA, pd.NA]),
        ({"scores": None}, "started", ["unknown", pd.NA, pd.NA]),
        ({}, "cancelled", ["completed", "none", pd.NA]),
    ],
)
def test_limit_error_and_status_say_how_it_ended(tmp_path, changes, status, expected) -> None:
    node = read_log(tmp_path, log(sample(**changes), status=status)).nodes.iloc[0]
    assert node[["outcome", "cause", "stopped_by"]].tolist() == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("I", [0.0, False]), ("P", [0.5, pd.NA]), (0.25, [0.25, pd.NA]), (True, [1.0, True]), (SECRET, [pd.NA, pd.NA])],
)
def test_scores_fill_score_and_delivered(tmp_path, value: object, expected: list[object]) -> None:
    node = read_log(tmp_path, log(sample(scores={"s": {"value": value}}))).nodes.iloc[0]
    assert node[["score", "delivered"]].tolist() == expected


def test_a_packed_log_says_the_same_and_its_sums_are_not_added(tmp_path) -> None:
    plain = read_log(tmp_path, log(sample(1), sample(2))).nodes
    nodes = read(packed(tmp_path / "log.eval", log(sample(1), sample(2)))).nodes
    differing = ["source"]
    pd.testing.assert_frame_equal(nodes.drop(columns=differing), plain.drop(columns=differing))


def test_a_packed_log_that_never_ended_takes_the_start_of_its_journal(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"eval": log()["eval"]}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample(scores=None)))
    node = read(tmp_path / "log.eval").nodes.iloc[0]
    assert (node["run"], node["outcome"]) == ("log-1/1/1", "unknown")


def test_members_packed_with_zstandard_are_read(tmp_path) -> None:
    place = packed(tmp_path / "log.eval", log(sample(note="x" * 5_000)), method=zipfile.ZIP_STORED)
    zstandard(place)
    with zipfile.ZipFile(place) as archive:
        assert archive.getinfo("samples/1_epoch_1.json").compress_type == 93
    assert read(place).nodes["input_total"].tolist() == [85]


def test_a_member_that_unpacks_without_end_is_set_aside(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(archives, "MIN_TOTAL", 200_000)
    monkeypatch.setattr(archives, "MAX_FACTOR", 20)
    place = packed(tmp_path / "log.eval", log(sample(1), sample(2, bomb="0" * 5_000_000)))
    table = read(place)
    assert table.nodes["run"].tolist() == ["log-1/1/1"]
    assert table.report.set_aside[0].reason.startswith("sample: a member unpacks to more than")


def test_names_that_climb_out_of_an_archive_lead_nowhere(tmp_path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    place = packed(inner / "log.eval", log(sample()))
    with zipfile.ZipFile(place, "a") as archive:
        archive.writestr("samples/../../../evil.json", json.dumps(sample(9)))
        archive.writestr("/evil.json", "{}")
    assert len(read(place)) == 2  # the climbing name is a sample like any other, and nothing is written
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["inner", "log.eval"]


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"PK\x03\x04" + b"\xff" * 900])
def test_a_damaged_archive_is_set_aside(tmp_path, content: bytes) -> None:
    (tmp_path / "log.eval").write_bytes(content)
    assert "no zip archive that can be read" in read(tmp_path / "log.eval").report.set_aside[0].reason


def test_no_text_of_the_record_enters_the_table(tmp_path) -> None:
    table = read_log(tmp_path, log(sample(error={"message": SECRET}, limit=None)))
    assert table.calls is not None
    assert "Kim" not in table.nodes.to_json() + table.calls.to_json() + table.summary()


def recorded() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return (header, sample) pairs of the recorded logs, read with plain code."""
    found = [json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))]
    pairs = [(one, part) for one in found for part in one["samples"]]
    for path in sorted(DATA.glob("*.eval")):
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("header.json"))
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            pairs += [(header, json.loads(archive.read(name))) for name in names]
    return pairs


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data are not here")
def test_all_recorded_samples_equal_their_own_figures() -> None:
    table = read(DATA, format="inspect")
    assert table.calls is not None
    nodes = table.nodes.sort_values("duration_ns")
    samples = sorted((part for _, part in recorded()), key=lambda part: part["total_time"])
    assert len(nodes) == len(samples) == 6
    for node, part in zip(nodes.to_dict("records"), samples, strict=True):
        own = list(part["model_usage"].values())
        sent = sum(one["input_tokens"] for one in own)  # of these logs the input counts the cached part: see the totals
        assert all(one["total_tokens"] == one["input_tokens"] + one["output_tokens"] for one in own)
        assert (0 if pd.isna(node["input_total"]) else node["input_total"]) == sent
        assert (0 if pd.isna(node["output"]) else node["output"]) == sum(one["output_tokens"] for one in own)
        assert node["calls"] == sum(event["event"] == "model" for event in part["events"])
        calls = table.calls[table.calls["run"] == node["run"]]
        assert calls["input_total"].sum() == sent

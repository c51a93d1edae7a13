"""Reading and judging records at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from command_line import run

from harness_lab.settlements import Settlements, SettlementStore
from harness_lab.settlements.readers.flat import FIELDS


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    rows = ["run,node,user,model,input_total,cache_read,output,start", "a,0,ann,o3,1000000,0,0,2025-06-09T00:00:00Z"]
    (tmp_path / "runs.csv").write_text("\n".join([*rows, "b,0,bob,unheard-of,5,0,0,"]) + "\n")
    return tmp_path / "runs.csv"


def test_reading_into_a_store_twice_adds_once(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    for added in (2, 0):
        assert run("read", runs, "--store", store, "--json") == 0
        assert json.loads(capsys.readouterr().out)["store"]["added"] == added
    assert len(SettlementStore(store)) == 2
    assert run("quality", store, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 2


def test_ids_are_hashed_with_the_key_that_is_named_or_kept(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert run("read", runs, "--out", out, "--id-key", tmp_path / "key") == 0
    assert not set(Settlements.from_parquet(out).nodes["user"]) & {"ann", "bob"}
    assert b"ann" not in out.read_bytes()
    assert (tmp_path / "key").is_file()
    assert run("read", runs, "--out", out, "--keep-ids") == 0
    assert Settlements.from_parquet(out).nodes["user"].tolist() == ["ann", "bob"]
    assert run("read", runs, "--keep-ids", "--id-key", tmp_path / "key") == 2


def test_unknown_costs_are_filled_with_list_prices_on_request(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.parquet"
    assert run("read", runs, "--out", out, "--recompute") == 0
    assert "not priced: 1 x unheard-of, no price for this model" in capsys.readouterr().out
    assert Settlements.from_parquet(out).nodes["cost_nusd"].tolist() == [10 * 10**9, pd.NA]


def test_quality_says_what_is_odd_as_text_and_as_json(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bill.csv").write_text("day,model,cost_usd\n2025-06-09,o3,4\n")
    arguments = ("quality", runs, "--recompute", "--bill", tmp_path / "bill.csv", "--bill-preset", "day-model-cost")
    assert run(*arguments) == 0
    text = capsys.readouterr().out
    assert "prompt without output: 2 (100.0%)" in text
    assert "of which the records miss $4.00" in text
    assert run(*arguments, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert {"unpriced", "missing-spend", "unknown-cost"} <= {found["code"] for found in data["findings"]}
    assert data["bill"]["covered"] == 0.0


def test_an_answer_says_what_of_the_records_it_does_not_cover(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.write_text(runs.read_text() + "c,0,bob,o3,many,0,0,\n")
    assert run("quality", runs, "--json") == 0
    said = capsys.readouterr().err
    assert "runs.csv: 1 of 3 record(s) were set aside; see harness-lab quality" in said
    assert "runs.csv: how 2 of 2 row(s) ended is unknown" in said
    run("read", runs, "--out", tmp_path / "out.parquet")
    capsys.readouterr()
    assert run("floors", tmp_path / "out.parquet") == 0
    assert "out.parquet: made of 3 records, 1 set aside then" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [("quality", "none.parquet"), ("quality", "{runs}", "--bill-preset", "day-model-cost"),
     ("read", "{runs}", "--map", "run=run", "--preset", "litellm"), ("read", "{runs}", "--unit", "year"),
     ("read", "{runs}", "--store", "{folder}")],
)  # fmt: skip
def test_misuse_is_one_line(runs: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*(word.format(runs=runs, folder=runs.parent) for word in arguments)) == 2
    error = capsys.readouterr().err
    assert error.startswith("harness-lab: ")
    assert error.count("\n") == 1


def test_without_paths_nothing_is_read_unless_somebody_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    place = home / ".claude" / "projects" / "p"
    place.mkdir(parents=True)
    usage = {"input_tokens": 5, "output_tokens": 2}
    message = {"id": "m", "role": "assistant", "model": "x", "content": [], "usage": usage}
    line = {"type": "assistant", "uuid": "u", "sessionId": "s", "requestId": "q", "message": message}
    (place / "s.jsonl").write_text(
        json.dumps({**line, "timestamp": "2026-05-01T10:00:00Z", "version": "2.1.120"}) + "\n"
    )
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.chdir(tmp_path / "home")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert run("read", "--json") == 0
    assert json.loads(capsys.readouterr().out)["found"][0]["tool"] == "Claude Code"
    assert run("read", "--yes", "--out", tmp_path / "out.parquet") == 0
    assert Settlements.from_parquet(tmp_path / "out.parquet").nodes["output"].sum() == 2


def flat(tmp_path, text: str):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    return path


def test_the_fields_of_a_map_are_in_the_help_and_listed_with_their_meaning(capsys) -> None:
    assert run("read", "--help") == 0
    assert "run, outcome, cost_usd" in " ".join(capsys.readouterr().out.split())
    assert run("read", "--fields", "--json") == 0
    found = {row["field"]: row["meaning"] for row in json.loads(capsys.readouterr().out)}
    assert set(FIELDS) <= set(found)
    assert all(found.values())


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("cost", "cost_usd"), ("costt", "cost_usd"), ("tokens", "input_total or output"), ("statuss", "outcome"),
        ("duration", "duration_s"), ("id", "run"), ("outcom", "outcome"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_answered_with_the_one_that_is_meant(name: str, meant: str, tmp_path, capsys) -> None:
    assert run("read", flat(tmp_path, "a\n1\n"), "--map", f"{name}=a") == 2
    assert f"Did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize("field", ["cost_usd", "duration_s", "input_total", "score", "start"])
def test_a_comma_in_a_number_is_named_as_the_cause(field: str, tmp_path, capsys) -> None:
    assert run("read", flat(tmp_path, 'id,n\nr1,"1,5"\n'), "--map", "run=id", "--map", f"{field}=n") == 1
    assert "with a decimal point and without commas, got '1,5'" in capsys.readouterr().out


def test_reading_nothing_is_a_no_and_writes_nothing(tmp_path, capsys) -> None:
    file, out, store = flat(tmp_path, "id,n\nr1,much\n"), tmp_path / "out.parquet", tmp_path / "store"
    maps = ["--map", "run=id", "--map", "cost_usd=n"]
    assert run("read", file, *maps, "--out", out, "--store", store, "--json") == 1
    found = capsys.readouterr()
    assert json.loads(found.out)["set_aside"][0]["line"] == 2
    assert "nothing was written" in found.err
    assert not out.exists()
    assert not store.exists()

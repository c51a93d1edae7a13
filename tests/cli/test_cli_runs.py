"""Sweep, replay and explain at the command line: answers, JSON and nothing else, files by the ends of their names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from command_line import SMALL, run

from harness_lab.settlements import Settlements
from harness_lab.simulate.stream import read_manifest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    file = tmp_path / "experiment.toml"
    file.write_text(SMALL)
    return str(file)


def test_sweep_prints_the_curve_and_writes_it(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "curve.csv"
    assert run("sweep", experiment, "calls", "--policy", "free", "--values", "2,4,8", "--out", str(out), "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["ceiling"] for row in data["curve"]] == [2, 4, 8]
    assert (data["read_off"], data["simulated_because"]) == (20, [])
    assert pd.read_csv(out)["completed"].is_monotonic_increasing


def test_explain_prints_the_events_and_writes_a_trace_and_a_picture(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, picture = tmp_path / "run.json", tmp_path / "run.svg"
    assert run("explain", experiment, "3", "--policy", "tight", "--trace", str(trace), "--picture", str(picture)) == 0
    assert "Run 3 under tight" in capsys.readouterr().out
    assert json.loads(trace.read_text())["traceEvents"]
    assert picture.read_text().startswith("<svg")
    assert run("explain", experiment, "3", "--policy", "tight", "--json") == 0
    assert json.loads(capsys.readouterr().out)["events"][0]["event"] == "spawn"


def test_replay_says_where_each_policy_stops_a_recorded_run(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "records.parquet"
    rows = {"run": ["a", "b"], "node": "0", "outcome": "completed", "delivered": True, "calls": [9, 2]}
    Settlements.from_columns(rows | {"input_total": [900, 200], "output": 1}).to_parquet(records)
    assert run("replay", str(records), "a", "--policies", experiment, "--json") == 0
    free, tight = json.loads(capsys.readouterr().out)["policies"]
    assert (free["stopped"], tight["stopped"], tight["calls"], tight["limit"]) == (False, True, 3, "steps-exhausted")
    assert (tight["good_runs"], tight["good_cut"]) == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sweep", "FILE", "steps", "--policy", "free"), "ceiling: expected one of calls"),
        (("sweep", "FILE", "calls"), "policy: expected one of free, tight, got None"),
        (("sweep", "FILE", "calls", "--policy", "free", "--values", "two"), "--values: expected numbers"),
        (("sweep", "FILE", "calls", "--policy", "free", "--out", "x.doc"), "--out: expected a name that ends in .csv"),
        (("explain", "FILE", "20", "--policy", "free"), "run: expected a whole number from 0 to 19"),
        (("explain", "FILE", "first", "--policy", "free"), "run: expected a whole number"),
    ],
    ids=str,
)
def test_misuse_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], message: str, experiment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*[experiment if one == "FILE" else one for one in arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"harness-lab: {message}")
    assert err.count("\n") == 1


def test_replay_refuses_a_file_without_policies(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, empty = tmp_path / "records.parquet", tmp_path / "empty.toml"
    Settlements.from_columns({"run": ["a"], "node": "0", "calls": 1}).to_parquet(records)
    empty.write_text("")
    assert run("replay", str(records), "a", "--policies", str(empty)) == 2
    assert "--policies: expected a TOML file with [[policies]]" in capsys.readouterr().err
    assert run("replay", str(records), "z", "--policies", experiment) == 2
    assert "run: expected a run of the records, such as a, got 'z'" in capsys.readouterr().err


def test_simulate_stops_when_precise_and_writes_the_manifest_beside_the_rows(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.parquet"
    arguments = ["--runs", "3000", "--half-width", "0.05", "--backend", "serial", "--out", str(out), "--json"]
    assert run("simulate", experiment, *arguments) == 0
    told = json.loads(capsys.readouterr().out)["manifest"]
    assert told["ended"] == "precise enough"
    assert read_manifest(out) == told
    assert Settlements.from_parquet(out).nodes["run"].nunique() == told["runs_done"] < 3000


def test_a_large_simulation_goes_to_its_file_as_it_comes(
    experiment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness_lab.cli.simulation.STREAM_FROM", 40)
    out = tmp_path / "rows.parquet"
    assert run("simulate", experiment, "--out", str(out), "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["digest"] is None
    assert sum(data["policies"]["tight"].values()) == 20


def test_compare_names_the_switches(experiment: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", experiment, "--json") == 0
    switches = json.loads(capsys.readouterr().out)["switches"]
    (switch,) = switches
    assert (switch["policy"], switch["switch"], switch["baseline"]) == ("tight", "shared_ledger", "none")
    assert "max_steps=3" in switch["value"]

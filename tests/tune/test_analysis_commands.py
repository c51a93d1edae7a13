"""The commands that analyse: JSON that parses, and text that names the next step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_lab.cli import main

DATA = Path(__file__).parents[2] / "data"


def answer(capsys, *arguments: str) -> dict | list:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def test_limits_reports_each_limit(capsys) -> None:
    rows = answer(capsys, "limits", str(DATA / "synthetic_runs.parquet"), "--by", "agent")
    assert {"ended", "wasted_share"} <= {row["figure"] for row in rows}


def test_steps_and_best_read_what_simulate_writes(capsys, tmp_path) -> None:
    rows = answer(capsys, "steps", str(DATA / "experiment.toml"), "--runs", "40")
    assert {row["direction"] for row in rows} == {"up", "down"}
    out = tmp_path / "s.parquet"
    answer(capsys, "simulate", str(DATA / "experiment.toml"), "--runs", "60", "--out", str(out))
    found = answer(capsys, "best", str(out), "--metric", "completed", "--indifference", "0.05")
    assert found["maybe_best"]


def test_a_ceiling_for_a_target_or_for_a_price_of_failure(capsys) -> None:
    records = str(DATA / "synthetic_runs.parquet")
    assert answer(capsys, "ceiling", records, "--target", "0.8")[0]["ceiling"] > 0
    assert answer(capsys, "ceiling", records, "--failure-usd", "3")[0]["saving_value"] is not None


def test_price_and_reprice(capsys, tmp_path) -> None:
    records = str(DATA / "synthetic_runs.parquet")
    assert answer(capsys, "price", records, "--margin", "0.3")[0]["price_usd"] > 0
    table = tmp_path / "prices.json"
    tiers = [{"input": 1_000_000, "output": 5_000_000}]
    table.write_text(json.dumps({"models": {"synth-large": tiers}}))
    found = answer(capsys, "reprice", records, "--model", "synth-large", "--table", str(table))
    assert any("price effect only" in note for note in found["notes"])


def test_tune_searches_confirms_and_says_the_seeds(capsys) -> None:
    pytest.importorskip("optuna")
    experiment = str(DATA / "experiment.toml")
    arguments = [
        "--knob",
        "reservation_pool.cost_usd=0.2:2.0",
        "--trials",
        "2",
        "--runs",
        "30",
        "--at-least",
        "completed=0",
    ]
    found = answer(capsys, "tune", experiment, *arguments)
    assert 0.2 <= found["values"]["reservation_pool.cost_usd"] <= 2.0
    with pytest.raises(SystemExit) as ended:
        main(["tune", experiment, "--knob", "reservation_pool.cost_usd=much"])
    assert ended.value.code == 2

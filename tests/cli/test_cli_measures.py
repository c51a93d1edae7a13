"""Commands that measure records and worlds: each prints its text, and JSON that parses."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command_line import SMALL, run

from harness_lab.settlements import Settlements

N = 80


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Make runs of two agents under caps, with their calls."""
    rng = np.random.default_rng(0)
    used = (rng.lognormal(0, 0.5, N) * 1e9).astype(np.int64)
    cap = rng.choice([9, 30], N) * 10**8
    base = {"run": [f"r{k}" for k in range(N)], "node": "0", "model": "m"}
    tokens = {"input_total": 4000, "input_fresh": 4000, "cache_read": 0, "cache_write": 0, "output": 40}
    nodes = {
        **base, **tokens, "agent": ["a", "b"] * (N // 2), "calls": rng.integers(3, 9, N), "backend": "x",
        "outcome": np.where(used > cap, "exhausted", "completed"), "cost_nusd": np.minimum(used, cap),
        "cost_source": "recorded", "ceiling_cost": cap, "duration_ns": 10**9, "delivered": used < 2 * 10**9,
    }  # fmt: skip
    path = tmp_path_factory.mktemp("records") / "runs.parquet"
    Settlements.from_columns(pd.DataFrame(nodes)).to_parquet(path)
    return path


COMMANDS = {
    "distribution": ["--fit"],
    "symptoms": [],
    "caps": [],
    "floor-costs": [],
    "holds": ["--pool", "20000", "--at-once", "4", "--level", "run"],
    "period": ["--budget-usd", "40", "--period-runs", "40"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_prints_text_with_a_next_step_and_json(command: str, records, capsys) -> None:
    assert run(command, records, *COMMANDS[command]) == 0
    assert "Next: " in capsys.readouterr().out
    assert run(command, records, *COMMANDS[command], "--json") == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_is_asked_by_group(command: str, records, capsys) -> None:
    assert run(command, records, *COMMANDS[command], "--by", "agent", "--json") == 0
    rows = json.dumps(json.loads(capsys.readouterr().out))
    assert '"a"' in rows or command == "symptoms"  # no symptom, no row
    assert run(command, records, *COMMANDS[command], "--by", "no_such_column") == 2


def test_what_matters_is_ranked(records, capsys) -> None:
    assert run("matters", records, "--input", "calls", "--json") == 0
    first = capsys.readouterr()
    (row,) = json.loads(first.out)["factors"]
    assert row["factor"] == "calls"
    assert first.err == ""
    assert run("matters", records, "--input", "calls", "--seed", "0", "--json") == 0
    assert capsys.readouterr().out == first.out


def test_worlds_are_raced_scaled_and_held_against_records(records, tmp_path, capsys) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    assert run("race", file, "--indifference", "0.2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["chosen"] == "free"
    assert run("race", file, "--indifference", "0.0001", "--max-runs", "20") == 1
    capsys.readouterr()
    factors = ["--factor", "calls=0.5:2", "--factor", "prices=1:1.1", "--method", "morris", "--samples", "4"]
    assert run("sensitivity", file, *factors, "--policy", "free", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["factors"][0]["factor"] == "calls"
    assert run("sensitivity", file, "--factor", "calls=2") == 2
    assert run("check-fit", records) in (0, 1)

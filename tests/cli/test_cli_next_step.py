"""The next step that a command recommends can be run as it is printed."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest
from command_line import SMALL, run
from odd_records import runs

from harness_lab.analyze import ceiling
from harness_lab.export import TunedConfig
from harness_lab.settlements import Settlements

ASK = {
    "distribution": ["distribution", "RECORDS", "--column", "calls"],
    "distribution of output": ["distribution", "RECORDS", "--column", "output"],
    "symptoms": ["symptoms", "RECORDS"],
    "caps": ["caps", "RECORDS"],
    "floor-costs": ["floor-costs", "RECORDS"],
    "holds": ["holds", "RECORDS", "--pool", "1e9", "--at-once", "4", "--column", "cost_nusd", "--level", "run"],
    "matters": ["matters", "RECORDS"],
    "limits": ["limits", "RECORDS"],
    "ceiling": ["ceiling", "RECORDS", "--target", "0.6"],
    "declined": ["ceiling", "RECORDS", "--target", "0.999"],
    "declined for want of records": ["ceiling", "FEW", "--target", "0.999"],
    "of a tree": ["ceiling", "RECORDS", "--target", "0.6", "--channel", "starts"],
    "written": ["ceiling", "RECORDS", "--target", "0.6", "--write", "written.json"],
    "by group": ["ceiling", "RECORDS", "--target", "0.6", "--by", "agent"],
    "cheapest": ["ceiling", "RECORDS", "--failure-usd", "3"],
    "both ways": ["ceiling", "RECORDS", "--target", "0.5", "--channel", "calls", "--simulate"],
    "price": ["price", "RECORDS"],
    "period": ["period", "RECORDS", "--budget-usd", "40", "--period-runs", "30"],
    "reprice": ["reprice", "RECORDS", "--table", "prices.json"],
    "drift": ["drift", "FEW", "RECORDS"],
    "check": ["check", "config.json", "--against", "RECORDS"],
    "check of what is stale": ["check", "strict.json", "--against", "RECORDS"],
    "floors": ["floors", "RECORDS"],
    "steps": ["steps", "small.toml", "--runs", "30"],
    "tune": ["tune", "small.toml", "--knob", "shared_ledger.max_steps=2:30", "--trials", "2", "--runs", "30"],
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Make a folder with a space in its name, with records, configs, prices and an experiment, and go there."""
    folder = tmp_path / "my runs"
    folder.mkdir()
    ends = np.where(np.arange(200) % 10 == 0, "exhausted", "completed")
    many = runs(200, outcome=ends, ceiling_cost=[2 * 10**9, 4 * 10**9] * 100, parent=None, depth=0, starts=1)
    Settlements.from_columns(many).to_parquet(folder / "records.parquet")
    Settlements.from_columns(runs(2)).to_parquet(folder / "few.parquet")
    choice = ceiling(many, target=0.6)
    TunedConfig.from_ceiling(choice, many).write(folder / "config.json")
    tight = many.assign(cost_nusd=many["cost_nusd"] // 3)
    TunedConfig.from_ceiling(ceiling(tight, target=0.6), tight).write(folder / "strict.json")
    prices = {"models": {"m": [{"input": 10**6, "output": 10**6, "cache_read": 10**6, "cache_write": 10**6}]}}
    (folder / "prices.json").write_text(json.dumps(prices))
    (folder / "small.toml").write_text(SMALL)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("ask", ASK)
def test_the_next_step_runs_as_it_is_printed(ask: str, place, capsys) -> None:
    files = {"RECORDS": place / "records.parquet", "FEW": place / "few.parquet"}
    assert run(*(files.get(word, word) for word in ASK[ask])) in (0, 1)
    line = re.search(r"^Next: (harness-lab .*)$", capsys.readouterr().out, re.MULTILINE)
    assert line is not None
    words = shlex.split(line[1], comments=True)
    more = ["--trials", "2", "--runs", "20"] if words[1] == "tune" else []
    assert run(*words[1:], *more) in (0, 1), capsys.readouterr().err

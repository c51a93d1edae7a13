"""Records that are called newer and are not: said, wherever two sets are held against each other."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from command_line import run

from harness_lab.analyze import ceiling, check_config, drift
from harness_lab.analyze.overlap import shared_rows
from harness_lab.export import TunedConfig
from harness_lab.settlements import Settlements


def runs(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cost = (rng.lognormal(0, 0.5, n) * 1e9).astype(np.int64)
    return pd.DataFrame({"run": [f"r{k}" for k in range(n)], "outcome": "completed", "cost_nusd": cost})


def test_the_same_records_are_said_to_be_the_same() -> None:
    found = drift(runs(), runs())
    assert (found.shared, found.later_nodes) == (200, 200)
    assert "nothing here is newer, so nothing can have moved" in found.summary()


def test_a_part_that_both_have_is_counted_in_any_order_of_rows_and_columns() -> None:
    old = runs()
    later = runs(seed=1).assign(run=[f"s{k}" for k in range(200)])
    new = pd.concat([later, old.tail(50)], ignore_index=True).sample(frac=1, random_state=0)
    assert shared_rows(old, new[["cost_nusd", "outcome", "run"]]) == 50
    assert "50 of 250 later rows are in the earlier records too" in drift(old, new).summary()


def test_other_runs_of_the_same_numbers_are_not_the_same_records() -> None:
    assert shared_rows(runs(), runs(seed=1)) == 0
    bare = pd.DataFrame({"run": range(9), "outcome": "completed"})
    assert shared_rows(bare, bare) == 0  # nothing was measured that could tell
    assert "later rows are in the earlier" not in drift(runs(), runs(seed=1)).summary()


def test_equal_means_move_by_nothing_and_not_by_rounding() -> None:
    groups = runs().assign(user=[f"u{k // 5}" for k in range(200)])
    (cost, _) = drift(groups, groups).moves
    assert (cost.difference.value, cost.difference.low, cost.difference.high) == (0.0, 0.0, 0.0)


def test_a_config_is_not_confirmed_by_its_own_records() -> None:
    config = TunedConfig.from_ceiling(ceiling(runs(), target=0.85), runs())
    found = check_config(config, runs())
    assert found.checked[1].status == "unknown"
    assert "the very records that the config was made from" in found.summary()
    part = pd.concat([runs().tail(20), runs(seed=1).assign(run=[f"s{k}" for k in range(200)])], ignore_index=True)
    assert "20 of 220 later rows" in check_config(config, part, reference=runs()).summary()
    later = runs(seed=1).assign(run=[f"s{k}" for k in range(200)])
    assert all("newer than those behind" not in one.what for one in check_config(config, later).checked)


def test_the_command_line_says_so_in_json_too(tmp_path, capsys) -> None:
    file = tmp_path / "runs.parquet"
    Settlements.from_columns(runs().assign(node="0")).to_parquet(file)
    assert run("drift", file, file, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["shared_nodes"], answer["later_nodes"]) == (200, 200)

"""Symptoms in records, and limits that depend on the task."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from harness_lab.analyze import cap_check, distribution, symptoms
from harness_lab.errors import InputError
from harness_lab.settlements import Settlements


def tree(**more: object) -> dict[str, object]:
    return {
        "run": ["r", "r", "r", "r"], "node": ["0", "1", "2", "3"], "parent": [None, "0", "0", "0"],
        "depth": [0, 1, 1, 1],
        "agent": ["lead", "worker", "worker", "scout"], "outcome": ["completed", "failed", "completed", "exhausted"],
        "calls": [5, 1, 4, 3], "cost_nusd": [4_000_000_000, 1_000_000_000, 2_000_000_000, 500_000_000], **more,
    }  # fmt: skip


def found(data: object) -> dict[str, object]:
    return {one.what: one for one in symptoms(data).found}


def test_a_child_that_dies_within_one_call_is_named_with_parent_role_and_spend() -> None:
    one = found(pd.DataFrame(tree()))["child that died within one call"]
    assert (one.where, one.count, one.spend_usd, one.found.value) == ("lead -> worker", 1, 1.0, 0.5)


def test_asks_below_the_floor_of_their_path() -> None:
    data = tree(
        input_total=[9000, 200, 9500, 700], ask_input=[None, 500, 9600, 9000], backend="b", model="m",
    )  # fmt: skip
    one = found(pd.DataFrame(data).astype({"ask_input": "Int64"}))["ask below the floor"]
    assert (one.where, one.count, one.found.n) == ("lead -> worker", 1, 2)


def test_starts_that_grow_by_level() -> None:
    nodes = {"run": "r", "node": list("012345"), "parent": [None, "0", "1", "1", "1", "1"], "depth": [0, 1, 2, 2, 2, 2]}
    one = found(pd.DataFrame(nodes | {"outcome": "completed", "cost_nusd": 10**9}))["starts grow by level"]
    assert (one.where, one.count, one.spend_usd) == ("level 2", 1, 4.0)


def calls(**columns: object) -> Settlements:
    table = {"run": "r", "node": "0", "call": range(5), "attempt": 0, "kind": "model"} | columns
    return Settlements.from_columns(
        {k: v[:1] if isinstance(v, list) else v for k, v in tree().items()}, pd.DataFrame(table)
    )


def test_one_call_that_eats_the_budget() -> None:
    one = found(calls(cost_nusd=[10**8, 10**8, 3 * 10**9, 10**8, 10**8]))["one call took over half of its run's spend"]
    assert (one.count, one.spend_usd, one.found.n) == (1, 3.0, 5)


def test_calls_of_the_same_size_in_a_row() -> None:
    fresh = [100, 50, 50, 50, 70]
    data = calls(
        input_fresh=fresh, input_total=fresh, output=[7, 9, 9, 9, 9], cost_nusd=10**8, cache_read=0, cache_write=0
    )
    one = found(data)["calls of the same size, 3 or more in a row"]
    assert one.count == 1  # the third of three


def test_what_cannot_be_looked_for_is_said() -> None:
    result = symptoms(pd.DataFrame({"run": ["a"], "outcome": ["completed"]}))
    assert result.found == ()
    assert any("no call rows" in why for why in result.not_looked_for)
    assert "Not looked for" in result.summary()


def capped(seed: int, *, by_difficulty: bool, n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    true = rng.lognormal(0, 0.6, n)
    guess = np.argsort(np.argsort(true * rng.lognormal(0, 0.5, n))) / n if by_difficulty else rng.random(n)
    cap = np.select([guess < 1 / 3, guess < 2 / 3], [0.9, 1.3], 2.5)
    frame = {"run": range(n), "outcome": np.where(true > cap, "exhausted", "completed")}
    frame |= {"cost_nusd": (np.minimum(true, cap) * 1e9).astype(np.int64), "ceiling_cost": (cap * 1e9).astype(np.int64)}
    return pd.DataFrame(frame), true


def test_limits_set_by_difficulty_are_found_out_though_no_column_records_it() -> None:
    assert sum(bool(cap_check(capped(s, by_difficulty=True)[0]).dependent) for s in range(20)) == 20


def test_limits_set_at_random_are_seldom_called_dependent() -> None:
    alarms = sum(bool(cap_check(capped(s, by_difficulty=False)[0]).dependent) for s in range(100))
    assert binomtest(alarms, 100, 0.05, alternative="greater").pvalue > 0.01


def test_limits_that_go_with_a_role_are_found_by_role() -> None:
    data, _ = capped(0, by_difficulty=False)
    result = cap_check(data.assign(agent=np.where(data["ceiling_cost"] > 2 * 10**9, "lead", "worker")))
    assert result.dependent
    assert result.tests["group"].tolist() == ["agent"]


@pytest.mark.parametrize("by_difficulty", [True, False])
def test_worst_case_bounds_hold_the_sample_quantile_however_limits_were_set(by_difficulty: bool) -> None:
    for seed in range(20):
        data, true = capped(seed, by_difficulty=by_difficulty)
        low, high = cap_check(data).worst[0.5]
        assert low <= np.quantile(true, 0.5, method="inverted_cdf") * 1e9 + 1
        assert high is None or high >= np.quantile(true, 0.5, method="inverted_cdf") * 1e9 - 1


def test_the_pooled_quantile_is_wrong_where_limits_depend_on_the_task_and_right_where_not() -> None:
    off = {}
    for mode in (True, False):
        found_ = [
            (distribution(data).quantile(0.7).value, true)
            for data, true in (capped(s, by_difficulty=mode) for s in range(30))
        ]
        off[mode] = np.mean([value * 1e-9 / np.quantile(true, 0.7) - 1 for value, true in found_])
    assert off[True] > 0.04
    assert abs(off[False]) < 0.03


def test_without_recorded_limits_nothing_can_be_tested() -> None:
    with pytest.raises(InputError, match=r"^ceiling_cost"):
        cap_check(pd.DataFrame({"run": [1], "outcome": ["completed"], "cost_nusd": [1]}))


def test_the_results_have_words_and_tables() -> None:
    data, _ = capped(0, by_difficulty=True)
    for result in (cap_check(data), symptoms(pd.DataFrame(tree()))):
        assert "Next:" in result.explain()
        assert len(result.to_frame())
        assert result._repr_html_().startswith("<pre>")

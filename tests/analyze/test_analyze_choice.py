"""Best policy, Pareto front and what the limits did."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from harness_lab.analyze import best_policy, compare, limit_report, pareto
from harness_lab.errors import InputError


def policies(n: int = 200, *, seed: int = 0, **shape: tuple[float, float]) -> pd.DataFrame:
    """Make runs under policies; each is named with (chance to complete, dollars)."""
    rng = np.random.default_rng(seed)
    luck, size = rng.random(n), rng.lognormal(0, 0.4, n)
    frames = []
    for name, (chance, usd) in shape.items():
        cost = (size * rng.lognormal(0, 0.1, n) * usd * 1e9).astype(np.int64)
        outcome = np.where(luck < chance, "completed", "exhausted")
        stop = np.where(luck < chance, None, "cost-exhausted")
        frame = {"run": range(n), "policy": name, "outcome": outcome, "stopped_by": stop, "cost_nusd": cost}
        frames.append(pd.DataFrame(frame))
    return pd.concat(frames, ignore_index=True)


def test_a_clear_winner_is_named_and_the_loser_is_not() -> None:
    found = best_policy(policies(cheap=(0.9, 1.0), dear=(0.9, 2.0)), indifference=0.2)
    assert (found.maybe, found.chosen) == (("cheap",), "cheap")
    assert "Selected: cheap (95 % to be the best where it leads by $0.20 or more; 100 runs sufficed)" in found.summary()


def test_equal_policies_cannot_be_told_apart() -> None:
    found = best_policy(policies(a=(0.9, 1.0), b=(0.9, 1.0), c=(0.9, 3.0)))
    assert found.maybe == ("a", "b")
    assert found.groups == (("a", "b"), ("c",))
    assert "the best in spend is among: a, b" in found.verdict()


def test_without_enough_runs_nothing_is_selected() -> None:
    found = best_policy(policies(60, a=(0.9, 1.0), b=(0.9, 1.0)), indifference=0.001)
    assert found.chosen is None
    assert "needs n >=" in found.verdict()


def test_a_sole_policy_or_an_unknown_metric_is_refused() -> None:
    with pytest.raises(InputError, match=r"^policy"):
        best_policy(policies(a=(0.9, 1.0)))
    with pytest.raises(InputError, match=r"^metric"):
        best_policy(policies(a=(0.9, 1.0), b=(0.9, 1.0)), "charm")


def test_runs_of_unknown_cost_are_left_out_and_counted() -> None:
    data = policies(a=(0.9, 1.0), b=(0.9, 2.0)).astype({"cost_nusd": "Int64"})
    data.loc[:4, "cost_nusd"] = pd.NA
    found = best_policy(data)
    assert (found.left_out, found.means[0].n) == (5, 195)


def test_places_on_the_front() -> None:
    found = pareto(policies(400, good=(0.95, 2.0), cheap=(0.6, 1.0), bad=(0.5, 3.0), twin=(0.95, 2.0)))
    assert dict(zip(found.policies, found.places, strict=True)) == {
        "good": "cannot be told", "cheap": "on the front", "bad": "dominated", "twin": "cannot be told",
    }  # fmt: skip
    assert set(found.dominated_by[2]) == {"good", "cheap", "twin"}
    assert found.pick({"completed": 10.0, "cost_nusd": 1.0}) in ("good", "twin")
    assert found.pick({"cost_nusd": 1.0}) == "cheap"


def test_a_policy_is_seldom_placed_wrongly_when_all_are_equal() -> None:
    wrong = sum(
        any(p == "dominated" for p in pareto(policies(120, seed=s, a=(0.9, 1.0), b=(0.9, 1.0), c=(0.9, 1.0))).places)
        for s in range(120)
    )
    assert binomtest(wrong, 120, 0.05, alternative="greater").pvalue > 0.01


def test_the_corrected_comparison_keeps_its_error_rate_when_all_policies_are_equal() -> None:
    claims = 0
    for seed in range(80):
        data = policies(150, seed=seed, a=(0.9, 1.0), b=(0.9, 1.0), c=(0.9, 1.0), d=(0.9, 1.0))
        differences = compare(data).differences()
        claims += bool((differences["p_adjusted"] <= 0.05).any())
    assert binomtest(claims, 80, 0.05, alternative="greater").pvalue > 0.01


def test_what_limits_ended_refused_and_starved() -> None:
    nodes = pd.DataFrame({
        "run": np.repeat(range(40), 2), "node": ["0", "1"] * 40, "parent": [None, "0"] * 40, "depth": [0, 1] * 40,
        "outcome": ["exhausted", "denied"] * 10 + ["completed", "completed"] * 30,
        "stopped_by": ["cost-exhausted", "call-limit"] * 10 + [None, None] * 30,
        "cost_nusd": [10**9, 0] * 40, "wait_ns": [0, 10**9] * 40,
    })  # fmt: skip
    found = limit_report(nodes)
    cost, calls = found.uses
    assert (cost.limit, cost.ended.value, cost.nodes_ended.value, cost.refused.value) == (
        "cost-exhausted",
        0.25,
        0.125,
        0,
    )
    assert (calls.ended.value, calls.refused.value) == (0, 0.125)
    assert (found.wasted[()].value, found.waited[()].value, found.waited_s[()].value) == (0.25, 0.5, 0.5)
    assert found.cluster == "run"


def test_the_report_and_the_choices_can_be_drawn_and_tabled() -> None:
    data = policies(a=(0.9, 1.0), b=(0.8, 2.0))
    report, best, front = limit_report(data, by="policy"), best_policy(data), pareto(data)
    for found in (report, best, front):
        assert found.plot().get_xlabel()
        assert len(found.to_frame())
        assert "Next:" in found.explain()
        assert found.summary() in found._repr_html_().replace("&gt;", ">").replace("&#x27;", "'")


def test_a_limit_that_ended_runs_and_is_not_named_is_reported_as_such() -> None:
    nodes = pd.DataFrame({"run": range(40), "outcome": ["exhausted"] * 8 + ["timed_out"] * 2 + ["completed"] * 30})
    report = limit_report(nodes)
    assert [use.limit for use in report.uses] == ["limit not recorded"]
    assert report.uses[0].ended.value == 0.25
    assert "no limit ended" not in report.summary()

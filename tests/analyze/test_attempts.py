"""Runs under candidate ceilings: running sums against the definition, run by run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.analyze import cheapest_ceiling
from harness_lab.analyze.attempts import Attempts

RUNS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9), st.booleans(), st.booleans()), min_size=2, max_size=40)


def by_definition(tried: Attempts, x: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weigh each run at each candidate by the chance of not having been stopped before, computed one by one."""

    def free(amount: float) -> float:
        steps = [1 - own[x == t].sum() / (x >= t).sum() for t in np.unique(x[own]) if t < amount]
        return max(float(np.prod(steps)), 0.05) if own.any() else 1.0

    spend, done = np.zeros((2, tried.at.size, x.size))
    for k, c in enumerate(tried.at):
        weight = np.array([(0.0 if own[i] else 1 / free(x[i])) if x[i] < c else 1 / free(c) for i in range(x.size)])
        weight /= weight.mean()
        spend[k] = weight * np.where(x <= c, tried.spend, tried.rate * c)
        done[k] = weight * tried.done * (x <= c)
    return spend, done


@settings(max_examples=60)
@given(RUNS)
def test_sums_over_groups_are_those_of_runs_weighed_one_by_one(rows: list[tuple[int, int, bool, bool]]) -> None:
    x, usd = (np.array([row[k] for row in rows], dtype=np.float64) for k in (0, 1))
    own = np.array([row[3] and not row[2] for row in rows])
    tried = Attempts.of(x, usd, np.array([row[2] for row in rows]), own, most=60)
    group = np.arange(x.size) % 3
    for ours, theirs in zip(tried.sums(group, 3), by_definition(tried, x, own), strict=True):
        expected = np.stack([theirs[:, group == g].sum(axis=1) for g in range(3)])
        assert ours == pytest.approx(expected, abs=1e-9)
    whole = tried.runs(tried.at.size - 1)
    assert whole[0] == pytest.approx(by_definition(tried, x, own)[0][-1], abs=1e-9)


def test_where_no_ceiling_is_cheapest_nothing_is_saved_on_other_runs() -> None:
    """Four fifths of the runs do not tell a ceiling above all of them from none: none is what they choose."""
    usd = np.random.default_rng(3).lognormal(0, 0.3, 100)
    runs = pd.DataFrame({"run": range(100), "outcome": "completed", "cost_nusd": (usd * 1e9).astype(np.int64)})
    found = cheapest_ceiling(runs, failure_usd=1000)
    assert (found.ceiling, found.saving.value) == (None, 0.0)


def test_of_many_runs_a_thousand_random_groups_tell_apart_what_the_runs_do(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    lost = rng.random(12_000) < 0.1
    usd = np.where(lost, 2.0, rng.uniform(0.1, 1.0, lost.size))
    frame = {"run": range(lost.size), "outcome": np.where(lost, "failed", "completed")}
    runs = pd.DataFrame(frame | {"cost_nusd": (usd * 1e9).astype(np.int64)})
    grouped = cheapest_ceiling(runs, failure_usd=5).curve
    monkeypatch.setattr("harness_lab.analyze.cheapest.MAX_UNITS", 10**6)
    alone = cheapest_ceiling(runs, failure_usd=5).curve
    assert (grouped["alike"] == alone["alike"]).mean() >= 0.95
    assert grouped["cost_usd"].equals(alone["cost_usd"])

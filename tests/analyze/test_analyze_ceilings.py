from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from harness_lab.analyze import ceiling, ceiling_curve
from harness_lab.errors import InputError
from harness_lab.stats import ratio, share

SWE = Path(__file__).parents[2] / ".." / "shared" / "data" / "mini-swe-agent-traj" / "runs.csv"


def runs(cost: object, **columns: object) -> pd.DataFrame:
    spend = np.asarray(cost, dtype=np.int64)
    return pd.DataFrame({"run": range(spend.size), "outcome": "completed", "cost_nusd": spend, **columns})


def test_59_runs_support_95_percent_and_58_do_not() -> None:
    assert ceiling(runs(range(59))).ceiling == 58
    declined = ceiling(runs(range(58)))
    assert declined.ceiling is None
    assert declined.bound.needs_n == 59
    assert declined.largest_target == pytest.approx(0.949, abs=1e-3)


def test_a_lower_target_takes_a_lower_ceiling() -> None:
    spend = np.random.default_rng(0).lognormal(20, 0.6, 400)
    found = [ceiling(runs(spend), target=target).ceiling or 0 for target in (0.5, 0.8, 0.95)]
    assert found == sorted(found)


def test_failures_that_no_ceiling_cures_are_named() -> None:
    outcome = ["failed"] * 20 + ["completed"] * 80
    found = ceiling(runs(range(100), outcome=outcome))
    assert found.ceiling is None
    assert "20 of 100 runs failed or were cancelled, which no ceiling cures" in found.summary()
    assert found.largest_target == pytest.approx(0.723, abs=2e-3)
    assert ceiling(runs(range(100), outcome=outcome), target=0.7).ceiling is not None


def test_stopped_runs_bound_no_ceiling_above_where_they_stopped() -> None:
    spend = np.minimum(np.arange(200), 100)
    cut = runs(spend, outcome=np.where(np.arange(200) > 100, "exhausted", "completed"))
    assert ceiling(cut, target=0.4).ceiling == ceiling(runs(np.arange(200)), target=0.4).ceiling
    declined = ceiling(cut, target=0.8)
    assert declined.ceiling is None
    assert 0.4 < declined.largest_target < 0.51


def test_too_few_clusters_decline_and_say_how_many_are_needed() -> None:
    found = ceiling(runs(range(400), repo=[f"r{k % 10}" for k in range(400)]))
    assert found.bound.needs_n == 40
    assert "needs clusters >= 40: 10 cluster(s)" in found.summary()


@pytest.mark.parametrize(
    ("channel", "column"),
    [("calls", "calls"), ("input", "input_total"), ("tokens", "input_total"), ("time", "duration_ns")],
)
def test_every_channel_has_its_column(channel: str, column: str) -> None:
    frame = runs(range(100)).assign(**{column: range(100), "output": 0})
    assert ceiling(frame, channel).ceiling == 98  # type: ignore[arg-type]


def test_groups_get_ceilings_of_their_own() -> None:
    found = ceiling(runs(range(200), agent=["a", "b"] * 100), by="agent", target=0.5)
    assert [part.ceiling for part in found.parts.values()] == [116, 117]
    assert found.to_frame()["group"].tolist() == ["a", "b"]


def test_the_report_shows_what_a_ceiling_destroys_beside_what_it_saves() -> None:
    spend = np.random.default_rng(0).lognormal(20, 0.6, 400)
    said = ceiling(runs(spend, delivered=True), target=0.8).summary()
    for part in ("of the spend avoided", "sunk in the runs that are cut", "delivered: ", "n = 400"):
        assert part in said


def test_a_curve_worked_by_hand() -> None:
    """Spend 1, 2, 4, 9 at a ceiling of 3: two cut, 1 + 6 of 16 avoided, 3 + 3 of 16 sunk, half complete."""
    row = ceiling_curve(runs([1, 2, 4, 9], delivered=[True, False, True, pd.NA]), candidates=[3]).iloc[0]
    assert (row["runs_cut"], row["delivered_cut"], row["delivered_unknown_cut"]) == (2, 1, 1)
    assert (row["avoided_nusd"], row["sunk_nusd"]) == (7, 6)
    assert (row["avoided_share"], row["sunk_share"], row["completed_share"]) == (7 / 16, 6 / 16, 0.5)


def test_unknown_spend_is_left_out_of_the_money_and_counted() -> None:
    frame = runs(range(4), calls=[1, 2, 4, 9]).assign(cost_nusd=pd.array([10, None, 40, 90], dtype="Int64"))
    row = ceiling_curve(frame, "calls", candidates=[3]).iloc[0]
    assert (row["unknown_spend"], row["runs_cut"]) == (1, 2)
    assert row["avoided_nusd"] == pytest.approx(40 / 4 + 90 * 6 / 9)


@pytest.mark.parametrize("clustered", [False, True])
def test_one_pass_over_all_candidates_equals_each_by_itself(clustered: bool) -> None:
    rng = np.random.default_rng(0)
    spend, user = rng.lognormal(20, 0.6, 300).astype(np.int64), rng.integers(0, 30, 300)
    c = float(np.median(spend))
    row = ceiling_curve(
        runs(spend, user=user), candidates=[c / 2, c, 2 * c], cluster="user" if clustered else None
    ).iloc[1]
    labels = user if clustered else None
    avoided = ratio(np.maximum(spend - c, 0), spend, clusters=labels)
    cut, done = share(spend > c, clusters=labels), share(spend <= c, clusters=labels)
    for name, it in (("avoided_share", avoided), ("cut_share", cut), ("completed_share", done)):
        assert [row[name], row[f"{name}_low"], row[f"{name}_high"]] == pytest.approx([it.value, it.low, it.high])


@settings(max_examples=40)
@given(st.lists(st.integers(1, 1000), min_size=2, max_size=40))
def test_higher_ceilings_cut_fewer_runs_and_avoid_less(spend: list[int]) -> None:
    curve = ceiling_curve(runs(spend))
    assert (np.diff(curve["runs_cut"]) <= 0).all()
    assert (np.diff(curve["avoided_nusd"]) <= 1e-6).all()
    assert curve["completed_share"].is_monotonic_increasing
    assert curve["avoided_nusd"].iloc[-1] == 0


def test_few_runs_cut_or_few_clusters_have_no_interval_of_money() -> None:
    curve = ceiling_curve(runs(range(1, 101), user=["a", "b"] * 50), candidates=[50])
    assert curve[["cut_share_low", "avoided_share_low", "completed_share_high"]].isna().all().all()
    few = ceiling_curve(runs(range(1, 101)), candidates=[95])
    assert few["avoided_share_low"].isna().all()
    assert few["cut_share_low"].notna().all()


def test_nothing_is_said_beyond_what_was_tried_when_runs_were_stopped() -> None:
    frame = runs([1, 2, 3, 3], outcome=["completed", "completed", "completed", "exhausted"])
    assert np.isnan(ceiling_curve(frame, candidates=[5])["completed_share"].iloc[0])


def test_curves_of_groups_stand_below_each_other() -> None:
    curve = ceiling_curve(runs(range(6), agent=["a", "b"] * 3), by="agent", candidates=[1, 2])
    assert curve["agent"].tolist() == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"channel": "dollars"}, "channel"), ({"target": 95}, "target"), ({"confidence": 0.4}, "confidence")],
)
def test_a_wrong_question_is_refused(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name}: expected"):
        ceiling(runs(range(9)), **arguments)  # type: ignore[arg-type]


def test_candidates_have_to_be_amounts() -> None:
    with pytest.raises(InputError, match=r"^candidates: expected finite amounts >= 0"):
        ceiling_curve(runs(range(9)), candidates=[-1])


def _kept(repetitions: int, seed: int, *, clustered: bool) -> float:
    """How often a ceiling for 70 % really lets at least 70 % complete; failures and stops included."""
    rng, kept = np.random.default_rng(seed), []
    for _ in range(repetitions):
        z, user = rng.normal(size=240), np.repeat(np.arange(30), 8)
        if clustered:
            z = np.sqrt(0.8) * z + np.sqrt(0.2) * rng.normal(size=30)[user]
        need, fails = np.exp(20 + 0.6 * z), rng.random(240) < 0.1
        cap = np.exp(20 + 0.6 * rng.choice([0.5, 3.0], 240))
        outcome = np.where(need > cap, "exhausted", np.where(fails, "failed", "completed"))
        found = ceiling(
            runs(np.minimum(need, cap), outcome=outcome, user=user), target=0.7, cluster="user" if clustered else None
        )
        if found.ceiling is not None:
            truth = 0.9 * float(np.mean(np.exp(20 + 0.6 * _GRID) <= found.ceiling))
            kept.append(truth >= 0.7)
    return float(np.mean(kept))


_GRID = np.random.default_rng(9).normal(size=100_000)


@pytest.mark.parametrize("clustered", [False, True])
def test_ceilings_keep_their_confidence(clustered: bool) -> None:
    assert _kept(150, 1, clustered=clustered) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
def test_ceilings_keep_their_confidence_in_many_repetitions(clustered: bool) -> None:
    assert _kept(500, 2, clustered=clustered) >= 0.93


def test_a_ceiling_from_one_half_of_recorded_runs_holds_on_the_other() -> None:
    if not SWE.exists():
        pytest.skip("the recorded mini-SWE-agent runs are not at hand")
    cost = (pd.read_csv(SWE)["instance_cost"] * 1e9).round().to_numpy(dtype=np.int64)
    order = np.random.default_rng(0).permutation(cost.size)
    chosen = ceiling(runs(cost[order[:120]]), target=0.9).ceiling
    assert chosen is not None
    within = int((cost[order[120:]] <= chosen).sum())
    assert binomtest(within, 120, 0.9, alternative="less").pvalue > 0.01

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from harness_lab.analyze import distribution
from harness_lab.errors import InputError
from harness_lab.stats import Interval, NotEstimable

SWE = Path(__file__).parents[2] / ".." / "shared" / "data" / "mini-swe-agent-traj" / "runs.csv"
RUNS = pd.DataFrame({"run": range(100), "outcome": "completed", "cost_nusd": np.arange(1, 101) * 10**9})


def stopped_at(frame: pd.DataFrame, cap: int) -> pd.DataFrame:
    """Return the runs as a cost limit would have left them."""
    over = frame["cost_nusd"] > cap
    return frame.assign(
        cost_nusd=frame["cost_nusd"].clip(upper=cap), outcome=np.where(over, "exhausted", frame["outcome"]),
        cause=np.where(over, "limit", "none"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def swe() -> pd.DataFrame:
    if not SWE.exists():
        pytest.skip("the recorded mini-SWE-agent runs are not at hand")
    runs = pd.read_csv(SWE)
    cost = (runs["instance_cost"] * 1e9).round().astype("int64")
    repo = runs["instance_id"].str.rsplit("-", n=1).str[0]
    return pd.DataFrame({"run": runs["instance_id"], "outcome": "completed", "cost_nusd": cost, "repo": repo})


def test_the_median_of_runs_cut_at_50_cents_is_recovered(swe: pd.DataFrame) -> None:
    full = distribution(swe, cluster=None).quantile(0.5)
    cut = distribution(stopped_at(swe, 500_000_000), cluster=None)
    assert full.holds(cut.quantile(0.5).value or 0)
    assert not full.holds(cut.naive()["runs that were not stopped"] or 0)


def test_the_median_of_runs_cut_at_30_cents_is_declined(swe: pd.DataFrame) -> None:
    found = distribution(stopped_at(swe, 300_000_000), cluster=None).quantile(0.5)
    assert found.value is None
    assert isinstance(found.interval, NotEstimable)
    assert found.interval.supported == pytest.approx(0.254, abs=1e-3)
    assert "the largest quantile supported is 0.254" in str(found)


def test_a_quarter_of_the_runs_is_still_supported_at_30_cents(swe: pd.DataFrame) -> None:
    full = distribution(swe, cluster=None).quantile(0.2)
    assert distribution(stopped_at(swe, 300_000_000), cluster=None).quantile(0.2) == full


@pytest.mark.parametrize("cap", [300_000_000, 500_000_000])
def test_every_quantile_that_cut_runs_support_is_recovered_and_the_others_are_declined(
    swe: pd.DataFrame, cap: int
) -> None:
    full, cut = (distribution(it, cluster=None) for it in (swe, stopped_at(swe, cap)))
    sorted_cost = np.sort(swe["cost_nusd"])
    reached = float((sorted_cost <= cap).mean())  # counted by hand
    assert reached == pytest.approx({300_000_000: 74 / 240, 500_000_000: 172 / 240}[cap])
    for q in np.arange(1, 100) / 100:
        found, whole = cut.quantile(q), full.quantile(q)
        assert found.estimable or not whole.estimable or q > reached - 0.07  # an upper end needs room below the cap
        if found.value is not None:
            assert found.value == sorted_cost[int(np.ceil(240 * q)) - 1]
            assert whole.holds(found.value)
        if q > reached:
            assert found.value is None


def test_runs_of_one_repository_are_not_taken_as_independent(swe: pd.DataFrame) -> None:
    found = distribution(swe)
    assert found.sample.cluster == "repo"
    estimate = found.quantile(0.5)
    assert estimate.clusters == 11
    assert str(estimate.interval).startswith("needs clusters >= 5: 11 cluster(s) of uneven size")


def test_the_effective_n_of_240_runs_in_11_repositories_is_about_40(swe: pd.DataFrame) -> None:
    estimate = distribution(swe.assign(cost_nusd=np.log(swe["cost_nusd"])), level="node").quantile(0.5)
    assert estimate.effective_n == pytest.approx(39, abs=0.5)


def test_failures_are_neither_completions_nor_stops() -> None:
    """Ten runs at 1 ... 10: every second one failed. By hand: 3 of 10 completed within 6."""
    runs = pd.DataFrame({"run": range(10), "outcome": ["failed", "completed"] * 5, "cost_nusd": range(1, 11)})
    found = distribution(runs)
    curve = found.curve().set_index("value")["completed"]
    assert curve[6] == pytest.approx(0.3)
    assert found.completion().value == 0.5
    assert found.naive(0.5)["failures taken as stopped"] == 8
    assert found.quantile(0.6).value is None


def test_failures_and_stops_together_worked_by_hand() -> None:
    """Completed 1, failed 2, stopped 3, completed 4: 1/4, then 1/2 of the runs left, all of it at 4."""
    outcomes = ["completed", "failed", "exhausted", "completed"]
    found = distribution(pd.DataFrame({"run": range(4), "outcome": outcomes, "cost_nusd": [1, 2, 3, 4]}))
    assert found.curve()["completed"].tolist() == pytest.approx([0.25, 0.25, 0.75])
    assert str(found.sample.tally) == "2 completed, 1 stopped by a limit, 1 failed or were cancelled"


@pytest.mark.parametrize(
    ("outcome", "cause", "counts"),
    [
        ("exhausted", "limit", "1 stopped by a limit"),
        ("timed_out", "limit", "1 stopped by a limit"),
        ("timed_out", "infrastructure", "1 failed or were cancelled"),
        ("cancelled", "limit", "1 stopped by a limit"),
        ("cancelled", "user", "1 failed or were cancelled"),
        ("failed", "model", "1 failed or were cancelled"),
        ("unknown", None, "none; kept apart: 1 of unknown outcome"),
        ("awaiting_approval", None, "none; kept apart: 1 awaiting approval"),
        ("denied", "limit", "none; kept apart: 1 denied before they started"),
    ],
)
def test_each_ending_goes_where_it_belongs(outcome: str, cause: str | None, counts: str) -> None:
    one = pd.DataFrame({"run": ["r"], "outcome": [outcome], "cause": [cause], "cost_nusd": [5]})
    assert str(distribution(one).sample.tally) == counts


def test_unknown_costs_are_counted_and_kept_apart() -> None:
    runs = RUNS.assign(cost_nusd=RUNS["cost_nusd"].astype("Int64").mask(RUNS["run"] < 7))
    found = distribution(runs)
    assert (found.sample.n, found.sample.tally.unknown_value) == (93, 7)
    assert "kept apart: 7 of unknown usage" in found.summary()


def test_groups_are_estimated_apart_and_the_unknown_group_is_its_own() -> None:
    runs = RUNS.assign(agent=np.where(RUNS["run"] < 50, "a", None))
    found = distribution(runs, by="agent")
    assert list(found.parts) == [("a",), (None,)]
    assert found.parts["a",].quantile(0.5).value == 25e9
    frame = found.to_frame([0.5])
    assert frame["value"].tolist() == [25e9, 75e9]
    assert "unknown: " in found.summary()


def test_nodes_of_one_run_are_a_cluster() -> None:
    nodes = pd.DataFrame({"run": np.repeat(np.arange(50), 4), "outcome": "completed", "cost_nusd": range(200)})
    found = distribution(nodes, level="node")
    assert found.sample.cluster == "run"
    assert found.quantile(0.5).clusters == 50


def test_the_same_run_under_several_policies_is_a_cluster_and_said() -> None:
    both = pd.concat([RUNS.assign(policy="a"), RUNS.assign(policy="b")], ignore_index=True)
    found = distribution(both)
    assert found.sample.cluster == "run"
    assert "2 policies pooled" in found.summary()


def test_quantiles_among_completed_runs_need_runs_that_nobody_stopped() -> None:
    assert distribution(RUNS).quantile(0.5, among="completed").value == 50e9
    cut = distribution(stopped_at(RUNS, 80 * 10**9)).quantile(0.5, among="completed")
    assert "20 stopped run(s) might have completed" in str(cut)


def test_completion_allows_for_what_was_stopped() -> None:
    found = distribution(stopped_at(RUNS, 60 * 10**9)).completion()
    assert found.value == pytest.approx(0.6)
    assert isinstance(found.interval, Interval)
    assert found.note == "within $60, the most that was tried"


def test_the_report_is_in_dollars_and_names_the_naive_readings() -> None:
    found = distribution(stopped_at(RUNS, 60 * 10**9))
    assert "50 % of all runs complete within: $50 [$40, " in found.summary()
    assert "runs that were not stopped: $30" in found.explain()
    assert "<pre>cost_nusd per run: 60 completed" in found._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"column": "costs"}, "column: expected a column of numbers"),
        ({"column": "outcome"}, "outcome: expected a column of numbers"),
        ({"cluster": "country"}, "cluster: expected a column such as user, repo, session, run"),
        ({"by": "country"}, "by: expected columns of the table"),
        ({"level": "tree"}, 'level: expected "run" or "node"'),
        ({"confidence": 95}, "confidence: expected a number in (0, 1)"),
    ],
)
def test_a_wrong_question_is_refused_in_one_line(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        distribution(RUNS, **arguments)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_no_runs_give_no_figures() -> None:
    found = distribution(RUNS.iloc[:0])
    assert found.quantile(0.5).needs_n == 6
    assert found.summary().startswith("cost_nusd per run: none")


def test_two_kinds_of_run_are_named_in_dollars() -> None:
    rng = np.random.default_rng(1)
    dollars = np.concatenate([rng.lognormal(-2, 0.3, 300), rng.lognormal(1.5, 0.4, 200)])
    runs = pd.DataFrame({"run": range(500), "outcome": "completed", "cost_nusd": (dollars * 1e9).astype(np.int64)})
    found = distribution(runs).fit(resamples=39)
    assert found.mixture is not None
    assert [part.median for part in found.mixture.mixture.parts] == pytest.approx([0.135, 4.48], rel=0.1)
    assert f"Nothing above ${dollars.max():.4g} was seen" in found.summary()


def test_a_fit_draws_sample_family_and_mixture() -> None:
    rng = np.random.default_rng(1)
    calls = np.concatenate([rng.lognormal(2, 0.2, 200), rng.lognormal(5, 0.2, 100)]).astype(int)
    runs = pd.DataFrame({"run": range(300), "outcome": "completed", "calls": calls})
    whole = distribution(runs, "calls")
    ax = whole.plot_fit(Figure().subplots(), found=whole.fit(resamples=39))
    assert len(ax.lines) >= 3
    assert ax.get_xlabel() == "model calls"


def test_what_runs_of_each_ending_had_used_is_told_apart() -> None:
    outcome = ["completed"] * 60 + ["failed"] * 30 + ["exhausted"] * 10
    runs = pd.DataFrame({"run": range(100), "outcome": outcome, "calls": [*range(60), *range(100, 130), *[500] * 10]})
    found = distribution(runs, "calls", cluster=None).by_ending((0.5,)).set_index("ending")
    assert found["n_ending"].to_dict() == {"completed": 60, "stopped by a limit": 10, "failed or cancelled": 30}
    assert found["value"].to_dict() == {"completed": 29, "stopped by a limit": 500, "failed or cancelled": 114}
    assert found.loc["failed or cancelled", "low"] < 114 < found.loc["failed or cancelled", "high"]

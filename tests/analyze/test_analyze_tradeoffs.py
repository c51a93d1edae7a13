"""Ceilings with a price for failure, sizes of holds, both costs of a floor: hand-worked, and against known truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from harness_lab.analyze import cheapest_ceiling, first_call_floors, floor_costs, hold_sizes
from harness_lab.errors import InputError
from harness_lab.settlements import Settlements

SWE = Path(__file__).parents[2] / ".." / "shared" / "data" / "mini-swe-agent-traj" / "runs.csv"


def runs(usd: object, **columns: object) -> pd.DataFrame:
    spend = (np.asarray(usd, dtype=float) * 1e9).astype(np.int64)
    return pd.DataFrame({"run": range(spend.size), "outcome": "completed", "cost_nusd": spend, **columns})


def runaways(seed: int, n: int = 300) -> pd.DataFrame:
    """Make runs of which nine in ten complete within a dollar, and the rest fail at eleven."""
    rng = np.random.default_rng(seed)
    lost = rng.random(n) < 0.1
    usd = np.where(lost, 11.0, np.round(rng.uniform(0.1, 1.0, n), 2))
    return runs(usd, outcome=np.where(lost, "failed", "completed"))


def test_runaways_are_cut_where_the_last_good_run_ends() -> None:
    found = cheapest_ceiling(runaways(0), failure_usd=5)
    assert 0.9e9 <= found.ceiling <= 1.0e9
    assert found.alike[0] <= found.ceiling <= found.alike[1]
    assert "costs least when a failed run costs $5.00" in found.summary()


def test_a_free_failure_runs_nothing_and_says_so() -> None:
    assert "Hardly a run completes within it" in cheapest_ceiling(runaways(0), failure_usd=0.01).summary()


def test_a_dear_failure_wants_no_ceiling_where_long_runs_complete() -> None:
    found = cheapest_ceiling(runs(np.random.default_rng(0).lognormal(0, 1, 200)), failure_usd=1000)
    assert found.ceiling is None
    assert "no ceiling costs least" in found.summary()


def test_retries_cost_as_the_formula_says() -> None:
    found = cheapest_ceiling(runaways(1), failure_usd=5, retries=2)
    row = found.curve.iloc[-1]
    lost = 1 - row["completed_share"]
    attempts = 1 + lost + lost**2
    assert row["cost_usd"] == pytest.approx(row["spend_usd"] * attempts + 5 * lost**3)


def test_the_saving_is_measured_on_runs_that_did_not_choose_and_covers() -> None:
    truth = 0.1 * (11 - 1.0)  # a ceiling at the last good run saves ten dollars in one run of ten
    hits = [cheapest_ceiling(runaways(seed), failure_usd=5).saving.holds(truth) for seed in range(60)]
    assert binomtest(sum(map(bool, hits)), 60, 0.95, alternative="less").pvalue > 0.01


def test_stopped_runs_are_made_up_for() -> None:
    rng = np.random.default_rng(3)
    true = rng.lognormal(0, 0.5, 4000)
    cap = rng.choice([0.8, 1.5, 50.0], 4000)
    cut = runs(
        np.minimum(true, cap), outcome=np.where(true > cap, "exhausted", "completed"), stopped_by="cost-exhausted"
    )
    whole = cheapest_ceiling(runs(true), failure_usd=2).curve
    found = cheapest_ceiling(cut, failure_usd=2).curve
    at = [1.0, 1.4, 2.0]
    share = [np.interp(at, part["ceiling"] / 1e9, part["completed_share"]) for part in (whole, found)]
    assert share[1] == pytest.approx(share[0], abs=0.03)
    naive = np.mean((np.minimum(true, cap)[:, None] <= np.array(at)) & (true <= cap)[:, None], axis=0)
    assert abs(naive - share[0]).max() > 0.15


def test_nothing_is_said_beyond_the_stop_that_all_have() -> None:
    usd = np.random.default_rng(4).lognormal(0, 1, 300)
    cut = runs(np.minimum(usd, 2), outcome=np.where(usd > 2, "exhausted", "completed"), stopped_by="cost-exhausted")
    assert cheapest_ceiling(cut, failure_usd=9).beyond == 2e9


def test_few_runs_are_declined() -> None:
    found = cheapest_ceiling(runs(range(1, 30)), failure_usd=1)
    assert (found.ceiling, found.saving.needs_n) == (None, 50)
    assert "needs n >= 50" in found.summary()


def test_misuse_is_named() -> None:
    with pytest.raises(InputError, match=r"^failure_usd"):
        cheapest_ceiling(runaways(0), failure_usd=-1)
    with pytest.raises(InputError, match=r"^pool"):
        hold_sizes(runaways(0), pool=0, at_once=4)
    with pytest.raises(InputError, match=r"^unit"):
        floor_costs(runaways(0), unit="bits")


def test_a_hand_worked_hold() -> None:
    found = hold_sizes(runs([1.0] * 40), pool=2.5e9, at_once=4, holds=[0.5e9, 1e9, 2e9], level="run").frame
    assert found["admitted"].tolist() == [4, 2, 1]
    assert found["overshoot_chance"].tolist() == [1, 0, 0]  # four use 4 of 2.5
    assert found["overshoot"].tolist() == [1.5e9, 0, 0]
    assert found["false_refusals"].tolist() == [0, 0, 0.25]  # two would have fitted, one is admitted
    assert found["idle"].tolist() == [0, 0, 0.5]


def test_a_larger_hold_overshoots_less_and_refuses_more() -> None:
    usd = np.random.default_rng(0).lognormal(0, 0.7, 3000)
    found = hold_sizes(runs(usd), pool=6e9, at_once=5, level="run")
    curve = found.frame
    assert (curve["overshoot_chance"].diff().dropna() <= 0).all()
    assert (curve["false_refusals"].diff().dropna() >= 0).all()
    safe = curve[curve["hold"] == found.smallest(0.05)].iloc[0]
    assert safe["overshoot_chance_high"] <= 0.05


def test_the_interval_of_an_overshoot_covers_with_clustered_uses() -> None:
    def world(seed: int, users: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        user = np.repeat(np.arange(users), 20)
        return runs(np.exp(rng.normal(0, 0.5, users)[user] + rng.normal(0, 0.5, user.size)), user=user.astype(str))

    big = hold_sizes(world(99, 20_000), pool=6e9, at_once=4, holds=[1e9], level="run").frame
    truth = float(big["overshoot_chance"].iloc[0])
    rows = [hold_sizes(world(s, 25), pool=6e9, at_once=4, holds=[1e9], level="run").frame.iloc[0] for s in range(60)]
    held = sum(row["overshoot_chance_low"] <= truth <= row["overshoot_chance_high"] for row in rows)
    assert binomtest(held, 60, 0.95, alternative="less").pvalue > 0.01


def test_both_costs_of_a_floor_by_hand() -> None:
    nodes = pd.DataFrame({
        "run": range(4), "input_total": [100, 200, 300, 400], "ask_input": [150, 250, 350, 350],
        "outcome": ["completed", "failed", "completed", "completed"],
    })  # fmt: skip
    found = floor_costs(nodes, candidates=[200, 300])
    assert found.asks == "recorded"
    assert found.frame["falsely_refused"].tolist() == [0.5, 0.5]  # of runs 0 and 2; run 3 used more than it asked for
    assert found.frame["doomed_through"].tolist() == [1.0, 0.5]
    assert floor_costs(nodes, ask=1000, candidates=[500]).frame["refused"].tolist() == [0]


@pytest.mark.skipif(not SWE.is_file(), reason="recorded runs are not here")
def test_one_repositorys_floor_refuses_57_of_225_runs_elsewhere_49_of_them_solved() -> None:
    table = pd.read_csv(SWE)
    repo = table["instance_id"].str.rsplit("-", n=1).str[0]
    lowest = table.groupby(repo)["prompt_tokens"].min()
    found = set()
    for name, floor in lowest.items():
        rest = table[repo != name]
        nodes = pd.DataFrame({"run": rest["instance_id"], "outcome": "completed", "input_total": rest["prompt_tokens"]})
        curve = floor_costs(nodes.assign(delivered=rest["resolved"] == 1), candidates=[floor]).frame.iloc[0]
        found.add((int(curve["refused"]), len(rest), int(curve["refused_good"])))
    assert (57, 225, 49) in found


def test_first_call_floors_come_from_first_prompts_however_the_run_ended() -> None:
    nodes = {"run": ["a", "b"], "node": ["0", "0"], "outcome": ["failed", "completed"], "backend": "x", "model": "m"}
    calls = pd.DataFrame({
        "run": ["a", "a", "b"], "node": ["0", "0", "0"], "call": [0, 1, 0], "attempt": [0, 0, 0], "kind": "model",
        "input_total": [700, 900, 800],
    })  # fmt: skip
    found = first_call_floors(Settlements.from_columns(nodes | {"input_total": [1600, 800]}, calls)).records()[0]
    assert (found["floor"], found["second_lowest"], found["n"]) == (700, 800, 2)


def test_the_curves_can_be_drawn() -> None:
    for found in (
        cheapest_ceiling(runaways(0), failure_usd=5),
        hold_sizes(runaways(0), pool=5e9, at_once=3, level="run"),
        floor_costs(runaways(0).assign(input_total=1000)),
    ):
        assert found.plot().get_ylabel()
        assert len(found.to_frame())
        assert "Next:" in found.explain()
        assert found._repr_html_().startswith("<pre>")

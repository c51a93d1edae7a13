"""Honest numbers that mislead, on recorded runs: each trap is there, and the analysis says so by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness_lab.analyze import (
    cap_check,
    ceiling,
    ceiling_curve,
    distribution,
    first_call_floors,
    flat_price,
    floor_costs,
    floors,
    period_budget,
    run_table,
)
from harness_lab.settlements import Settlements
from harness_lab.stats import kaplan_meier

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="recorded runs are not here")
RATES = {"claude-opus": (5.0, 25.0), "claude-sonnet": (3.0, 15.0)}
"""Dollars per million tokens of fresh input and of output."""


@pytest.fixture(scope="module")
def swe() -> pd.DataFrame:
    table = pd.read_csv(DATA / "mini-swe-agent-traj" / "runs.csv")
    return pd.DataFrame({
        "run": table["instance_id"], "node": "0", "agent": "a", "backend": "b", "model": "m", "outcome": "completed",
        "cost_nusd": (table["instance_cost"] * 1e9).round().astype("int64"), "delivered": table["resolved"] == 1,
        "input_total": table["prompt_tokens"], "first": table["first_prompt_tokens"],
    })  # fmt: skip


@pytest.fixture(scope="module")
def calls() -> pd.DataFrame:
    table = pd.read_csv(DATA / "claude-code-transcripts" / "calls.csv")
    table = table[table["duplicate_of_other_file"].fillna(0) == 0]
    fresh, short, long, read = (
        table[name].fillna(0) for name in ("input_tokens", "cache_write_5m", "cache_write_1h", "cache_read_tokens")
    )
    rate = table["model"].str.extract("^(claude-[a-z]+)")[0].map(RATES)
    spent = rate.str[0] * (fresh + 1.25 * short + 2 * long + 0.1 * read) + rate.str[1] * table["output_tokens_recorded"]
    return table.assign(cost_nusd=spent * 1e3, whole=fresh + short + long + read)


@pytest.fixture(scope="module")
def turns(calls: pd.DataFrame) -> pd.DataFrame:
    found = calls.groupby(["session", "turn"], sort=False)["cost_nusd"].sum().round().astype("Int64").reset_index()
    return found.assign(run=range(len(found)), outcome="completed", node="0")


def test_a_thousand_turns_of_the_same_sessions_count_as_some_hundred(turns: pd.DataFrame) -> None:
    clustered, naive = (distribution(turns, cluster=name).quantile(0.5) for name in ("auto", None))
    assert len(turns) > 1000
    assert clustered.effective_n is not None
    assert clustered.effective_n < 350
    width, plain = ((one.high or 0) - (one.low or 0) for one in (clustered, naive))
    assert width > 1.3 * plain
    assert "session" in distribution(turns).summary()


def test_limits_that_follow_the_difficulty_are_found_out_and_worst_cases_hold_the_truth(swe: pd.DataFrame) -> None:
    true = swe["cost_nusd"].to_numpy(dtype=np.float64)
    guess = np.argsort(np.argsort(true * np.random.default_rng(0).lognormal(0, 0.5, true.size))) / true.size
    cap = np.select([guess < 1 / 3, guess < 2 / 3], [0.35, 0.5], 0.9) * 1e9
    capped = swe.assign(
        outcome=np.where(true > cap, "exhausted", "completed"), ceiling_cost=cap.astype(np.int64),
        cost_nusd=np.minimum(true, cap).astype(np.int64),
    )  # fmt: skip
    found = cap_check(capped)
    assert found.dependent
    low, high = found.worst[0.5]
    assert low <= np.median(true) <= (high or np.inf)


def test_failures_taken_for_stops_make_completion_look_several_times_better() -> None:
    table = pd.read_csv(DATA / "trae-trajectory" / "runs.csv")
    words = {"completed": "completed", "provider_or_parse_error": "failed", "killed": "cancelled"}
    kind = table["end_kind"].map(words).fillna("failed")
    kind[table["end_kind"] == "limit_time"] = "exhausted"
    runs = pd.DataFrame({"run": table["run"], "outcome": kind, "calls": table["llm_calls"].clip(lower=1)})
    honest = distribution(runs, "calls", cluster=None).completion().value
    naive = 1 - kaplan_meier(runs["calls"], (kind == "completed").to_numpy()).survival[-1]
    assert honest == pytest.approx((kind == "completed").mean(), abs=0.01)
    assert naive > 3 * honest


def test_dear_runs_deliver_less_often_and_delivery_stands_beside_the_ceiling(swe: pd.DataFrame) -> None:
    runs = run_table(swe)
    fifth = pd.qcut(runs["cost_nusd"].astype(float), 5, labels=False)
    delivered = runs["delivered"].astype(float).groupby(fifth).mean()
    assert [round(delivered.iloc[k], 2) for k in (0, 4)] == [0.90, 0.56]
    row = ceiling_curve(swe, candidates=[500_000_000], cluster=None).iloc[0]
    assert 0 < row["delivered_cut"] < row["runs_cut"]
    assert "delivered: " in ceiling(swe, cluster=None).summary()


def test_every_figure_of_cost_has_outcome_and_delivery_beside_it(swe: pd.DataFrame) -> None:
    shares = distribution(swe, cluster=None).fifths()
    assert [round(shares["delivered"].iloc[k], 2) for k in (0, 4)] == [0.90, 0.56]
    assert "Delivered: 89.6 % of the fifth that used least, 56.2 %" in distribution(swe).summary()
    told = "Of these runs 240 of 240 completed, 183 delivered."
    assert told in flat_price(swe, cluster=None).summary()
    assert told in period_budget(swe, budget_usd=50, period_runs=100, cluster=None, samples=5).summary()


def test_limits_that_differ_are_pointed_at_where_quantiles_are_read(swe: pd.DataFrame) -> None:
    cap = np.where(np.arange(len(swe)) % 2, 4, 8) * 10**8
    stopped = swe["cost_nusd"] > cap
    capped = swe.assign(ceiling_cost=cap, outcome=np.where(stopped, "exhausted", "completed"),
                        cost_nusd=np.minimum(swe["cost_nusd"], cap))  # fmt: skip
    assert "Limits differed (2 of them): cap_check(...)" in distribution(capped).summary()
    assert "Limits differed" not in distribution(swe).summary()


def test_the_floor_of_one_repository_refuses_solved_runs_elsewhere(swe: pd.DataFrame) -> None:
    mine = swe["run"].str.startswith("matplotlib")
    floor = floors(swe[mine].drop(columns="first")).records()[0]["floor"]
    elsewhere = swe[~mine].drop(columns="first")
    row = floor_costs(elsewhere, candidates=[floor]).to_frame().iloc[0]
    assert (len(elsewhere), (elsewhere["input_total"] < floor).sum()) == (225, 57)
    assert round(row["falsely_refused"] * row["n_good"]) == 49


def first_prompts(frame: pd.DataFrame, prompt: pd.Series[Any]) -> pd.DataFrame:
    return pd.DataFrame({
        "run": frame["run"], "node": "0", "call": 0, "attempt": 0, "kind": "model", "model": "m", "input_total": prompt,
    })  # fmt: skip


def test_a_floor_far_above_the_first_prompt_is_said_to_measure_tasks(swe: pd.DataFrame) -> None:
    nodes = swe.drop(columns="first")
    found = floors(Settlements.from_columns(nodes, first_prompts(swe, swe["first"]))).records()[0]
    assert (found["floor"], found["startup_cost"]) == (74_081, 1_321)
    assert "measures tasks, not set-up: 56 times the start-up cost of 1,321" in str(found["note"])


def test_a_first_prompt_that_one_session_alone_has_is_said_to_rest_on_one_row(calls: pd.DataFrame) -> None:
    first = calls.sort_values("ts").groupby("session", sort=False).first()
    mine = first[first["cc_version"] == "2.1.37"].reset_index().rename(columns={"session": "run"})
    nodes = {"run": mine["run"], "node": "0", "agent": "a", "backend": "b", "model": "m", "outcome": "completed",
             "input_total": mine["whole"].astype("int64")}  # fmt: skip
    prompts = first_prompts(mine, mine["whole"].astype("int64"))
    found = first_call_floors(Settlements.from_columns(nodes, prompts)).records()[0]
    assert (found["floor"], found["second_lowest"], found["n"]) == (26_579, 43_404, 20)
    assert "rests on one row: the next is 43,404, 63.3 % higher" in str(found["note"])


def test_a_run_that_says_itself_that_it_failed_is_no_floor() -> None:
    rows = pd.DataFrame({
        "run": ["tiny", "whole", "other"], "agent": "a", "backend": "b", "model": "m", "outcome": "completed",
        "input_total": [2_851, 214_925, 230_000], "delivered": [False, True, True],
    })  # fmt: skip
    assert floors(rows).records()[0]["floor"] == 214_925
    assert floors(rows.assign(delivered=pd.NA)).records()[0]["floor"] == 2_851  # nobody knows that it failed


def test_a_ceiling_sinks_more_in_the_turns_it_cuts_than_it_avoids(turns: pd.DataFrame) -> None:
    row = ceiling_curve(turns, candidates=[2_770_000_000]).iloc[0]
    assert row["cut_share"] == pytest.approx(0.051, abs=0.002)
    assert row["avoided_share"] == pytest.approx(0.129, abs=0.003)
    assert row["sunk_share"] == pytest.approx(0.185, abs=0.005)


PAGE = DATA.parent / "spec" / "misleading-numbers.md"
TRAPS = {
    "clustered runs make n look larger": (
        "analyze/test_misleading_numbers:test_a_thousand_turns_of_the_same_sessions_count_as_some_hundred",
        "analyze/test_analyze_distribution:test_the_effective_n_of_240_runs_in_11_repositories_is_about_40",
        "analyze/test_analyze_ceilings:test_too_few_clusters_decline_and_say_how_many_are_needed",
        "analyze/test_coverage_of_results:test_intervals_of_results_cover_clustered_truth",
    ),
    "harder tasks get larger caps": (
        "analyze/test_misleading_numbers:test_limits_that_follow_the_difficulty_are_found_out_and_worst_cases_hold_the_truth",
        "analyze/test_misleading_numbers:test_limits_that_differ_are_pointed_at_where_quantiles_are_read",
        "analyze/test_analyze_by_group:test_limits_that_depend_on_the_kind_of_task_are_tested_within_each_kind",
    ),
    "failures treated as censored": (
        "analyze/test_misleading_numbers:test_failures_taken_for_stops_make_completion_look_several_times_better",
        "analyze/test_analyze_distribution:test_failures_and_stops_together_worked_by_hand",
    ),
    "survivorship": (
        "analyze/test_misleading_numbers:test_dear_runs_deliver_less_often_and_delivery_stands_beside_the_ceiling",
        "analyze/test_misleading_numbers:test_every_figure_of_cost_has_outcome_and_delivery_beside_it",
    ),
    "a floor that measures tasks": (
        "analyze/test_misleading_numbers:test_a_floor_far_above_the_first_prompt_is_said_to_measure_tasks",
        "analyze/test_misleading_numbers:test_the_floor_of_one_repository_refuses_solved_runs_elsewhere",
    ),
    "a floor that hangs on one row": (
        "analyze/test_misleading_numbers:test_a_first_prompt_that_one_session_alone_has_is_said_to_rest_on_one_row",
    ),
    "completed is not delivered": (
        "analyze/test_misleading_numbers:test_a_run_that_says_itself_that_it_failed_is_no_floor",
    ),
    "a ceiling destroys spend": (
        "analyze/test_misleading_numbers:test_a_ceiling_sinks_more_in_the_turns_it_cuts_than_it_avoids",
        "analyze/test_analyze_ceilings:test_the_report_shows_what_a_ceiling_destroys_beside_what_it_saves",
    ),
    "a promise checked on half the data": (
        "analyze/test_ceilings_held_out:test_a_promise_made_on_one_half_holds_on_the_other_or_the_drift_says_why",
    ),
    "agents adapt": (
        "simulate/test_lively_agents:test_results_say_that_agents_are_oblivious_and_show_one_run_that_winds_down",
        "simulate/test_lively_agents:test_a_replay_shows_one_run_that_winds_down",
    ),
    "price, mix and length change together": (
        "analyze/test_analyze_watch:test_a_hand_worked_split",
        "analyze/test_analyze_watch:test_the_effects_and_the_volume_sum_to_the_change",
    ),
    "repricing recorded tokens": ("analyze/test_analyze_prices:test_another_model_is_labelled_price_effect_only",),
}
"""Each trap that is known, by how its row begins, and the tests of its remedy."""


def test_every_trap_that_is_known_has_its_tests() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row not in ("trap", "---")]
    assert [row for row in rows if not any(row.startswith(start) for start in TRAPS)] == []
    assert len(rows) == len(TRAPS)
    tests = Path(__file__).parents[1]
    for named in TRAPS.values():
        for one in named:
            file, _, name = one.partition(":")
            assert f"def {name}(" in (tests / f"{file}.py").read_text("utf-8"), one

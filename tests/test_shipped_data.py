"""The synthetic data: the generator gives them again, they keep what they promise, and their truth is true."""

from __future__ import annotations

import csv
import io
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from harness_lab.datasets import data_dir, load_synthetic_runs, load_synthetic_truth

if TYPE_CHECKING:
    from types import ModuleType

    from harness_lab.settlements import Settlements


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    sys.path.insert(0, str(data_dir()))
    try:
        import make_sample
    finally:
        sys.path.pop(0)
    return make_sample


@pytest.fixture(scope="module")
def shipped() -> Settlements:
    return load_synthetic_runs()


def test_the_generator_gives_the_shipped_frames_again(generator: ModuleType, shipped: Settlements) -> None:
    again = generator.make_settlements()
    pd.testing.assert_frame_equal(again.nodes, shipped.nodes)
    pd.testing.assert_frame_equal(again.calls, shipped.calls)


def test_another_seed_gives_other_runs(generator: ModuleType, shipped: Settlements) -> None:
    assert not generator.make_settlements(1).nodes["calls"].equals(shipped.nodes["calls"])


def test_the_messy_file_is_the_generators(generator: ModuleType, shipped: Settlements) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(generator.messy_lines(shipped))
    assert text.getvalue() == (data_dir() / "synthetic_messy.csv").read_text(encoding="utf-8")


def test_there_are_enough_runs_of_every_kind(shipped: Settlements) -> None:
    nodes = shipped.nodes
    assert nodes["run"].nunique() >= 2_000
    assert nodes.groupby(["agent", "backend", "model", "context"]).ngroups == 3
    share = nodes["outcome"].value_counts(normalize=True)
    assert 0.25 <= share["exhausted"] <= 0.30
    assert 0.04 <= share["failed"] <= 0.06
    assert 0.02 <= (~nodes["usage_known"]).mean() <= 0.04
    assert set(nodes["stopped_by"].dropna()) == {"cost-exhausted", "steps-exhausted"}


def test_trees_hang_together(shipped: Settlements) -> None:
    nodes = shipped.nodes
    roots = nodes[nodes["parent"].isna()]
    assert set(roots["agent"]) == {"lead"}
    assert roots["run"].is_unique
    children = nodes[nodes["parent"].notna()].groupby("run").size().reindex(roots["run"], fill_value=0)
    assert roots["starts"].tolist() == children.tolist()


def test_a_node_is_the_sum_of_its_calls(shipped: Settlements) -> None:
    assert shipped.calls is not None
    sums = shipped.calls.groupby(["run", "node"])[["input_total", "output", "cost_nusd"]].sum()
    nodes = shipped.nodes.set_index(["run", "node"])
    known = nodes[nodes["usage_known"]]
    pd.testing.assert_frame_equal(known[[*sums]], sums.loc[known.index], check_index_type=False)
    assert shipped.calls.groupby(["run", "node"]).size().loc[nodes.index].tolist() == nodes["calls"].tolist()


def test_a_stopped_node_has_reached_a_ceiling_and_no_other_went_on_past_one(shipped: Settlements) -> None:
    nodes = shipped.nodes[shipped.nodes["usage_known"]]
    stopped = nodes[nodes["outcome"] == "exhausted"]
    by_cost = stopped["stopped_by"] == "cost-exhausted"
    assert (stopped["cost_nusd"] >= stopped["ceiling_cost"])[by_cost].all()
    assert (stopped["calls"] == stopped["ceiling_calls"])[~by_cost].all()
    assert (nodes["calls"] <= nodes["ceiling_calls"]).dropna().all()


def test_prompts_grow_and_are_mostly_read_from_the_cache(shipped: Settlements) -> None:
    calls = shipped.calls
    assert calls is not None
    growth = calls.groupby(["run", "node"])["input_total"].diff().dropna()
    assert (growth > 0).all()
    later = calls[calls["call"] > 0]
    assert 0.7 < later["cache_read"].sum() / later["input_total"].sum() < 0.95


def test_no_first_prompt_lies_below_the_true_start_up_cost(shipped: Settlements) -> None:
    assert shipped.calls is not None
    first = shipped.calls[shipped.calls["call"] == 0].merge(shipped.nodes[["run", "node", "agent"]], on=["run", "node"])
    smallest = first.groupby("agent")["input_total"].min()
    for record in load_synthetic_truth():
        if record["quantity"] == "startup_cost":
            assert record["value"] <= smallest[record["agent"]] <= 1.02 * record["value"]


def test_ceilings_were_assigned_without_a_look_at_the_task(shipped: Settlements) -> None:
    """Users' mean ceiling does not go with their completed nodes' calls: a permutation of users does as well."""
    leads = shipped.where(agent="lead").nodes
    free = leads[leads["ceiling_cost"].isna() & leads["ceiling_calls"].isna()]
    limited = leads["ceiling_cost"].notna() | leads["ceiling_calls"].notna()
    pairs = pd.concat([free.groupby("user")["calls"].mean(), limited.groupby(leads["user"]).mean()], axis=1).dropna()
    correlation = np.corrcoef(pairs.to_numpy(dtype=float).T)[0, 1]
    assert abs(correlation) < 3 / np.sqrt(len(pairs))


def test_the_truth_lists_every_quantity_of_every_path(shipped: Settlements) -> None:
    truth = pd.DataFrame(load_synthetic_truth())
    assert len(truth) == 30
    assert pd.crosstab(truth["agent"], truth["quantity"]).to_numpy().tolist() == [[1, 6, 2, 1]] * 3
    paths = shipped.nodes[["agent", "backend", "model", "context"]].drop_duplicates()
    assert len(truth[["agent", "backend", "model", "context"]].drop_duplicates().merge(paths)) == 3
    assert (truth["mc_error"] >= 0).all()


def check_truth(generator: ModuleType, *, draws: int) -> None:
    """Fresh draws agree with the shipped truth within five standard errors of the difference."""
    fresh = generator.truth(draws, seed=7)
    for ours, shipped_record in zip(fresh, load_synthetic_truth(), strict=True):
        results = dict.fromkeys(("value", "mc_error", "method"))
        assert ours | results == shipped_record | results
        error = np.hypot(ours["mc_error"], shipped_record["mc_error"])
        slack = 1 if shipped_record.get("column") == "calls" else 0  # whole numbers
        assert abs(ours["value"] - shipped_record["value"]) <= 5 * error + slack


def test_the_truth_comes_out_again_on_fresh_draws(generator: ModuleType) -> None:
    check_truth(generator, draws=15_000)


@pytest.mark.slow
def test_the_truth_comes_out_again_on_many_fresh_draws(generator: ModuleType) -> None:
    check_truth(generator, draws=200_000)


def test_the_data_stay_small() -> None:
    assert sum(path.stat().st_size for path in data_dir().iterdir() if path.is_file()) < 3_000_000

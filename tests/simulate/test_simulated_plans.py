"""A plan in virtual time: what it costs, what is awaited, and what adding percentiles would have said."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma

from harness_lab.agents import Harness
from harness_lab.clock import Time
from harness_lab.delegation import DispatchNode, OuterPlan
from harness_lab.errors import InputError
from harness_lab.policies import shared_ledger, tree_limits, unlimited
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import explain, sweep
from harness_lab.simulate.plan import PlanExperiment, PlanRuntime, plan_provider, plan_workload, scaled
from harness_lab.simulate.plan_result import PlanResult, simulate_plan, sum_of_percentiles_error
from harness_lab.simulate.rows import Rows, nodes_frame
from harness_lab.simulate.workload import AgentProfile
from harness_lab.stats.distributions import Distribution

CONSTANT = Distribution.constant
HUNDRED = CONSTANT(100)
AGENT = AgentProfile(model="any", calls=CONSTANT(2), startup_tokens=CONSTANT(1000))
PRICES = PriceTable({"m": (Price.usd_per_million(input=1, output=10),)})


def _provider(output: Distribution = HUNDRED, **models: ModelProfile) -> MockProvider:
    model = ModelProfile(output_tokens=output, latency_s=CONSTANT(1))
    return MockProvider(models={"m": model, **models}, prices=PRICES)


def _node(name: str, effort: str = "medium", *, background: bool = False, batch: bool = False) -> DispatchNode:
    return DispatchNode(name, "claude", "m", effort, "p", {}, background=background, batch=batch)


def _simulate(*nodes: DispatchNode, output: Distribution = HUNDRED, runs: int = 8, **options: object) -> PlanResult:
    plan = OuterPlan(nodes)
    return simulate_plan(plan, agents={"claude": AGENT}, provider=_provider(output), runs=runs, **options)  # type: ignore[arg-type]


def test_effort_scales_output_and_batch_halves_the_price() -> None:
    parts = _simulate(_node("a"), _node("b", "max"), _node("c", batch=True)).parts("cost")
    # two calls: 1000 and 1000 + output tokens of prompt at $1, output at $10 a million
    own = {"a": (2100 + 10 * 200) / 1e6, "b": (2400 + 10 * 800) / 1e6, "c": (2100 + 10 * 200) / 2e6}
    assert parts.iloc[0].to_dict() == pytest.approx(own)


def test_a_variant_that_the_provider_has_is_taken_as_it_is() -> None:
    slow = ModelProfile(output_tokens=CONSTANT(7), latency_s=CONSTANT(9))
    provider = plan_provider(OuterPlan((_node("a", "turbo"),)), _provider(**{"m@turbo": slow}))
    assert provider.models["m@turbo"] == slow
    assert provider.prices.models["m@turbo"] == PRICES.models["m"]


def test_the_plan_does_not_wait_for_the_background_and_the_run_does() -> None:
    result = _simulate(_node("a"), _node("b", background=True), _node("c"))
    nodes = result.result.settlements.nodes
    first = nodes[nodes["run"] == "0"].set_index("agent")
    assert first.loc[["a", "b", "c", "(plan)"], "start_ns"].tolist() == [0, 2_000_000_000, 2_000_000_000, 0]
    assert result.parts("time").columns.tolist() == ["a", "c"]
    assert result.total(0.5, of="time").value == 4.0
    assert result.total(0.5, of="tokens").value == 3 * 2300


def test_a_background_node_that_ends_last_is_in_the_run_and_not_in_the_plans_time() -> None:
    result = _simulate(_node("a"), _node("b", background=True))
    nodes = result.result.settlements.nodes
    assert nodes.loc[nodes["agent"] == "(plan)", "duration_ns"].unique().tolist() == [4_000_000_000]
    assert result.total(0.5, of="time").value == 2.0


@pytest.mark.parametrize("background", [False, True])
def test_a_time_limit_stops_the_background_too(background: bool) -> None:
    policy = shared_ledger(100, max_seconds=3)
    result = _simulate(_node("a", background=background), _node("b"), policy=policy, runs=2)
    nodes = result.result.settlements.nodes
    assert (nodes["start_ns"] + nodes["duration_ns"]).max() <= 3_000_000_000
    assert result.completed == (2 if background else 0)


def test_cancelling_the_run_cancels_the_background_and_waits_for_it() -> None:
    plan = OuterPlan((_node("a", background=True), _node("b")))
    root = plan_workload(plan, {"claude": AGENT}).compile()["(plan)"]
    runtime, rows = PlanRuntime(), Rows()
    harness = Harness(runtime, unlimited().start("0"), plan_provider(plan, _provider()).compile(), rows)
    run = harness.run("(plan)", (None,) * 5, partial(root.brain, 1, runtime))  # type: ignore[call-arg]
    runtime.root = runtime.kernel.spawn(runtime.until(Time(1_500_000_000), run))
    runtime.kernel.run()
    nodes = nodes_frame(rows.nodes, policy="p", scenario="s", backend="b").set_index("agent")
    assert nodes["outcome"].to_dict() == {"a": "cancelled", "b": "cancelled", "(plan)": "cancelled"}
    assert set(nodes["start_ns"] + nodes["duration_ns"]) == {1_500_000_000}


def test_a_node_that_is_refused_ends_the_plan() -> None:
    result = _simulate(_node("a"), _node("b"), _node("c"), policy=tree_limits(None, None, 1), runs=1)
    nodes = result.result.settlements.nodes.set_index("agent")
    assert nodes["outcome"].to_dict() == {"a": "completed", "b": "denied", "(plan)": "failed"}
    assert result.parts("cost").loc["0", ["b", "c"]].tolist() == [0.0, 0.0]


def test_same_seed_same_rows_for_any_number_of_workers_and_for_a_run_alone() -> None:
    plan = OuterPlan((_node("a"), _node("b", background=True), _node("c")))
    provider = plan_provider(plan, _provider(Distribution.of("lognorm", s=1, scale=100)))
    policies = (shared_ledger(5),)
    experiment = PlanExperiment(
        workload=plan_workload(plan, {"claude": AGENT}), provider=provider, policies=policies, runs=20
    )
    whole = experiment.run()
    assert experiment.run(backend="loky", workers=2).digest() == whole.digest()
    nodes = whole.settlements.nodes
    alone = experiment.run(only=[7]).settlements.nodes
    assert alone["cost_nusd"].tolist() == nodes.loc[nodes["run"] == "7", "cost_nusd"].tolist()
    story = explain(experiment, 7)
    assert story.nodes["cost_nusd"].tolist() == alone["cost_nusd"].tolist()
    assert (story.events["event"] == "settle").sum() == story.nodes["attempts"].sum()
    assert "or a plan" in sweep(experiment, "calls", [2]).reasons[0]
    with pytest.raises(InputError, match="kernel"):
        experiment.run(engine="asyncio")


def test_the_report_says_how_far_adding_percentiles_would_have_misled() -> None:
    result = _simulate(
        *(_node(f"n{i}") for i in range(6)), output=Distribution.of("lognorm", s=1, scale=500), runs=1000
    )
    found = result.sum_of_percentiles_error(0.9)
    assert found.error.value is not None
    assert found.error.low is not None
    assert found.error.low > 0.1
    assert "over-states" in result.summary()
    assert result.to_frame()["of"].unique().tolist() == ["cost", "tokens", "time"]
    assert result.total(0.9).n == 1000
    assert "needs n >= " in str(_simulate(_node("a"), runs=20).total(0.9))


def test_the_error_of_ten_exponential_parts_is_that_of_the_gamma_distribution() -> None:
    parts = np.random.default_rng(1).exponential(size=(4000, 10))
    found = sum_of_percentiles_error(parts, 0.9)
    truth = 10 * np.log(10) / gamma(10).ppf(0.9) - 1  # 62 %
    assert found.error.holds(truth)
    assert truth == pytest.approx(0.6207, abs=1e-3)
    assert "over-states" in found.summary()


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 9))
def test_parts_that_move_together_can_be_added(k: int, q: float, seed: int) -> None:
    one = np.sort(np.random.default_rng(seed).integers(1, 100, 60))
    found = sum_of_percentiles_error(np.outer(one, np.arange(1, k + 1)), q)
    assert found.error.value == pytest.approx(0)


@pytest.mark.parametrize("parts", [[1.0, 2.0], [[1.0, float("nan")]], np.empty((3, 0))])
def test_parts_that_are_no_table_of_numbers_are_refused(parts: object) -> None:
    with pytest.raises(InputError, match="one row a run"):
        sum_of_percentiles_error(parts)  # type: ignore[arg-type]


def test_unknown_prices_give_no_cost_and_known_tokens() -> None:
    model = ModelProfile(output_tokens=CONSTANT(1), latency_s=CONSTANT(1))
    plan = OuterPlan((_node("a"),))
    result = simulate_plan(plan, agents={"claude": AGENT}, provider=MockProvider(models={"m": model}), runs=50)
    with pytest.raises(InputError, match="unknown for"):
        result.total(0.5)
    assert result.total(0.5, of="tokens").value == 2003
    assert "cost: not known" in result.summary()
    assert result.to_frame()["of"].unique().tolist() == ["tokens", "time"]


def test_what_a_plan_lacks_is_said_before_anything_runs() -> None:
    with pytest.raises(InputError, match=r"effort of node 'a'.*low, medium, high, max"):
        plan_provider(OuterPlan((_node("a", "heroic"),)), _provider())
    with pytest.raises(InputError, match="for its target 'claude'"):
        plan_workload(OuterPlan((_node("a"),)), {"codex": AGENT})
    with pytest.raises(InputError, match="nodes of the plan"):
        plan_workload(OuterPlan(()), {})


@pytest.mark.parametrize(
    "dist", [CONSTANT(3), Distribution.empirical([1, 2, 9]), Distribution.of("gamma", a=2, high=3)]
)
def test_a_scaled_distribution_has_scaled_quantiles(dist: Distribution) -> None:
    q = np.linspace(0.05, 0.95, 7)
    assert scaled(dist, 2).ppf(q) == pytest.approx(2 * dist.ppf(q))

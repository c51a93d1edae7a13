"""Other people's limiters simulated on common luck, beside the closest of ours and beside what an export reads back.

These tests run inside the environment that has the packages (``test_inside`` starts them there), and are skipped
elsewhere.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from asked_tree import needs

from harness_lab import Distribution, MockProvider, ModelProfile, Price, PriceTable
from harness_lab.adapters import named, policy
from harness_lab.export import export
from harness_lab.policies import call_holds, compose, iteration_budget, reservation_pool, shared_ledger, tree_limits
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from harness_lab.policies import PolicySpec

pytestmark = pytest.mark.filterwarnings("default")  # what the packages warn of is not ours
PRICES = PriceTable({"m": (Price.usd_per_million(input=3.0, output=15.0),)})


def both(theirs: PolicySpec, ours: PolicySpec, *, tree: bool, failing: float) -> tuple[Any, Any]:
    """Return the nodes of the same runs under two policies; children are declared 4 calls."""
    calls, start = Distribution.empirical([1, 2, 3, 5, 8]), Distribution.constant(1000)
    one = AgentProfile(model="m", calls=calls, startup_tokens=start, max_attempts=3)
    below = (Spawn(agent="one", count=2, budget=amounts(calls=4)),) if tree else ()
    root = AgentProfile(model="m", calls=calls, startup_tokens=start, max_attempts=3, spawns=below)
    model = ModelProfile(
        output_tokens=Distribution.constant(100), latency_s=Distribution.empirical([1, 2, 4]), error_rate=failing,
        timeout_rate=failing / 2, timeout_s=9.0, unreported_rate=failing / 4,
    )  # fmt: skip
    provider = MockProvider(models={"m": model}, prices=PRICES)
    work, named_two = Workload(agents={"root": root, "one": one}, root="root"), ("theirs", "ours")
    policies = tuple(replace(spec, name=name) for spec, name in zip((theirs, ours), named_two, strict=True))
    experiment = Experiment(workload=work, provider=provider, policies=policies, runs=40)
    nodes = experiment.run(backend="serial").settlements.nodes
    nodes["outcome"] = nodes["outcome"].replace("denied", "exhausted")  # refused at its start, or at its first call
    found = [nodes[nodes["policy"] == name].reset_index(drop=True) for name in named_two]
    return found[0], found[1]


def alike(theirs: PolicySpec, ours: PolicySpec, *, tree: bool, failing: float = 0.0) -> Any:
    """Check that every node makes the same calls and ends alike at the same instant."""
    one, two = both(theirs, ours, tree=tree, failing=failing)
    for column in ("run", "calls", "outcome", "duration_ns"):
        assert one[column].tolist() == two[column].tolist()
    return one


@pytest.mark.parametrize(
    ("theirs", "limit", "ours", "tree"),
    [
        ("langgraph", 6, iteration_budget(3), False),
        ("openai-agents", 4, iteration_budget(4), True),
        ("pydantic-ai", 3, iteration_budget(3), False),
        ("litellm", 6, call_holds(calls=6), True),
    ],
)
def test_it_ends_every_node_as_the_closest_of_ours_does(theirs: str, limit: int, ours: PolicySpec, tree: bool) -> None:
    needs(theirs)
    nodes = alike(policy(theirs, calls=limit), ours, tree=tree)
    assert 0 < (nodes["outcome"] == "exhausted").mean() < 1


EXPORTED = [
    ("pydantic-ai", shared_ledger(4), {"calls": 4}),
    ("pydantic-ai", shared_ledger(50, 0.02), {"cost_usd": 0.02}),
    ("pydantic-ai", reservation_pool(tokens=5000), {"calls": None, "tokens": 5000}),
    ("litellm", shared_ledger(4), {"calls": 4}),
    ("litellm", shared_ledger(50, 0.02), {"calls": 50, "cost_usd": 0.02}),
    ("openai-agents", compose(shared_ledger(4), tree_limits(0)), {"calls": 4}),
    ("langgraph", compose(shared_ledger(4), tree_limits(0)), {"calls": 8}),
    ("bernstein", shared_ledger(50, 0.02), {"cost_usd": 0.02}),
]


@pytest.mark.parametrize("failing", [0.0, 0.3])
@pytest.mark.parametrize(("target", "ours", "limits"), EXPORTED)
def test_what_is_read_back_decides_as_the_real_package_does(
    target: str, ours: PolicySpec, limits: dict[str, Any], failing: float
) -> None:
    needs(target)
    theirs: Any = named(target)
    if target == "pydantic-ai":  # the page says: hand the usage and the limits on
        theirs = type("HandedOn", (theirs,), {"child": lambda self, _child: copy(self)})
    written = export(ours, target)
    assert all(written.settings[_KEYS[target][name]] == limit for name, limit in limits.items())
    nodes = alike(policy(theirs, **limits), written.read_back(), tree=True, failing=failing)
    assert (nodes["outcome"] == "exhausted").any()


_KEYS = {
    "pydantic-ai": {"calls": "request_limit", "tokens": "total_tokens_limit", "cost_usd": "cost_limit"},
    "litellm": {"calls": "max_iterations", "cost_usd": "max_budget_per_session"},
    "openai-agents": {"calls": "max_turns"},
    "langgraph": {"calls": "recursion_limit"},
    "bernstein": {"cost_usd": "budget"},
}

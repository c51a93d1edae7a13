"""The declared family of the fast engine: which worlds and policies it simulates, and why another one is left out."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Any, Final

from harness_lab.clock import ns
from harness_lab.policies import PolicySpec
from harness_lab.policies.reservation_pool import ReservationPoolSpec
from harness_lab.policies.shared_ledger import SharedLedgerSpec
from harness_lab.policies.tree_limits import TreeLimitsSpec
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate.workload import AgentProfile, Spawn, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_KNOWN: Final[Mapping[type, tuple[str, ...]]] = {
    Workload: ("agents", "root", "budget"),
    AgentProfile: (
        "model",
        "calls",
        "startup_tokens",
        "growth_tokens",
        "tool_s",
        "shared_tokens",
        "failure_rate",
        "spawns",
        "max_attempts",
        "backoff_s",
        "floor_key",
        "think_chance",  # means nothing without think_s
        "compact_to_tokens",  # means nothing without context_limit_tokens
        "delivery",  # told from the rows afterwards
    ),
    Spawn: ("agent", "count", "budget", "after", "chance"),
    MockProvider: ("models", "prices"),
    ModelProfile: (
        "output_tokens",
        "latency_s",
        "seconds_per_output_token",
        "error_rate",
        "unreported_rate",
        "cache_share",
        "cache_write_share",
        "max_output_tokens",
    ),
    PolicySpec: ("name", "modules", "max_wait_s"),
    SharedLedgerSpec: ("max_steps", "max_cost_usd", "max_seconds", "unknown_usage", "kind"),
    ReservationPoolSpec: (
        "calls",
        "input",
        "tokens",
        "fresh",
        "cost_usd",
        "inside",
        "unknown_usage",
        "kind",
    ),
    TreeLimitsSpec: (
        "max_depth",
        "max_concurrent",
        "max_calls",
        "timeout_s",
        "concurrency",
        "lend",
        "timeout_from",
        "give_back",
        "kind",
    ),
}
"""Parameters that are simulated; any other has to have its default value."""
_MODULES: Final = (SharedLedgerSpec, ReservationPoolSpec, TreeLimitsSpec)
_LONGEST_NS: Final = 1 << 61


def why_not(workload: Any, provider: Any, policy: Any) -> str | None:
    """Return why a world and a policy lie outside the family of the fast engine, None when they lie in it.

    The family: workloads of :class:`~harness_lab.simulate.Workload` with the mock provider, under any of the shared
    ledger, the reservation pool (asks as they are) and the tree limits (children are stopped at their time limit), with
    or without a queue. What is kept beside the rows of nodes (calls, decisions) is not part of it.

    Parameters
    ----------
    workload : Workload
        What agents do.
    provider : MockProvider
        What answers their calls.
    policy : PolicySpec
        What limits them.
    """
    return next(_reasons(workload, provider, policy), None)


def _reasons(workload: Any, provider: Any, policy: Any) -> Iterator[str]:
    parts: list[tuple[str, Any, type[Any]]] = [
        ("workload", workload, Workload),
        ("provider", provider, MockProvider),
        ("policy", policy, PolicySpec),
    ]
    for what, value, kind in parts:
        if type(value) is not kind:
            yield f"the {what} is a {type(value).__name__}"
            return
    for name, agent in workload.agents.items():
        yield from _strange(f"agent {name}", agent, AgentProfile)
        for rule in agent.spawns:
            yield from _strange(f"a spawn rule of {name}", rule, Spawn)
        if ns(agent.backoff_s) << max(0, agent.max_attempts - 2) > _LONGEST_NS:
            yield f"the backoff of agent {name} grows beyond what 64 bits hold"
    for name, model in provider.models.items():
        yield from _strange(f"model {name}", model, ModelProfile)
    for what, value, kind in parts:
        yield from _strange(f"the {what}", value, kind)
    for module in policy.modules:
        if type(module) not in _MODULES:
            yield f"the module {module.kind}"
        else:
            yield from _strange(module.kind, module, type(module))


def _strange(what: str, value: Any, kind: type[Any]) -> Iterator[str]:
    """Yield what a value says that the fast engine does not know."""
    if type(value) is not kind:
        yield f"{what} is a {type(value).__name__}"
        return
    for each in fields(value):
        if each.name not in _KNOWN[kind]:
            said = getattr(value, each.name)
            if said != _default(each):
                yield f"{each.name} of {what}"


def _default(each: Field[Any]) -> Any:
    if each.default is not MISSING:
        return each.default
    return each.default_factory() if each.default_factory is not MISSING else MISSING

"""What Claude Code and the Claude Agent SDK share: agents with turns of their own, and no children at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.export.targets.base import Carried, Draft, Loss, label
from harness_lab.export.targets.modules import meter, tree
from harness_lab.export.values import childless

if TYPE_CHECKING:
    from harness_lab.policies import ModuleSpec

KEY_AGENTS, KEY_DENY = "agents", "permissions.deny"
AGENT_TOOL = "Agent"
REPORTED = (
    "agents run past it (anthropics/claude-code#41143, #79303: 2.1.214 among others; closed since, so try it on yours)"
)
_ZEROS = ("tree_limits.max_depth", "tree_limits.max_concurrent", "tree_limits.max_calls")


def claude_extra(draft: Draft, *, turns: str) -> None:
    """Write the agents, and deny the tool that starts children where none may start."""
    policy = draft.config.policy
    if childless(policy):
        draft.values[KEY_DENY] = [AGENT_TOOL]
        draft.done |= set(_ZEROS)
        limits = policy.module("tree_limits")
        name = next(name for name in _ZEROS if getattr(limits, name.removeprefix("tree_limits.")) == 0)
        draft.carried.append(
            Carried(value=name, key=KEY_DENY, written=[AGENT_TOOL], unit="tools denied", scope="one session")
        )
    node = policy.module("iteration_budget")
    shared = node.max_iterations if node is not None and node.whose == "node" and node.counts == "calls" else None
    agents = [_agent(draft, agent, shared) for agent in draft.config.agents]
    if agents:
        draft.values[KEY_AGENTS] = agents
    if shared is not None and agents and turns in draft.values:
        draft.done.add("iteration_budget.max_iterations")
        draft.losses.append(
            Loss(
                f"iteration_budget.max_iterations = {shared}", "does not hold for agents that the config does not name"
            )
        )


def _agent(draft: Draft, agent: Any, shared: int | None) -> dict[str, Any]:
    told = agent.description or agent.name
    entry: dict[str, Any] = {"name": agent.name, "description": told, "prompt": told}
    limits = [limit for limit in (agent.max_calls, shared) if limit is not None]
    value = f"{label(agent.name)}.max_calls" if agent.max_calls is not None else "iteration_budget.max_iterations"
    if limits and min(limits) < 1:
        draft.losses.append(Loss(f"{value} = {min(limits)}", "maxTurns must be at least 1 there"))
    elif limits:
        entry["maxTurns"] = min(limits)
        draft.carried.append(
            Carried(
                value=value, key=f"{label(agent.name)}.maxTurns", written=min(limits),
                unit="agent turns (model calls)", scope="one execution of that agent", reported=REPORTED,
            )
        )  # fmt: skip
    if agent.model is not None:
        entry["model"] = agent.model
    if agent.disallowed_tools:
        entry["disallowedTools"] = list(agent.disallowed_tools)
    return entry


def claude_model(
    *, turns: int | None, dollars: float | None, children: int | None, depth: int | None, denied: list[str]
) -> tuple[ModuleSpec, ...]:
    """Return modules that answer as the client does.

    Turns of single agents are not among them: a policy has no limits by agent.
    """
    limits = tree(max_depth=0) if AGENT_TOOL in denied else tree(max_depth=depth, max_concurrent=children)
    return (*limits, *meter(calls=turns, whose="root"), *meter(cost_usd=dollars))

"""What Claude Code and the Claude Agent SDK share: agents with turns of their own, and no children at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.export.document import AgentLimits
from harness_lab.export.targets.base import Carried, Draft, Loss, label, no_children
from harness_lab.export.targets.modules import meter, tree
from harness_lab.export.values import childless, values_of

if TYPE_CHECKING:
    from harness_lab.export.values import Value
    from harness_lab.policies import ModuleSpec, PolicySpec

KEY_AGENTS, KEY_DENY = "agents", "permissions.deny"
AGENT_TOOL = "Agent"
REPORTED = (
    "agents run past it (anthropics/claude-code#41143, #79303: 2.1.214 among others; closed since, so try it on yours)"
)


def claude_extra(draft: Draft, *, turns: str, bounds: tuple[str, ...]) -> None:
    """Write the agents, and deny the tool that starts children where none may start."""
    policy = draft.config.policy
    if childless(policy):
        no_children(draft, KEY_DENY, [AGENT_TOOL], "tools denied", instead_of=bounds)
    each = _each_child(policy)
    shared, name = (None, "") if each is None else (each.amount, each.name)
    agents = [_agent(draft, agent, shared, name) for agent in draft.config.agents]
    if agents:
        draft.values[KEY_AGENTS] = agents
    if each is None or childless(policy):
        return
    if each.scope == "child" or turns in draft.values:
        draft.done.add(name)
        means = "holds for the agents that the config names, for no others"
        none = "holds for no child: name the agents, and each is given its maxTurns"
        draft.losses.append(Loss(f"{name} = {shared}", means if agents else none))


def _each_child(policy: PolicySpec) -> Value | None:
    """Return what says how many model calls every child may make; of several the tightest."""
    found = [v for v in values_of(policy) if v.quantity == "calls" and v.scope in ("child", "node")]
    return min(found, key=lambda value: int(value.amount), default=None)


def _agent(draft: Draft, agent: AgentLimits, shared: int | None, name: str) -> dict[str, Any]:
    told = agent.description or agent.name
    entry: dict[str, Any] = {"name": agent.name, "description": told, "prompt": told}
    limits = [limit for limit in (agent.max_calls, shared) if limit is not None]
    value = f"{label(agent.name)}.max_calls" if agent.max_calls is not None else name
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


def claude_agents(agents: list[dict[str, Any]]) -> tuple[AgentLimits, ...]:
    """Return what agents are held to by their own files or entries."""
    return tuple(
        AgentLimits(
            name=agent["name"], description=agent.get("description", ""), max_calls=agent.get("maxTurns"),
            model=agent.get("model"), disallowed_tools=_words(agent.get("disallowedTools", ())),
        )
        for agent in agents
    )  # fmt: skip


def _words(told: str | list[str]) -> tuple[str, ...]:
    """Return tools, which a person may have written as one text with commas."""
    return tuple(word.strip() for word in told.split(",")) if isinstance(told, str) else tuple(told)


def claude_model(
    *, turns: int | None, dollars: float | None, children: int | None, depth: int | None, denied: list[str]
) -> tuple[ModuleSpec, ...]:
    """Return modules that answer as the client does; turns of single agents are beside them (:func:`claude_agents`)."""
    limits = tree(max_depth=0) if AGENT_TOOL in denied else tree(max_depth=depth, max_concurrent=children)
    return (*limits, *meter(calls=turns, whose="root"), *meter(cost_usd=dollars))

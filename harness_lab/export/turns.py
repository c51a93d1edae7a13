"""Calls of single agents, by name, as a module of a policy: what a config's agents and most targets' agents declare.

A policy is never told which agent asks, but a child's path may name one (:class:`FloorKey`). So limits by agent can be
simulated where the workload's agents have names, which :func:`with_names` gives them. The main agent is nobody's child:
it has no such limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError
from harness_lab.export.meter import Meter, MeterSpec
from harness_lab.floors import FloorKey
from harness_lab.outcome import CALLS, CHANNELS, Code, Shortfall
from harness_lab.policies.protocol import SpawnAsk, StepAsk
from harness_lab.usage import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness_lab.clock import Time
    from harness_lab.export.document import AgentLimits
    from harness_lab.policies import PolicySpec
    from harness_lab.policies.protocol import Ask, Ticket
    from harness_lab.simulate import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTurnsSpec:
    """Parameters of a count of each child's model calls, by the agent's name.

    Parameters
    ----------
    limits : tuple of (str, int)
        Agents and how many calls one execution of each may make; others are not limited.
    """

    limits: tuple[tuple[str, int], ...] = ()
    kind: str = "agent_turns"

    def __post_init__(self) -> None:
        names = [name for name, _ in self.limits]
        if len(set(names)) < len(names):
            raise InputError("limits", expected="different agents", got=names)
        for name, limit in self.limits:
            count(f"calls of {name}", limit)

    def build(self, now: Time) -> AgentTurns:
        """Make a module with nothing counted."""
        return AgentTurns(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"limits": [list(one) for one in self.limits], "kind": self.kind}


class AgentTurns(Meter):
    """A meter of each node's calls, which only children with a name of the limits have."""

    __slots__ = ("_of",)

    def __init__(self, spec: AgentTurnsSpec) -> None:
        super().__init__(MeterSpec(whose="child"))
        self._of = dict(spec.limits)

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return the limit of the agent that asks, if it is reached."""
        if type(ask) is not StepAsk or ask.kind == "tool":
            return ()
        counted: list[int] | None = ask.node.memory[self.index]
        if counted is None:
            return ()
        limit = self._limit_of(ask.node)
        if limit is None or counted[CALLS] < limit:
            return ()
        return (Shortfall(Code.STEPS_EXHAUSTED, limit, 1, 0, "nothing", CHANNELS[CALLS]),)

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Give a child with a limit of its own a counter."""
        if type(ticket.ask) is SpawnAsk:
            ticket.memory[self.index] = None if self._limit_of(ticket) is None else [0] * len(CHANNELS)

    def _limit_of(self, node: Ticket) -> int | None:
        key = node.ask.floor_key if type(node.ask) is SpawnAsk and node.parent is not None else None
        return None if key is None or key.agent is None else self._of.get(key.agent)


def with_turns(policy: PolicySpec, agents: Iterable[AgentLimits]) -> PolicySpec:
    """Return a policy that holds its agents' calls too; itself where no agent has a limit of calls."""
    limits = tuple((agent.name, agent.max_calls) for agent in agents if agent.max_calls is not None)
    if not limits:
        return policy
    return replace(policy, modules=(*policy.modules, AgentTurnsSpec(limits=limits)))


def with_names(experiment: Experiment) -> Experiment:
    """Return the experiment with agents that say their names when they ask to start; nothing else changes.

    An agent that names its path already goes on naming it as it did where a policy holds floors against paths.
    """
    floors = any(policy.module("runtime_floors") is not None for policy in experiment.policies)
    named = {}
    for name, profile in experiment.workload.agents.items():
        key = profile.floor_key
        if key is None:
            named[name] = replace(profile, floor_key=FloorKey(backend="", model=profile.model, agent=name))
        else:
            named[name] = profile if floors else replace(profile, floor_key=replace(key, agent=name))
    return replace(experiment, workload=replace(experiment.workload, agents=named))

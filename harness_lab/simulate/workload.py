"""Workloads: what agents do. How many calls, how the context grows, when they spawn.

Agents are oblivious unless their profile says otherwise: they do not change what they do because of a budget, only a
refusal stops them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from harness_lab import draws
from harness_lab.agents.ports import Call, Child, Children, Rest
from harness_lab.clock import NS_PER_S, ns
from harness_lab.errors import InputError
from harness_lab.outcome import Cause, Outcome, Purpose, Refusal
from harness_lab.policies.protocol import COMPLETED, End
from harness_lab.providers.tables import Table
from harness_lab.simulate.profile import MAX_CHILDREN, MAX_RULES, NOT_ASKED, AgentProfile, Spawn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness_lab.agents.ports import Brain
    from harness_lab.simulate.arrivals import Arrivals
    from harness_lab.simulate.faults import Fault
    from harness_lab.usage import Amounts

__all__ = [
    "GAVE_UP",
    "MAX_CALLS",
    "MAX_CHILDREN",
    "MAX_RULES",
    "WENT_WRONG",
    "Agent",
    "AgentProfile",
    "Spawn",
    "Workload",
    "check_models",
]

MAX_CALLS = 100_000
GAVE_UP = End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)
WENT_WRONG = End(Outcome.FAILED, None, Cause.MODEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Agents, and which of them is the root.

    Parameters
    ----------
    agents : mapping of str to AgentProfile
        Profiles by role.
    root : str
        Role of the root.
    budget : Amounts
        The root's own ask; usually nothing, since the policy limits the tree.
    arrivals : Arrivals or None
        How runs arrive, many at once; then each run of an experiment is a whole period. None: each run is alone.
    faults : tuple of Fault
        What goes wrong around the agents; the first is the outermost.
    """

    agents: Mapping[str, AgentProfile]
    root: str
    budget: Amounts = NOT_ASKED
    arrivals: Arrivals | None = None
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        rules = [rule for profile in self.agents.values() for rule in profile.spawns]
        roles = {name for rule in rules for name in (rule.agent, rule.other) if name is not None} | {self.root}
        missing = sorted(roles - set(self.agents))
        if missing:
            raise InputError("agents", expected=f"a profile for each of {sorted(roles)}", got=f"none for {missing}")

    def models(self) -> list[str]:
        """Return the models that are called, sorted."""
        return sorted({profile.model for profile in self.agents.values()})

    def compile(self) -> dict[str, Agent]:
        """Make the draw tables of every agent."""
        from harness_lab.simulate.lively_agent import LivelyAgent  # it builds on this module

        agents: dict[str, Agent] = {}
        for name, profile in self.agents.items():
            agents[name] = (Agent if profile.plain else LivelyAgent)(name, profile, agents)
        return agents


class AgentTables(NamedTuple):
    """What is drawn for a node and after each of its calls."""

    calls: Table
    startup: Table
    growth: Table
    tool: Table


class DrawnNodes(NamedTuple):
    """The draws of many nodes of one agent, made together; the same numbers as one at a time.

    Parameters
    ----------
    nodes : dict of int to tuple of int
        By draw key: the place of its first call in `growth`, calls that were drawn, its calls, its first prompt.
    growth : list of int
        Tokens that come to the context after each call.
    """

    nodes: dict[int, tuple[int, int, int, int]]
    growth: list[int]


class Agent:
    """A profile as tables and ints; makes the brains of its nodes."""

    __slots__ = (
        "_after",
        "_agents",
        "_attempts",
        "_backoff",
        "_calls",
        "_failure",
        "_growth",
        "_model",
        "_spawns",
        "_startup",
        "_tool",
        "_tool_ns",
        "drawn",
        "name",
        "profile",
        "tables",
    )

    def __init__(self, name: str, profile: AgentProfile, agents: Mapping[str, Agent]) -> None:
        self.name = name
        self.profile = profile
        self._model = profile.model
        self._agents = agents
        self.tables = tables = AgentTables(
            Table(profile.calls),
            Table(profile.startup_tokens),
            Table(profile.growth_tokens),
            Table(profile.tool_s, NS_PER_S),
        )
        self._calls, self._startup = tables.calls.draw, tables.startup.draw
        self._growth, self._tool, self._tool_ns = tables.growth.draw, tables.tool.draw, tables.tool.constant()
        self.drawn: DrawnNodes | None = None
        self._attempts = range(profile.max_attempts)
        self._backoff = ns(profile.backoff_s)
        self._failure = draws.chance(profile.failure_rate)
        self._spawns = tuple(Rule(rule) for rule in profile.spawns)
        self._after = _after(profile.spawns)
        most = sum(rule.most for rule in self._spawns)
        if most > MAX_CHILDREN:
            raise InputError(f"spawns of {name}", expected=f"at most {MAX_CHILDREN} children after a call", got=most)

    def brain(self, key: int) -> Brain:
        """Return the brain of one node, whose luck is named by `key`."""
        word, model, after, tool_ns = draws.word, self._model, self._after, self._tool_ns
        first, known, calls, context = self._begin(key)
        growth = () if self.drawn is None else self.drawn.growth
        fails_at = -1 if self._failure == 0 else self._fails_at(key, calls)
        resent = min(context, self.profile.shared_tokens)
        for call in range(calls):
            for attempt in self._attempts:
                if attempt:
                    yield Rest(self._backoff << (attempt - 1))
                reply = yield Call(model, key, call, attempt, context, resent)
                if type(reply) is Refusal or reply.status == "completed":
                    break
            else:
                return GAVE_UP
            if call == fails_at:
                return WENT_WRONG
            if (after is None or call in after) and (children := self._spawn(key, call)):
                yield Children(children)
            if call + 1 < calls:
                resent = context
                grown = growth[first + call] if call < known else self._growth(word(key, call, 0, Purpose.GROWTH))
                context += reply.output + grown
                pause = tool_ns if tool_ns is not None else self._tool(word(key, call, 0, Purpose.TOOL_TIME))
                if pause:
                    yield Rest(pause)
        return COMPLETED

    @property
    def agents(self) -> Mapping[str, Agent]:
        """All agents of the workload by role."""
        return self._agents

    @property
    def rules(self) -> Sequence[Rule]:
        """Its spawn rules, compiled."""
        return self._spawns

    def _begin(self, key: int) -> tuple[int, int, int, int]:
        """Return where a node's growth was drawn, for how many calls, its calls, and the tokens of its first prompt."""
        found = None if self.drawn is None else self.drawn.nodes.get(key)
        if found is not None:
            return found
        return 0, 0, self.calls(key), self._startup(draws.word(key, 0, 0, Purpose.STARTUP))

    def calls(self, key: int) -> int:
        """Return how many calls a node makes if nothing stops it."""
        return min(MAX_CALLS, max(1, self._calls(draws.word(key, 0, 0, Purpose.CALLS))))

    def born(self, key: int, ask: Amounts) -> Callable[[], Brain]:
        """Return what makes the brain of a child that was asked for with a budget."""
        return partial(self.brain, key)

    def _size(self, key: int) -> tuple[int, int, int]:
        """Return a node's calls, the tokens of its first prompt, and the call at which it fails."""
        _, _, calls, startup = self._begin(key)
        return calls, startup, self._fails_at(key, calls)

    def _fails_at(self, key: int, calls: int) -> int:
        """Return the call at which the agent fails, -1 if it does not."""
        if self._failure == 0:
            return -1
        word = draws.word(key, 0, 0, Purpose.SUCCESS)
        return (word & 0xFFFF_FFFF) * calls >> 32 if word >> 32 < self._failure else -1

    def _due(self, key: int, call: int) -> list[tuple[int, Spawn]]:
        """Return the slots and rules of the children that are due after a call.

        Slots are counted whether a rule is due or not.
        """
        due: list[tuple[int, Spawn]] = []
        first = 0
        for lane, rule in enumerate(self._spawns):
            if rule.due(key, call, lane):
                due += [(first + i, rule.spawn) for i in range(rule.count(key, call, lane))]
            first += rule.most
        return due

    def _spawn(self, key: int, call: int) -> list[Child]:
        """Return the children that are due after a call."""
        return [self._child(key, call, slot, rule) for slot, rule in self._due(key, call)]

    def _child(self, key: int, call: int, slot: int, rule: Spawn) -> Child:
        agent = self._agents[rule.agent]
        brain = agent.born(draws.child_key(key, call, slot), rule.budget)
        floor_key = agent.profile.floor_key
        return Child(agent=rule.agent, budget=rule.budget, call=call, slot=slot, brain=brain, floor_key=floor_key)


class Rule:
    """A spawn rule as thresholds and tables."""

    __slots__ = ("after", "chance", "counts", "most", "spawn")

    def __init__(self, spawn: Spawn) -> None:
        self.spawn = spawn
        self.after = spawn.after
        self.chance = draws.chance(spawn.chance)
        self.counts = None if isinstance(spawn.count, int) else Table(spawn.count)
        self.most = spawn.count if isinstance(spawn.count, int) else Table(spawn.count).draw(draws.MASK)

    def due(self, key: int, call: int, lane: int) -> bool:
        """Whether the rule applies after this call."""
        if self.after is not None and call not in self.after:
            return False
        return self.chance >= draws.ONE or draws.word(key, call, lane, Purpose.SPAWN) >> 32 < self.chance

    def count(self, key: int, call: int, lane: int) -> int:
        """Return how many children are started."""
        return self.most if self.counts is None else self.counts.draw(draws.word(key, call, lane, Purpose.COUNT))


def _after(spawns: Sequence[Spawn]) -> frozenset[int] | None:
    """Return the calls after which children may be due; None: any."""
    if any(rule.after is None for rule in spawns):
        return None
    return frozenset(call for rule in spawns for call in rule.after or ())


def check_models(workload: Workload, models: Sequence[str]) -> None:
    """Refuse a workload that calls a model which the provider does not have.

    Raises
    ------
    InputError
        If one is missing.
    """
    missing = sorted(set(workload.models()) - set(models))
    if missing:
        raise InputError("models of the workload", expected=f"some of {sorted(models)}", got=missing)

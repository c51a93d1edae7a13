"""Workloads: what agents do. How many calls, how the context grows, when they spawn.

Agents are oblivious: they do not change what they do because of a budget, only a refusal stops them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from harness_lab import draws
from harness_lab.agents.ports import Call, Child, Children, Rest
from harness_lab.clock import NS_PER_S, ns
from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, Cause, Outcome, Purpose, Refusal
from harness_lab.policies.protocol import COMPLETED, End
from harness_lab.providers.tables import Table
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import Amounts, count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness_lab.agents.ports import Brain
    from harness_lab.floors import FloorKey

MAX_CALLS = 100_000
MAX_CHILDREN = 200
"""Children that one agent may ask for after one call, over all its rules."""
MAX_RULES = 32
"""Spawn rules of one agent: each has a draw of its own, and a draw has room for so many."""
_NOT_ASKED: Amounts = (None,) * len(CHANNELS)
_GAVE_UP = End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)
_WENT_WRONG = End(Outcome.FAILED, None, Cause.MODEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """A rule by which an agent starts children after one of its calls.

    Parameters
    ----------
    agent : str
        Role of the children.
    count : int or Distribution
        Children at once; a draw below one starts none.
    budget : Amounts
        What is asked for each (:func:`harness_lab.usage.amounts`).
    after : tuple of int or None
        After which of its calls, from 0; None: after any.
    chance : float
        Chance each time, 0 to 1.
    """

    agent: str
    count: int | Distribution = 1
    budget: Amounts = _NOT_ASKED
    after: tuple[int, ...] | None = None
    chance: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.count, Distribution):
            count("count of children", self.count, maximum=MAX_CHILDREN)
        if not 0 <= self.chance <= 1:
            raise InputError("chance", expected="0 to 1", got=self.chance)
        if len(self.budget) != len(CHANNELS):
            raise InputError("budget", expected=f"one amount for each of {', '.join(CHANNELS)}", got=self.budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """What one kind of agent does.

    Parameters
    ----------
    model : str
        The model it calls.
    calls : Distribution
        Model calls until it is done; at least one.
    startup_tokens : Distribution
        Prompt tokens of its first call.
    growth_tokens : Distribution
        Prompt tokens added by tool results after each call; the answer itself is added too, and all is re-sent.
    tool_s : Distribution
        Seconds between a call and the next.
    shared_tokens : int
        The part of the first prompt that all agents of this kind share, and that a warm cache may hold.
    failure_rate : float
        Chance that the agent fails at one of its calls, evenly chosen, whatever the limits; 0 to 1.
    spawns : tuple of Spawn
        When it starts children.
    max_attempts : int
        Attempts of one call before the agent fails.
    backoff_s : float
        Seconds before the second attempt, doubling from there on.
    floor_key : FloorKey or None
        The path that runs it, for runtime floors.
    """

    model: str
    calls: Distribution
    startup_tokens: Distribution
    growth_tokens: Distribution = field(default_factory=lambda: Distribution.constant(0))
    tool_s: Distribution = field(default_factory=lambda: Distribution.constant(0))
    shared_tokens: int = 0
    failure_rate: float = 0.0
    spawns: tuple[Spawn, ...] = ()
    max_attempts: int = 3
    backoff_s: float = 1.0
    floor_key: FloorKey | None = None

    def __post_init__(self) -> None:
        if count("max_attempts", self.max_attempts, maximum=32) == 0:
            raise InputError("max_attempts", expected="at least 1", got=0)
        if not 0 <= self.failure_rate <= 1:
            raise InputError("failure_rate", expected="0 to 1", got=self.failure_rate)
        count("shared_tokens", self.shared_tokens)
        if ns(self.backoff_s, what="backoff_s") < 0:
            raise InputError("backoff_s", expected="seconds >= 0", got=self.backoff_s)
        if len(self.spawns) > MAX_RULES:
            raise InputError("spawns", expected=f"at most {MAX_RULES} rules", got=len(self.spawns))


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
    """

    agents: Mapping[str, AgentProfile]
    root: str
    budget: Amounts = _NOT_ASKED

    def __post_init__(self) -> None:
        roles = {rule.agent for profile in self.agents.values() for rule in profile.spawns} | {self.root}
        missing = sorted(roles - set(self.agents))
        if missing:
            raise InputError("agents", expected=f"a profile for each of {sorted(roles)}", got=f"none for {missing}")

    def models(self) -> list[str]:
        """Return the models that are called, sorted."""
        return sorted({profile.model for profile in self.agents.values()})

    def compile(self) -> dict[str, Agent]:
        """Make the draw tables of every agent."""
        agents: dict[str, Agent] = {}
        for name, profile in self.agents.items():
            agents[name] = Agent(name, profile, agents)
        return agents


class Agent:
    """A profile as tables and ints; makes the brains of its nodes."""

    __slots__ = (
        "_agents",
        "_backoff",
        "_calls",
        "_failure",
        "_growth",
        "_spawns",
        "_startup",
        "_tool",
        "name",
        "profile",
    )

    def __init__(self, name: str, profile: AgentProfile, agents: Mapping[str, Agent]) -> None:
        self.name = name
        self.profile = profile
        self._agents = agents
        self._calls = Table(profile.calls).draw
        self._startup = Table(profile.startup_tokens).draw
        self._growth = Table(profile.growth_tokens).draw
        self._tool = Table(profile.tool_s, NS_PER_S).draw
        self._backoff = ns(profile.backoff_s)
        self._failure = draws.chance(profile.failure_rate)
        self._spawns = tuple(_Rule(rule) for rule in profile.spawns)
        most = sum(rule.most for rule in self._spawns)
        if most > MAX_CHILDREN:
            raise InputError(f"spawns of {name}", expected=f"at most {MAX_CHILDREN} children after a call", got=most)

    def brain(self, key: int) -> Brain:
        """Return the brain of one node, whose luck is named by `key`."""
        word, model = draws.word, self.profile.model
        calls = min(MAX_CALLS, max(1, self._calls(word(key, 0, 0, Purpose.CALLS))))
        context = self._startup(word(key, 0, 0, Purpose.STARTUP))
        resent = min(context, self.profile.shared_tokens)
        fails_at = self._fails_at(key, calls)
        for call in range(calls):
            for attempt in range(self.profile.max_attempts):
                if attempt:
                    yield Rest(self._backoff << (attempt - 1))
                reply = yield Call(model, key, call, attempt, context, resent)
                if type(reply) is Refusal or reply.status == "completed":
                    break
            else:
                return _GAVE_UP
            if call == fails_at:
                return _WENT_WRONG
            if self._spawns and (children := self._spawn(key, call)):
                yield Children(children)
            if call + 1 < calls:
                resent = context
                context += reply.output + self._growth(word(key, call, 0, Purpose.GROWTH))
                pause = self._tool(word(key, call, 0, Purpose.TOOL_TIME))
                if pause:
                    yield Rest(pause)
        return COMPLETED

    def _fails_at(self, key: int, calls: int) -> int:
        """Return the call at which the agent fails, -1 if it does not."""
        word = draws.word(key, 0, 0, Purpose.SUCCESS)
        return (word & 0xFFFF_FFFF) * calls >> 32 if word >> 32 < self._failure else -1

    def _spawn(self, key: int, call: int) -> list[Child]:
        """Return the children that are due after a call; slots are counted whether a rule is due or not."""
        children: list[Child] = []
        first = 0
        for lane, rule in enumerate(self._spawns):
            if rule.due(key, call, lane):
                children += [self._child(key, call, first + i, rule.spawn) for i in range(rule.count(key, call, lane))]
            first += rule.most
        return children

    def _child(self, key: int, call: int, slot: int, rule: Spawn) -> Child:
        agent = self._agents[rule.agent]
        brain = partial(agent.brain, draws.child_key(key, call, slot))
        floor_key = agent.profile.floor_key
        return Child(agent=rule.agent, budget=rule.budget, call=call, slot=slot, brain=brain, floor_key=floor_key)


class _Rule:
    """A spawn rule as thresholds and tables."""

    __slots__ = ("_after", "_chance", "_count", "most", "spawn")

    def __init__(self, spawn: Spawn) -> None:
        self.spawn = spawn
        self._after = spawn.after
        self._chance = draws.chance(spawn.chance)
        self._count: Callable[[int], int] | None = None
        if isinstance(spawn.count, int):
            self.most = spawn.count
        else:
            self._count = Table(spawn.count).draw
            self.most = self._count(draws.MASK)

    def due(self, key: int, call: int, lane: int) -> bool:
        """Whether the rule applies after this call."""
        if self._after is not None and call not in self._after:
            return False
        return self._chance >= draws.ONE or draws.word(key, call, lane, Purpose.SPAWN) >> 32 < self._chance

    def count(self, key: int, call: int, lane: int) -> int:
        """Return how many children are started."""
        return self.most if self._count is None else self._count(draws.word(key, call, lane, Purpose.COUNT))


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

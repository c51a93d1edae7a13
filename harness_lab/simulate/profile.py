"""What agents do, as values: profiles, spawn rules, retries, reactions to a budget."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal

from harness_lab.clock import ns
from harness_lab.errors import InputError, check_kind
from harness_lab.outcome import CHANNELS
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import Amounts, count

if TYPE_CHECKING:
    from harness_lab.floors import FloorKey

MAX_CHILDREN = 200
"""Children that one agent may ask for after one call, over all its rules."""
MAX_RULES = 32
"""Spawn rules of one agent: each has a draw of its own, and a draw has room for so many."""
MAX_ATTEMPTS = 1_000
NOT_ASKED: Amounts = (None,) * len(CHANNELS)

OnRefusal = Literal["give-up", "shrink", "raise", "other-path"]
Jitter = Literal["none", "full", "equal"]
ReactionKind = Literal["wind-down", "spend-to-fill"]


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
    max_attempts : int
        How often a child that failed is started, at least once.
    on_refusal : {"give-up", "shrink", "raise", "other-path"}
        What the parent does when a child is refused: go on without it; ask for `factor` of the budget, or for 1 /
        `factor` of it; or ask for a child of `other` in its place.
    factor : float
        By which an ask shrinks, above 0 and below 1.
    tries : int
        How often it asks again after a refusal.
    other : str or None
        Role that takes its place.
    """

    agent: str
    count: int | Distribution = 1
    budget: Amounts = NOT_ASKED
    after: tuple[int, ...] | None = None
    chance: float = 1.0
    max_attempts: int = 1
    on_refusal: OnRefusal = "give-up"
    factor: float = 0.5
    tries: int = 1
    other: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.count, Distribution):
            count("count of children", self.count, maximum=MAX_CHILDREN)
        if not 0 <= self.chance <= 1:
            raise InputError("chance", expected="0 to 1", got=self.chance)
        if self.after is not None:
            check_kind("after", self.after, (tuple, list), expected="numbers of calls, from 0")
            object.__setattr__(self, "after", tuple(count("after", call) for call in self.after))
        if len(self.budget) != len(CHANNELS):
            raise InputError("budget", expected=f"one amount for each of {', '.join(CHANNELS)}", got=self.budget)
        if count("max_attempts", self.max_attempts, maximum=32) == 0:
            raise InputError("max_attempts", expected="at least 1", got=0)
        count("tries", self.tries, maximum=32)
        if self.on_refusal not in ("give-up", "shrink", "raise", "other-path"):
            expected = "give-up, shrink, raise or other-path"
            raise InputError("on_refusal", expected=expected, got=self.on_refusal)
        if not 0 < self.factor < 1:
            raise InputError("factor", expected="above 0 and below 1", got=self.factor)
        if (self.on_refusal == "other-path") != (self.other is not None):
            raise InputError("other", expected="a role with on_refusal = other-path, none without", got=self.other)

    @property
    def plain(self) -> bool:
        """Whether its children are asked for once."""
        return self.max_attempts == 1 and self.on_refusal == "give-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How an agent tries a call again.

    Parameters
    ----------
    layers : tuple of int
        Attempts of each layer that retries, nested: two layers of 3 make up to 9 attempts.
    base_s, factor, cap_s : float
        Seconds before the second attempt, by which each further pause grows, and the longest pause.
    jitter : {"none", "full", "equal"}
        ``full``: anywhere from nothing to the pause; ``equal``: from half of it. After an answer with a retry time, the
        jittered pause comes on top of that time; without jitter the longer of the two is waited.
    max_attempts : int or None
        Attempts of the agent over all its calls; None: no cap.

    Notes
    -----
    Only failed and limited attempts are made again: a refusal by the budget is final.
    """

    layers: tuple[int, ...] = (3,)
    base_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 60.0
    jitter: Jitter = "none"
    max_attempts: int | None = None

    def __post_init__(self) -> None:
        if not self.layers or any(count("layers", layer) == 0 for layer in self.layers):
            raise InputError("layers", expected="at least one attempt in each", got=self.layers)
        if self.attempts > MAX_ATTEMPTS:
            raise InputError("layers", expected=f"at most {MAX_ATTEMPTS} attempts together", got=self.attempts)
        for name in ("base_s", "cap_s"):
            if ns(getattr(self, name), what=name) < 0:
                raise InputError(name, expected="seconds >= 0", got=getattr(self, name))
        if not 1 <= self.factor <= 100:
            raise InputError("factor", expected="1 to 100", got=self.factor)
        if self.jitter not in ("none", "full", "equal"):
            raise InputError("jitter", expected="none, full or equal", got=self.jitter)
        if self.max_attempts is not None and count("max_attempts", self.max_attempts) == 0:
            raise InputError("max_attempts", expected="at least 1, or None", got=0)

    @property
    def attempts(self) -> int:
        """Attempts of one call when every layer retries."""
        made = 1
        for layer in self.layers:
            made *= layer
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """How an agent reacts to a budget that it is told.

    It knows what it used itself, in any channel of what it is told; not what its children used.

    Parameters
    ----------
    kind : {"wind-down", "spend-to-fill"}
        ``wind-down``: from the told share on it starts no more children, makes one last call and is done.
        ``spend-to-fill``: it goes on after it is done until it has used the told share.
    at : float
        The told share, above 0 and at most 1.
    told : Amounts or None
        The budget that it is told; None: its own ask.
    """

    kind: ReactionKind
    at: float = 0.8
    told: Amounts | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("wind-down", "spend-to-fill"):
            raise InputError("kind of reaction", expected="wind-down or spend-to-fill", got=self.kind)
        if not 0 < self.at <= 1:
            raise InputError("at", expected="above 0 and at most 1", got=self.at)
        if self.told is not None and len(self.told) != len(CHANNELS):
            raise InputError("told", expected=f"one amount for each of {', '.join(CHANNELS)}", got=self.told)


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
    retry : Retry or None
        How a call is tried again, in place of `max_attempts` and `backoff_s`.
    think_s : Distribution or None
        Seconds that a person takes before the next call, on top of `tool_s`.
    think_chance : float
        Chance that a person is asked after a call.
    context_limit_tokens : int or None
        A prompt above it is compacted first: one more call that sends all of it; None: never.
    compact_to_tokens : int
        What is left then of all that came after the start-up tokens.
    delivery : tuple of (float, float)
        Chance that the result is good by the share of its calls that the agent made: points (share, chance), joined by
        lines, ascending; empty: not known. An agent that ended as it wanted has made all of them.
    reaction : Reaction or None
        How it reacts to a budget that it is told; None: it is oblivious.
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
    retry: Retry | None = None
    think_s: Distribution | None = None
    think_chance: float = 1.0
    context_limit_tokens: int | None = None
    compact_to_tokens: int = 0
    delivery: tuple[tuple[float, float], ...] = ()
    reaction: Reaction | None = None

    def __post_init__(self) -> None:
        if count("max_attempts", self.max_attempts, maximum=32) == 0:
            raise InputError("max_attempts", expected="at least 1", got=0)
        for name in ("failure_rate", "think_chance"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(name, expected="0 to 1", got=getattr(self, name))
        count("shared_tokens", self.shared_tokens)
        count("compact_to_tokens", self.compact_to_tokens)
        if self.context_limit_tokens is not None and count("context_limit_tokens", self.context_limit_tokens) == 0:
            raise InputError("context_limit_tokens", expected="at least 1, or None", got=0)
        if ns(self.backoff_s, what="backoff_s") < 0:
            raise InputError("backoff_s", expected="seconds >= 0", got=self.backoff_s)
        if len(self.spawns) > MAX_RULES:
            raise InputError("spawns", expected=f"at most {MAX_RULES} rules", got=len(self.spawns))
        _check_delivery(self.delivery)

    @property
    def plain(self) -> bool:
        """Whether nothing is asked of it that the plain agent does not do; its delivery is told afterwards."""
        rest = (f for f in fields(self) if f.name in _LIVELY)
        return all(getattr(self, f.name) == f.default for f in rest) and all(rule.plain for rule in self.spawns)


_LIVELY = frozenset({"retry", "think_s", "context_limit_tokens", "reaction"})


def _check_delivery(points: tuple[tuple[float, float], ...]) -> None:
    if not points:
        return
    shares = [share for share, _ in points]
    ascending = all(low < high for low, high in itertools.pairwise(shares))
    if not ascending or not all(0 <= value <= 1 for point in points for value in point):
        raise InputError("delivery", expected="ascending points (share, chance), each from 0 to 1", got=points)

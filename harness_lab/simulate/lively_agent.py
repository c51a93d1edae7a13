"""Agents that do more than call, work and spawn: they retry with jitter, think, compact, ask again, and react.

All of it costs nothing where it is not used: a profile that needs none of it is played by the plain
:class:`~harness_lab.simulate.workload.Agent`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_lab import draws
from harness_lab.agents.ports import Call, Child, Children, Rest, Throttled
from harness_lab.clock import NS_PER_S, ns
from harness_lab.outcome import Outcome, Purpose
from harness_lab.policies.protocol import COMPLETED
from harness_lab.providers.tables import Table
from harness_lab.simulate.own import Own
from harness_lab.simulate.profile import Retry, Spawn
from harness_lab.simulate.workload import GAVE_UP, MAX_CALLS, WENT_WRONG, Agent

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from harness_lab.agents.ports import Brain, Reply
    from harness_lab.policies.protocol import End
    from harness_lab.simulate.profile import AgentProfile
    from harness_lab.usage import Amounts

COMPACTION = 31
"""The attempt under which the compaction before a call is named and drawn."""
_DRAWN_ATTEMPTS = 31
"""Attempts with a name of their own in a draw; from there on the node's key is mixed once more."""


class _Asked(NamedTuple):
    """A child that is asked for, and how it was asked for before."""

    rule: Spawn
    agent: str
    slot: int
    attempt: int
    budget: Amounts
    failed: int
    refused: int


class _Luck(Own):
    """What one node knows of itself while it runs."""

    __slots__ = ("attempts", "key")

    def __init__(self, key: int, told: Amounts | None, at: float, attempts: int | None) -> None:
        super().__init__(told, at)
        self.key = key
        self.attempts = attempts


class LivelyAgent(Agent):
    """A profile with all its habits as tables and ints; makes the brains of its nodes."""

    __slots__ = ("_at", "_base", "_cap", "_fills", "_limit", "_retry", "_think", "_think_chance", "_told")

    def __init__(self, name: str, profile: AgentProfile, agents: Mapping[str, Agent]) -> None:
        super().__init__(name, profile, agents)
        given = profile.retry
        self._retry = given if given is not None else _plain_retry(profile)
        self._base, self._cap = ns(self._retry.base_s), ns(self._retry.cap_s)
        self._think: Callable[[int], int] | None = None
        if profile.think_s is not None:
            self._think = Table(profile.think_s, NS_PER_S).draw
        self._think_chance = draws.chance(profile.think_chance)
        self._limit = profile.context_limit_tokens
        reaction = profile.reaction
        self._told = None if reaction is None else reaction.told
        self._at = 2.0 if reaction is None or reaction.kind != "wind-down" else reaction.at
        self._fills = 0.0 if reaction is None or reaction.kind != "spend-to-fill" else reaction.at

    def born(self, key: int, ask: Amounts) -> Callable[[], Brain]:
        """Return what makes the brain of a child that was asked for with a budget."""
        return partial(self.brain, key, ask)

    def brain(self, key: int, ask: Amounts | None = None) -> Brain:
        """Return the brain of one node, whose luck is named by `key`."""
        calls, context, fails_at = self._size(key)
        luck = _Luck(key, ask if self._told is None else self._told, self._at, self._retry.max_attempts)
        resent = min(context, self.profile.shared_tokens)
        startup, call = context, 0
        while call < calls or self._goes_on(luck, call):
            if self._limit is not None and context > self._limit and call:
                yield from self._called(luck, Call(self._model, key, call, COMPACTION, context, resent, "compaction"))
                context, resent = startup + self.profile.compact_to_tokens, startup
            reply = yield from self._called(luck, Call(self._model, key, call, 0, context, resent))
            if reply is None:
                return GAVE_UP
            if call == fails_at:
                return WENT_WRONG
            if luck.winding_down:
                return COMPLETED
            luck.winding_down = luck.reaches(self._at)
            if self._spawns and not luck.winding_down:
                yield from self._start_children(key, call)
            resent, context = context, context + reply.output + self._growth(draws.word(key, call, 0, Purpose.GROWTH))
            call += 1
            if call < calls and (pause := self._rest_ns(key, call - 1)):
                yield Rest(pause)
        return COMPLETED

    def _goes_on(self, luck: _Luck, call: int) -> bool:
        """Whether an agent that is done makes another call to fill what it was told."""
        return bool(self._fills) and luck.knows and call < MAX_CALLS and not luck.reaches(self._fills)

    def _rest_ns(self, key: int, call: int) -> int:
        pause = self._tool(draws.word(key, call, 0, Purpose.TOOL_TIME))
        if self._think is not None:
            word = draws.word(key, call, 0, Purpose.THINK)
            if word >> 32 < self._think_chance:
                pause += self._think(draws.word(key, call, 1, Purpose.THINK))
        return pause

    def _called(self, luck: _Luck, call: Call) -> Generator[Any, Any, Reply | None]:
        """Make a call, again as often as the layers say; None: it never came back well."""
        for attempt in range(self._retry.attempts):
            if luck.attempts is not None and luck.attempts <= 0:
                return None
            if luck.attempts is not None:
                luck.attempts -= 1
            reply: Reply = yield call if attempt == 0 else _again(call, attempt)
            luck.take(reply)
            if reply.status == "completed":
                return reply
            if attempt + 1 < self._retry.attempts and luck.attempts != 0:
                yield Rest(self._backoff_ns(luck.key, call.call, attempt, reply))
        return None

    def _backoff_ns(self, key: int, call: int, attempt: int, reply: Reply) -> int:
        """Return the pause before another attempt: jittered, and never shorter than the provider asked for."""
        retry = self._retry
        pause = min(self._cap, int(self._base * retry.factor ** min(attempt, 64)))
        told = reply.retry_after_ns if isinstance(reply, Throttled) else 0
        if retry.jitter == "none":
            return max(pause, told)
        low = 0 if retry.jitter == "full" else pause // 2
        word = draws.word(*_named(key, call, attempt), Purpose.BACKOFF)
        return told + low + ((pause - low) * (word >> 32) >> 32)

    def _start_children(self, key: int, call: int) -> Brain:
        """Start what is due after a call; ask again for what failed or was refused, as its rule says."""
        wanted = [_Asked(rule, rule.agent, slot, 0, rule.budget, 0, 0) for slot, rule in self._due(key, call)]
        while wanted:
            ends = yield Children([self._made(key, call, one) for one in wanted])
            wanted = [more for one, end in zip(wanted, ends, strict=True) if (more := _asked_again(one, end))]
        return COMPLETED

    def _made(self, key: int, call: int, one: _Asked) -> Child:
        agent = self._agents[one.agent]
        return Child(
            agent=one.agent,
            budget=one.budget,
            call=call,
            slot=one.slot,
            attempt=one.attempt,
            brain=agent.born(draws.child_key(key, call, one.slot, one.attempt), one.budget),
            floor_key=agent.profile.floor_key,
        )


def _again(call: Call, attempt: int) -> Call:
    key, index, drawn = _named(call.key, call.call, attempt)
    if call.attempt:
        key, drawn = draws.mix(call.key + attempt), call.attempt
    return Call(call.model, key, index, drawn, call.input_total, call.resent, call.kind)


def _named(key: int, call: int, attempt: int) -> tuple[int, int, int]:
    """Return the key, call and attempt under which an attempt's luck is drawn: a draw has room for 31 of them."""
    more, drawn = divmod(attempt, _DRAWN_ATTEMPTS)
    return (draws.mix(key + more) if more else key), call, drawn


def _asked_again(one: _Asked, end: End | None) -> _Asked | None:
    """Return how a child is asked for again, None where its rule says no more."""
    rule = one.rule
    if end is None:
        return None
    if end.outcome is Outcome.FAILED and one.failed + 1 < rule.max_attempts:
        return one._replace(attempt=one.attempt + 1, failed=one.failed + 1)
    if end.outcome is not Outcome.DENIED or rule.on_refusal == "give-up" or one.refused >= rule.tries:
        return None
    again = one._replace(attempt=one.attempt + 1, refused=one.refused + 1)
    if rule.on_refusal == "other-path":
        return again._replace(agent=rule.other or rule.agent) if one.agent != rule.other else None
    by = rule.factor if rule.on_refusal == "shrink" else 1 / rule.factor
    budget = tuple(None if amount is None else int(amount * by) for amount in one.budget)
    return again._replace(budget=budget) if budget != one.budget else None


def _plain_retry(profile: AgentProfile) -> Retry:
    return Retry(layers=(profile.max_attempts,), base_s=profile.backoff_s, cap_s=1e9)

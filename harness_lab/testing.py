"""Test doubles and checks for those who write a policy or a provider of their own.

:class:`ScriptedModel` answers calls from a list; :func:`check_policy` asks a policy through many small trees and says
what it breaks; :func:`check_provider` does the same with a model. Both raise one error that names what was broken.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.agents.ports import Call, Child, Children, Reply
from harness_lab.agents.scripted import ScriptedClient, calls, says
from harness_lab.errors import AlreadySettled, HarnessLabError
from harness_lab.outcome import CHANNELS, Refusal
from harness_lab.policies.protocol import COMPLETED, SETTLED, SpawnAsk, StepAsk, Use

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness_lab.agents.ports import Brain, Model, Runtime
    from harness_lab.policies.protocol import Policy, Ticket
    from harness_lab.usage import Amounts

__all__ = ["NotAsPromised", "ScriptedClient", "ScriptedModel", "calls", "check_policy", "check_provider", "says"]

_NOT_ASKED: Amounts = (None,) * len(CHANNELS)


class NotAsPromised(HarnessLabError, AssertionError):
    """A policy or a provider breaks what its protocol promises."""


class ScriptedModel:
    """Answers the calls of a workload with the next reply of a list; the last one is given for ever.

    Parameters
    ----------
    replies : sequence of Reply
        What comes back.
    bound : Amounts
        The worst case that it states for every call.

    Attributes
    ----------
    made : list of Call
        The calls that were made, in order.
    """

    def __init__(self, replies: Sequence[Reply], *, bound: Amounts = (1, None, None, None, None)) -> None:
        self._replies = list(replies)
        self._bound = bound
        self.made: list[Call] = []

    def fresh(self) -> ScriptedModel:
        """Return a model at the beginning of the same script."""
        return ScriptedModel(self._replies, bound=self._bound)

    def bound(self, call: Call) -> Amounts:
        """Return the stated worst case."""
        return self._bound

    def abandoned(self, call: Call, elapsed_ns: int) -> int | None:
        """Return None: nobody can know what a dropped call bills."""
        return None

    async def complete(self, runtime: Runtime, call: Call) -> Reply:
        """Say the next reply."""
        reply = self._replies[min(len(self.made), len(self._replies) - 1)]
        self.made.append(call)
        return reply


def check_policy(start: Callable[[], Policy], *, trees: int = 50, seed: int = 0) -> None:
    """Ask a policy through random small trees, and hold it to what the protocol promises.

    Parameters
    ----------
    start : callable
        Makes the policy with fresh state, for one run (``spec.start``).
    trees : int
        Trees to play.
    seed : int
        Of the trees.

    Raises
    ------
    NotAsPromised
        If a step may be settled twice, ``would`` differs from the answer or changes it, or a run leaves a ticket open.
    """
    luck = Random(seed)  # noqa: S311 - no secret
    _settles_once(start())
    _dry_runs_agree(start(), luck)
    for _ in range(trees):
        policy, taken = start(), _Tickets()
        model = ScriptedModel([_reply(luck) for _ in range(40)], bound=(1, 400, 600, 600, 10**9))
        shape = luck.randrange(2**32)
        asyncio.run(_one_tree(_Watched(policy, taken), model, shape))
        for ticket in taken.kept:
            if ticket.state != SETTLED:
                raise NotAsPromised(f"{ticket} is still open when the run has ended (tree {shape})")


def check_provider(model: Any, runtime: Callable[[], tuple[Runtime, Callable[[Any], Any]]], call: Call) -> Reply:
    """Make one call, and hold a model to what the port promises.

    Parameters
    ----------
    model : Model
        Answers calls.
    runtime : callable
        Returns a runtime, and what runs a coroutine on it to its end.
    call : Call
        The call to make.

    Returns
    -------
    Reply
        What came back.

    Raises
    ------
    NotAsPromised
        If a reported amount exceeds the stated bound, a count is negative, or the same call made afresh differs.
    """
    replies = []
    for _ in range(2):
        own: Model = model.fresh() if hasattr(model, "fresh") else model
        world, run = runtime()
        found: list[Reply] = []

        async def once(own: Model = own, world: Runtime = world, found: list[Reply] = found) -> None:
            found.append(await own.complete(world, call))

        run(once())
        replies.append(found[0])
        _within(own.bound(call), found[0])
    one, two = (_shown(reply) for reply in replies)
    if one != two:
        raise NotAsPromised(f"the same call came back as {one} and as {two}: name its luck by key, call and attempt")
    return replies[0]


def _shown(reply: Reply) -> tuple[Any, ...]:
    tokens = (reply.input_fresh, reply.cache_read, reply.cache_write, reply.output)
    return (reply.status, *tokens, reply.cost_nusd, reply.billed_nusd, reply.reported)


def _within(bound: Amounts, reply: Reply) -> None:
    prompt = reply.input_fresh + reply.cache_read + reply.cache_write
    if min(reply.input_fresh, reply.cache_read, reply.cache_write, reply.output) < 0:
        raise NotAsPromised(f"a count of {_shown(reply)} is below 0")
    used = (1, prompt, prompt + reply.output, prompt - reply.cache_read + reply.output, reply.billed_nusd)
    for channel, most, amount in zip(CHANNELS, bound, used, strict=True):
        if most is not None and amount is not None and amount > most:
            raise NotAsPromised(f"{channel}: {amount:,} were used and at most {most:,} stated")


def _settles_once(policy: Policy) -> None:
    now: Any = 0
    node = policy.spawn(SpawnAsk(None, (), _NOT_ASKED), now)
    if isinstance(node, Refusal):
        return
    step = policy.admit(StepAsk(node.ticket, 0, 0, (1, 0, 0, 0, 0)), now)
    if isinstance(step, Refusal):
        return
    use = Use((1, 0, 0, 0, 0))
    policy.settle(step.ticket, use, now)
    try:
        policy.settle(step.ticket, use, now)
    except AlreadySettled:
        return
    raise NotAsPromised("a step was settled twice: the second time has to raise AlreadySettled")


def _dry_runs_agree(policy: Any, luck: Random) -> None:
    if not hasattr(policy, "would"):
        return
    now: Any = 0
    node = policy.spawn(SpawnAsk(None, (), _NOT_ASKED), now)
    for call in range(40):
        if isinstance(node, Refusal):
            return
        ask = StepAsk(node.ticket, call, 0, (1, luck.randrange(500), None, None, luck.randrange(10**8)))
        first, second = policy.would(ask, now), policy.would(ask, now)
        answer = policy.admit(ask, now)
        told = [isinstance(one, Refusal) for one in (first, second, answer)]
        if len(set(told)) > 1:
            raise NotAsPromised(f"would() said {told[:2]} and the answer was {told[2]} (True: refused), call {call}")
        if not told[2]:
            policy.settle(answer.ticket, Use((1, 10, 20, 20, 10**6)), now)


async def _one_tree(policy: Any, model: ScriptedModel, shape: int) -> None:
    runtime = AsyncioRuntime(asyncio.get_running_loop())
    await Harness(runtime, policy, model, _Nowhere()).run("root", _NOT_ASKED, lambda: _brain(Random(shape), 0))  # noqa: S311


def _brain(luck: Random, depth: int) -> Brain:
    for call in range(luck.randint(1, 4)):
        yield Call("m", 0, call, 0, 100)
        if depth < 2 and luck.random() < 0.5:
            many = luck.randint(1, 3)
            yield Children([_child(luck.randrange(2**32), depth, call, slot) for slot in range(many)])
    return COMPLETED


def _child(shape: int, depth: int, call: int, slot: int) -> Child:
    budget = (None, None, 1_000, None, None)
    return Child(agent="child", budget=budget, call=call, slot=slot, brain=lambda: _brain(Random(shape), depth + 1))  # noqa: S311


def _reply(luck: Random) -> Reply:
    cost = luck.choice([None, 0, 10**6, 10**8])
    return Reply("completed", luck.randrange(200), luck.randrange(200), 0, luck.randrange(200), cost, cost)


class _Tickets:
    """Every ticket that was handed out."""

    def __init__(self) -> None:
        self.kept: list[Ticket] = []


class _Watched:
    """Passes everything on, and keeps the tickets."""

    def __init__(self, policy: Policy, taken: _Tickets) -> None:
        self._policy, self._taken = policy, taken
        self.channels, self.blocking = policy.channels, policy.blocking

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def spawn(self, ask: SpawnAsk, now: Any) -> Any:
        """Answer whether a child may start."""
        return self._kept(self._policy.spawn(ask, now))

    def admit(self, ask: StepAsk, now: Any) -> Any:
        """Answer whether a step may start."""
        return self._kept(self._policy.admit(ask, now))

    def _kept(self, answer: Any) -> Any:
        if not isinstance(answer, Refusal):
            self._taken.kept.append(answer.ticket)
        return answer


class _Nowhere:
    """A sink that keeps nothing."""

    def node(self, record: Any) -> None:
        """Take a node."""

    def call(self, *call: Any) -> None:
        """Take a call."""

"""A limit tried out before it bites: a policy is asked everything, its answers are written down, and all is admitted.

After a node's first refusal the real policy would have stopped it, so whatever it and those below it ask later is
*moot*: it is written down and charged to that first refusal, and the policy is not asked. What a refused call then
turned out to cost is so known.

Source: our own.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.errors import AlreadySettled
from harness_lab.outcome import CHANNELS, COST, TOKENS, Code, Outcome, Refusal, Shortfall
from harness_lab.policies.outside import charge_outside, step_outside
from harness_lab.policies.protocol import (
    COMPLETED,
    SETTLED,
    End,
    Grant,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    Wait,
    path_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness_lab.clock import Time
    from harness_lab.policies.compose import Composed
    from harness_lab.policies.protocol import Ask, News, Path

Answer = Literal["granted", "refused", "moot", "waits"]
_NOTHING = Use((0,) * len(CHANNELS), "unsent")
_WITHDRAWN = End(Outcome.DENIED)


class ShadowAnswer:
    """One question, what the policy would have said, and what came of it.

    Attributes
    ----------
    path : Path
        The node that asked, or the child that was asked for.
    question : {"spawn", "admit"}
        Which question.
    call, attempt : int
        The call that was asked for; -1 for a child.
    answer : {"granted", "refused", "moot", "waits"}
        What the policy said. ``waits``: it would have queued the ask; here it runs at once, and what is below is moot.
    codes : tuple of str
        Each limit that fell short as ``code`` or ``code (channel)``, the binding one first; of a moot ask those of the
        refusal that made it so.
    limit, asked, free : int or None
        Figures of the binding limit, in its channel's unit.
    at : Time
        When it was asked.
    use : Use or None
        What the step used; None while it runs, and for children.
    """

    __slots__ = ("answer", "asked", "at", "attempt", "call", "codes", "free", "limit", "path", "question", "use")

    def __init__(self, ask: Ask, answer: Answer, refusal: Refusal | None, now: Time) -> None:
        step = isinstance(ask, StepAsk)
        self.path: Path = ask.node.path if isinstance(ask, StepAsk) else ask.path
        self.question = "admit" if step else "spawn"
        self.call, self.attempt = (ask.call, ask.attempt) if isinstance(ask, StepAsk) else (-1, -1)
        self.answer = answer
        self.at = now
        self.use: Use | None = None
        shorts = () if refusal is None else refusal.shortfalls
        self.codes = tuple(f"{s.code} ({s.channel})" if s.channel else str(s.code) for s in shorts)
        first = shorts[0] if shorts else None
        self.limit, self.asked, self.free = (None,) * 3 if first is None else (first.limit, first.asked, first.free)

    def row(self, run: str) -> dict[str, Any]:
        """Return it as plain values; None is unknown, or does not apply."""
        spent = None if self.use is None else self.use.spent
        return {
            "run": run,
            "node": path_text(self.path),
            "question": self.question,
            "call": self.call,
            "attempt": self.attempt,
            "answer": self.answer,
            "codes": list(self.codes),
            "limit": self.limit,
            "asked": self.asked,
            "free": self.free,
            "at_ns": int(self.at),
            "status": None if self.use is None else self.use.status,
            "cost_nusd": None if spent is None else spent[COST],
            "tokens": None if spent is None else spent[TOKENS],
        }


class _Twin:
    """What a ticket that was handed out stands for in the shadowed policy."""

    __slots__ = ("entry", "inner", "node", "refusal")

    def __init__(self, entry: ShadowAnswer, inner: Ticket | None, node: Ticket | None, refusal: Refusal | None) -> None:
        self.entry = entry
        self.inner = inner  # None: refused, moot or queued there
        self.node = node  # the nearest node there, for what is charged all the same
        self.refusal = refusal  # why everything from here on is moot


class Shadow:
    """A policy that asks another and admits everything.

    Parameters
    ----------
    policy : Composed
        Who would have answered; nobody else may ask it.
    count_refused : bool
        Whether what was refused is charged to it when it runs all the same. Default no: its books are then those of
        the world in which the refusals had held.
    run : str
        Name of the run, for the rows.
    sink : callable, optional
        Takes the row of each answer: a call's once it was settled, a child's at once. One that raises is warned about
        and stops nothing.

    Attributes
    ----------
    answers : list of ShadowAnswer
        In the order in which they were asked.

    Notes
    -----
    No deadline is enforced: from the deadline on the node is refused, with the code ``deadline``.
    """

    __slots__ = ("_count", "_policy", "_run", "_sink", "_twins", "answers", "blocking", "channels")

    def __init__(
        self,
        policy: Composed,
        *,
        count_refused: bool = False,
        run: str = "",
        sink: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        self._policy = policy
        self._count = count_refused
        self._run = run
        self._sink = sink
        self._twins: dict[Ticket, _Twin] = {}
        self.channels = policy.channels
        self.blocking = policy.blocking
        self.answers: list[ShadowAnswer] = []

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant:
        """Ask whether a child may start, and let it."""
        parent = ask.parent
        ticket = Ticket(ask, parent, 0 if parent is None else parent.depth + 1, [], now)
        self.watch(ticket, now)
        ticket.deadline = None
        return Grant(ticket)

    def admit(self, ask: StepAsk, now: Time) -> Grant:
        """Ask whether a step may start, and let it."""
        ticket = Ticket(ask, ask.node, ask.node.depth, [], now)
        self.watch(ticket, now)
        ticket.deadline = None
        return Grant(ticket)

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Write down what a step used, and tell the policy if it had admitted it."""
        self._end(step, use)
        self.watched(step, use, now)

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Tell the policy of a node's end if it had let it start."""
        self._end(node, use)
        self.watched(node, use, now, end)

    def watch(self, ticket: Ticket, now: Time) -> None:
        """Ask about what starts all the same, under a ticket that may be another policy's."""
        ask = ticket.ask
        self._twins[ticket] = self._step(ask, now) if isinstance(ask, StepAsk) else self._node(ask, now)

    def watched(self, ticket: Ticket, use: Use, now: Time, end: End = COMPLETED) -> None:
        """Take note that it ended."""
        twin = self._twins.pop(ticket)
        if isinstance(ticket.ask, StepAsk):
            self._charge(ticket.ask, twin, use, now)
        elif twin.inner is not None:
            self._policy.close(twin.inner, use, end, now)
        self._drain()

    def _node(self, ask: SpawnAsk, now: Time) -> _Twin:
        above = None if ask.parent is None else self._twins[ask.parent]
        asked = SpawnAsk(
            None if above is None else above.inner,
            ask.path,
            ask.budget,
            ask.floor_key,
            awaited=ask.awaited,
            wait_until=ask.wait_until,
            together=ask.together,
        )
        twin = self._asked(ask, asked, above, now)
        self._tell(twin.entry)
        return twin

    def _step(self, ask: StepAsk, now: Time) -> _Twin:
        above = self._twins[ask.node]
        inner = above.inner if above.inner is not None else ask.node
        kind = "model" if ask.kind == "wrap-up" else ask.kind  # another policy's limit, and a call like any other here
        asked = StepAsk(inner, ask.call, ask.attempt, ask.bound, kind, ask.count, ask.wait_until)
        twin = self._asked(ask, asked, above, now)
        if twin.refusal is not None:
            above.refusal = twin.refusal
        return twin

    def _charge(self, step: StepAsk, twin: _Twin, use: Use, now: Time) -> None:
        twin.entry.use = use
        if twin.inner is not None:
            self._policy.settle(twin.inner, use, now)
        elif self._count and twin.node is not None:
            ask = StepAsk(twin.node, step.call, step.attempt, step.bound, step.kind, step.count)
            charge_outside(self._policy, step_outside(ask, now), use, now, counts=True)
        self._tell(twin.entry)

    def cancel(self, node: Ticket, reason: str, now: Time) -> None:
        """Tell the policy that a subtree was stopped."""
        twin = self._twins.get(node)
        if twin is not None and twin.inner is not None:
            self._policy.cancel(twin.inner, reason, now)
        self._drain()

    def tick(self, now: Time) -> Time | None:
        """Tell the policy that time went by."""
        return self._policy.tick(now)

    def outbox(self) -> Iterator[News]:
        """Yield nothing: nobody waits."""
        return iter(())

    def rows(self) -> list[dict[str, Any]]:
        """Return every answer so far as plain values."""
        return [answer.row(self._run) for answer in self.answers]

    def _asked(self, ask: Ask, asked: Ask, above: _Twin | None, now: Time) -> _Twin:
        node = None if above is None else above.node
        late = above is not None and self._late(above, now)
        moot = above.refusal if above is not None else None
        if above is not None and (moot is not None or late):
            why = moot if moot is not None else Refusal((_late(now),))
            above.refusal = why  # the node itself would have been stopped
            return self._noted(ask, "moot" if moot is not None else "refused", None, node, why, now)
        answer: Any = self._policy.spawn(asked, now) if isinstance(asked, SpawnAsk) else self._policy.admit(asked, now)
        if isinstance(answer, Refusal):
            return self._noted(ask, "refused", None, node, answer, now)
        if isinstance(answer, Wait):
            self._withdraw(answer.ticket, now)
            return self._noted(ask, "waits", None, node, Refusal((_queued(answer, now),)), now)
        granted: Ticket = answer.ticket
        return self._noted(ask, "granted", granted, granted if isinstance(asked, SpawnAsk) else node, None, now)

    def _noted(
        self, ask: Ask, answer: Answer, inner: Ticket | None, node: Ticket | None, why: Refusal | None, now: Time
    ) -> _Twin:
        entry = ShadowAnswer(ask, answer, why, now)
        self.answers.append(entry)
        self._drain()
        return _Twin(entry, inner, node, why)

    def _withdraw(self, ticket: Ticket, now: Time) -> None:
        if isinstance(ticket.ask, SpawnAsk):
            self._policy.close(ticket, _NOTHING, _WITHDRAWN, now)
        else:
            self._policy.settle(ticket, _NOTHING, now)

    @staticmethod
    def _end(ticket: Ticket, use: Use) -> None:
        if ticket.state == SETTLED:
            raise AlreadySettled(str(ticket), ticket.first)
        ticket.state, ticket.first = SETTLED, use

    def _tell(self, entry: ShadowAnswer) -> None:
        if self._sink is None:
            return
        try:
            self._sink(entry.row(self._run))
        except Exception as error:  # a full disk must not stop what a shadow is to stop nowhere
            warnings.warn(f"the row of a shadow's answer could not be written: {error!r}", RuntimeWarning, stacklevel=2)

    def _drain(self) -> None:
        for _ in self._policy.outbox():
            pass

    @staticmethod
    def _late(twin: _Twin, now: Time) -> bool:
        return twin.inner is not None and twin.inner.deadline is not None and twin.inner.deadline <= now


def _late(now: Time) -> Shortfall:
    return Shortfall(Code.DEADLINE, None, int(now), None, "nothing")


def _queued(answer: Wait, now: Time) -> Shortfall:
    return Shortfall(Code.WAITED_TOO_LONG, answer.until, int(now), None, "wait")

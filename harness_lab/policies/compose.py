"""Composition: many modules answer as one policy.

Every module is asked what falls short, which changes nothing; only if nothing does is anything held. So a refusal names
every limit that fell short and consumes nothing, and ``would(ask)`` is a dry run.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from harness_lab.clock import Time, instant
from harness_lab.errors import AlreadySettled, HarnessLabError, InputError, UnknownTicket, check_kind
from harness_lab.outcome import CHANNELS, Code, Refusal, Shortfall
from harness_lab.policies.protocol import (
    OPEN,
    SETTLED,
    WAITING,
    End,
    Grant,
    Granted,
    Refused,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    Wait,
)
from harness_lab.policies.way_out import tried

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness_lab.policies.protocol import Ask, Module, News

_NOTHING = Use((0,) * len(CHANNELS), "unsent")
_NO_NEWS: Iterator[News] = iter(())


class Composed:
    """A policy made of modules, with one queue for all of them.

    Parameters
    ----------
    modules : sequence of Module
        In the order in which their shortfalls are reported; the first is the binding one.
    max_wait_ns : int or None
        How long an ask that names no bound itself may wait for what only time can give; None: refused at once.

    Attributes
    ----------
    news : deque of Granted, Refused or Stop
        What :meth:`outbox` has still to tell; a runtime may look whether there is any.

    Notes
    -----
    In memory and without locks: one event loop, or a lock around it.
    """

    __slots__ = (
        "_cancelled",
        "_max_wait",
        "_observed",
        "_queue",
        "_spawns",
        "_step_holders",
        "_step_waits",
        "_steps",
        "_warners",
        "blocking",
        "channels",
        "modules",
        "news",
    )

    def __init__(self, modules: Sequence[Module], *, max_wait_ns: int | None = None) -> None:
        self.modules = tuple(modules)
        self._max_wait = max_wait_ns
        self.channels: tuple[str, ...] = CHANNELS
        self.blocking = False
        for index, module in enumerate(self.modules):
            module.index = index
        self._spawns = [m for m in self.modules if m.asks_spawn]
        self._steps = [m for m in self.modules if m.asks_step]
        self._step_holders = [m for m in self._steps if getattr(m, "holds_steps", True)]
        self._observed: list[Any] = [m for m in self._steps if getattr(m, "observes", False)]
        self._warners: list[Any] = [m for m in self._spawns if getattr(m, "warns", False)]
        self._queue: deque[Ticket] = deque()
        self._step_waits = False  # whether anybody may wait for what a settled step moves
        self._cancelled: dict[Ticket, str] = {}
        self.news: deque[News] = deque()

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a child may start; whatever a closed node asks is refused as ``parent-ended``.

        Raises
        ------
        InputError
            If `now` is not whole nanoseconds, or the ask or its parent is none.
        UnknownTicket
            If the parent is not a node of this policy.
        """
        check_kind("ask", ask, SpawnAsk, expected="a SpawnAsk")
        parent = ask.parent
        if parent is not None and (type(parent) is not Ticket or parent.policy is not self):
            raise _unknown(parent)
        if parent is not None and parent.state == SETTLED:
            return _closed(parent)
        memory = [None] * len(self.modules)
        ticket = Ticket(ask, parent, 0 if parent is None else parent.depth + 1, memory, now, self)
        answer = self._answer(ticket, self._spawns, now if type(now) is int else instant("now", now))
        return self._warned(answer, now) if self._warners and type(answer) is Grant else answer

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a step may start; raises what :meth:`spawn` raises."""
        node = ask.node if type(ask) is StepAsk else ask
        if type(node) is not Ticket or node.policy is not self:
            raise _unknown(node)
        now = now if type(now) is int else instant("now", now)
        if node.state == SETTLED:
            return _closed(node)
        return self._answer(Ticket(ask, node, node.depth, node.memory, now, self), self._steps, now)

    def would(self, ask: Ask, now: Time) -> Refusal | None:
        """Return the refusal that an ask would get, None if it would be granted or queued; nothing changes.

        Raises
        ------
        InputError
            If it is no ask, or `now` not whole nanoseconds.
        UnknownTicket
            If whoever asks is no node of this policy.
        """
        check_kind("ask", ask, (SpawnAsk, StepAsk), expected="a SpawnAsk or a StepAsk")
        now = instant("now", now)
        above = ask.parent if type(ask) is SpawnAsk else ask.node
        if above is not None and (type(above) is not Ticket or above.policy is not self):
            raise _unknown(above)
        if above is not None and above.state == SETTLED:
            return _closed(above)
        short = self._short(ask, self._asked(ask), now)
        return None if not short or self._may_wait(ask, short) else Refusal(tried(ask, short, self._asked(ask), now))

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a step ended.

        Raises
        ------
        AlreadySettled
            If it was settled before; nothing moves.
        UnknownTicket
            If this policy never gave that ticket; nothing moves.
        InputError
            If it is no ticket, the use none, or `now` not whole nanoseconds; nothing moves.
        """
        if type(step) is not Ticket or step.policy is not self:
            raise _unknown(step)
        if type(now) is not int or type(use) is not Use:
            now = _sound(use, now)
        self._end(step, use, now)

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node's work has really ended; raises what :meth:`settle` raises."""
        if type(node) is not Ticket or node.policy is not self:
            raise _unknown(node)
        check_kind("end", end, End, expected="an End")
        self._end(node, use, _sound(use, now))

    def cancel(self, node: Ticket, reason: str, now: Time) -> None:
        """Refuse whatever the subtree asks from now on; calls in flight end and are charged.

        What the subtree has waiting is refused at once. The last reason stands.

        Raises
        ------
        UnknownTicket
            If this policy never gave that ticket; nothing moves.
        InputError
            If it is no ticket, the reason no text, or `now` not whole nanoseconds; nothing moves.
        """
        if type(node) is not Ticket or node.policy is not self:
            raise _unknown(node)
        check_kind("reason", reason, str, expected="text")
        instant("now", now)
        self._cancelled[node] = reason
        for ticket in [t for t in self._queue if self._stopped(t) is not None]:
            self._queue.remove(ticket)
            ticket.state = SETTLED
            self.news.append(Refused(ticket, Refusal((_was_cancelled(self._stopped(ticket) or reason),))))

    def tick(self, now: Time) -> Time | None:
        """Refuse those who waited too long; return when to be told again, None if nobody waits.

        Raises
        ------
        InputError
            If `now` is not whole nanoseconds.
        """
        now = instant("now", now)
        late = [ticket for ticket in self._queue if _until(ticket) <= now]
        for ticket in late:
            self._queue.remove(ticket)
            ticket.state = SETTLED
            self.news.append(Refused(ticket, Refusal((_waited(ticket, now),))))
        if late:  # whoever stood behind them in line may fit
            self._wake(now)
        return min((_until(t) for t in self._queue), default=None)

    def outbox(self) -> Iterator[News]:
        """Yield answers to those who waited."""
        return self._drained() if self.news else _NO_NEWS

    @property
    def waiting(self) -> int:
        """Questions that wait for an answer."""
        return len(self._queue)

    def _drained(self) -> Iterator[News]:
        while self.news:
            yield self.news.popleft()

    def _answer(self, ticket: Ticket, modules: Sequence[Module], now: Time) -> Grant | Wait | Refusal:
        ask = ticket.ask
        if self._cancelled and (reason := self._stopped(ticket)) is not None:
            return Refusal((_was_cancelled(reason),))
        for module in modules:
            if module.short(ask, now):
                return self._not_now(ticket, module, modules, now)
        if self._queue and self._waits(ask) and self._is_behind(ticket):
            return self._wait(ticket, now, None)
        if self._observed and (refused := self._reserved(ticket, now)):
            return Refusal(refused)
        for module in self._step_holders if modules is self._steps else modules:
            module.hold(ticket, now)
        return Grant(ticket)

    def _not_now(self, ticket: Ticket, first: Module, modules: Sequence[Module], now: Time) -> Wait | Refusal:
        """Answer an ask that falls short, in `first` before any other."""
        short = self._short(ticket.ask, modules, now)
        if self._may_wait(ticket.ask, short):
            return self._wait(ticket, now, first)
        return Refusal(tried(ticket.ask, short, modules, now))

    def _asked(self, ask: Ask) -> Sequence[Module]:
        return self._spawns if type(ask) is SpawnAsk else self._steps

    def _waits(self, ask: Ask) -> bool:
        return ask.wait_until is not None or self._max_wait is not None

    def _may_wait(self, ask: Ask, short: Sequence[Shortfall]) -> bool:
        return self._waits(ask) and _only_wait(short)

    def _wait(self, ticket: Ticket, now: Time, blocker: Module | None) -> Wait:
        ticket.state = WAITING
        ticket.blocker = blocker
        self._step_waits = self._step_waits or blocker is None or blocker.asks_step
        named = ticket.ask.wait_until
        ticket.until = named if named is not None else Time(now + (self._max_wait or 0))
        self._queue.append(ticket)
        return Wait(ticket, ticket.until)

    @staticmethod
    def _short(ask: Ask, modules: Sequence[Module], now: Time) -> tuple[Shortfall, ...]:
        found: tuple[Shortfall, ...] = ()
        for module in modules:
            short = module.short(ask, now)
            if short:
                found += tuple(short)
        return found

    def _reserved(self, ticket: Ticket, now: Time) -> tuple[Shortfall, ...]:
        """Tell those who observe of what fits every limit, before anything is held; they may refuse it."""
        refused = tuple(short for module in self._observed for short in module.reserve(ticket, now))
        if refused:
            for module in self._observed:
                if hasattr(module, "unreserve"):  # one that counts when it is asked
                    module.unreserve(ticket)
        return refused

    def _warned(self, grant: Grant, now: Time) -> Grant:
        """Let a child's grant carry what modules admit and would not pass over in silence."""
        ask = grant.ticket.ask
        if type(ask) is SpawnAsk:
            grant.warnings = tuple(line for module in self._warners for line in module.warnings(ask, now))
        return grant

    def _end(self, ticket: Ticket, use: Use, now: Time) -> None:
        if ticket.state != OPEN:
            self._withdraw(ticket, now)
            return
        ticket.state = SETTLED
        ticket.first = use
        of_node = type(ticket.ask) is SpawnAsk
        for module in self._spawns if of_node else self._steps:
            module.settle(ticket, use, now)
        if self._queue and (of_node or self._step_waits):
            self._wake(now, of_step=not of_node)

    def _withdraw(self, ticket: Ticket, now: Time) -> None:
        if ticket.state != WAITING:
            raise AlreadySettled(str(ticket), ticket.first)
        self._queue.remove(ticket)
        ticket.state = SETTLED
        ticket.first = _NOTHING
        self._wake(now)

    def _stopped(self, ticket: Ticket) -> str | None:
        """Return the reason for which the nearest stopped node above an ask was stopped, None if there is none."""
        node = ticket.parent
        while node is not None:
            if node in self._cancelled:
                return self._cancelled[node]
            node = node.parent
        return None

    def _is_behind(self, ticket: Ticket) -> bool:
        """Whether a sibling waits already: the children of one parent, and the steps of one node, are served in order.

        A single line for the whole tree would let a child that waits for a slot keep the slot's holder from going on.
        """
        kind, parent = type(ticket.ask), ticket.parent
        for waiting in self._queue:  # noqa: SIM110 - once for every question while anybody waits
            if waiting.parent is parent and type(waiting.ask) is kind:
                return True
        return False

    def _wake(self, now: Time, *, of_step: bool = False) -> None:
        """Answer those who wait in order of arrival; whoever has to go on waiting holds up only its own line.

        Whoever waits is asked about again when the limit that it waits for has moved: then by every module. The end of
        a step moves those that have a say in steps.
        """
        waiting: deque[Ticket] = deque()
        blocked: set[tuple[Ticket | None, type]] = set()
        self._step_waits = False
        for ticket in self._queue:
            line, blocker = (ticket.parent, type(ticket.ask)), ticket.blocker
            unmoved = of_step and blocker is not None and not blocker.asks_step
            if unmoved or line in blocked or not self._answered(ticket, now):
                blocked.add(line)
                waiting.append(ticket)
                blocker = ticket.blocker
                self._step_waits = self._step_waits or blocker is None or blocker.asks_step
        self._queue = waiting

    def _answered(self, ticket: Ticket, now: Time) -> bool:
        """Grant or refuse a waiting ask, if that can be said now."""
        ask, blocker = ticket.ask, ticket.blocker
        if blocker is not None and (short := blocker.short(ask, now)) and _only_wait(short):
            return False
        modules = self._asked(ask)
        short = self._short(ask, modules, now)
        if short and _only_wait(short):
            ticket.blocker = self._blocker(ask, modules, now)
            return False
        short = short or self._reserved(ticket, now)
        if short:
            ticket.state = SETTLED
            self.news.append(Refused(ticket, Refusal(tried(ask, short, modules, now))))
            return True
        ticket.state = OPEN
        for module in modules:
            module.hold(ticket, now)
        grant = Grant(ticket)
        self.news.append(Granted(ticket, self._warned(grant, now) if self._warners else grant))
        return True

    @staticmethod
    def _blocker(ask: Ask, modules: Sequence[Module], now: Time) -> Module | None:
        """Return the first module in which an ask falls short: the one whose limit it waits for."""
        return next((module for module in modules if module.short(ask, now)), None)


def _only_wait(short: Sequence[Shortfall]) -> bool:
    """Whether waiting helps against all that falls short."""
    for one in short:  # noqa: SIM110 - whenever a limit moves that somebody waits for
        if one.helps != "wait":
            return False
    return True


def _unknown(ticket: object) -> HarnessLabError:
    if isinstance(ticket, Ticket):
        return UnknownTicket(f"{ticket} was not given by this policy")
    return InputError("ticket", expected="the ticket of a grant", got=ticket)


def _sound(use: Use, now: Time) -> Time:
    check_kind("use", use, Use, expected="a Use")
    return instant("now", now)


def _closed(node: Ticket) -> Refusal:
    """Refuse what a closed node asks: its account has gone back to the one above."""
    return Refusal((Shortfall(Code.PARENT_ENDED, None, None, None, "nothing", detail=f"{node} is closed"),))


def _was_cancelled(reason: str) -> Shortfall:
    return Shortfall(Code.CANCELLED, None, None, None, "nothing", detail=reason)


def _until(ticket: Ticket) -> Time:
    """Return the bound that :meth:`Composed._wait` put on a queued ask."""
    return Time(ticket.until or 0)


def _waited(ticket: Ticket, now: Time) -> Shortfall:
    return Shortfall(Code.WAITED_TOO_LONG, _until(ticket), now, None, "wait")

"""A policy whose state outlives a run: opened once, then asked for one policy a run.

A :class:`~harness_lab.policies.spec.PolicySpec` is data and has no state. Modules whose scope is wider than a run (a
period budget, a durable account) keep theirs in what :meth:`PolicySpec.open` returns: everything started from one
:class:`OpenPolicy` shares it, while modules of scope ``run`` are made afresh by each start.

::

    with compose(shared_ledger(40), period_budget(cost_usd=5, by="user")).open() as policy:
        one = policy.start("run-1", {"user": "ann"}, clock.now(), wall_ns=time.time_ns())
        two = policy.start("run-2", {"user": "ann"}, clock.now(), wall_ns=time.time_ns())
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from harness_lab.clock import Time, instant
from harness_lab.errors import InputError
from harness_lab.outcome import Refusal
from harness_lab.policies.compose import Composed
from harness_lab.policies.protocol import OPEN, SETTLED, Grant, Granted, Refused, SpawnAsk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor

    from harness_lab.outcome import Shortfall
    from harness_lab.policies.protocol import Module, Ticket, Use, Wait
    from harness_lab.policies.spec import PolicySpec

Scope = Literal["run", "session", "shared"]

_EARLIEST = 946_684_800 * 10**9  # the year 2000: a run's own clock, counted from anywhere, lies before it
_POLL_NS = 10**9
_START = Time(0)


class SharedSpec(Protocol):
    """A module specification whose state outlives a run."""

    @property
    def scope(self) -> Scope:
        """How long its state lasts: that of a session, or for good."""

    def open(self) -> Any:
        """Make the state, or connect to it."""

    def attach(self, state: Any, run: str, groups: Mapping[str, str], now: Time, wall_ns: int) -> Module:
        """Make one run's module on that state; `wall_ns` is `now` as epoch nanoseconds."""


class CommitModule(Protocol):
    """A module that does I/O, last in its composition: its commit decides."""

    index: int

    def claim(self, ticket: Ticket, now: Time) -> Sequence[Shortfall]:
        """Check and hold in one step that others cannot come between; return what fell short, empty when it is held."""

    def withdraw(self, ticket: Ticket, now: Time) -> None:
        """Take a claim back that came to nothing."""

    def forget(self, ticket: Ticket) -> None:
        """Leave a claim to its expiry."""


class OpenPolicy:
    """A policy with state that its runs share.

    Parameters
    ----------
    spec : PolicySpec
        Its data.

    Notes
    -----
    In-memory state has no locks: start and ask from one thread or event loop. A durable account is safe for threads and
    processes; each process opens its own.
    """

    __slots__ = ("_states", "_thread", "spec")

    def __init__(self, spec: PolicySpec) -> None:
        self.spec = spec
        self._states = [_open(module) for module in spec.modules]
        self._thread: Executor | None = None

    @property
    def scope(self) -> Scope:
        """How long the state lasts."""
        return self.spec.scope

    def state(self, kind: str) -> Any:
        """Return the state of the first module of a kind: a period budget, a durable account; None without one."""
        found = zip(self.spec.modules, self._states, strict=True)
        return next((state for module, state in found if module.kind == kind), None)

    def start(
        self, run: str, groups: Mapping[str, str] | None = None, now: Time = _START, *, wall_ns: int | None = None
    ) -> SharedComposed:
        """Make one run's policy on the shared state.

        Parameters
        ----------
        run : str
            Name of the run.
        groups : mapping of str to str
            Who runs it: user, team, key ...; fixed for the run.
        now : Time
            The instant on the run's clock.
        wall_ns : int or None
            The same instant as epoch nanoseconds; None: the run's clock shows them itself.

        Raises
        ------
        InputError
            If a group that a module needs is not named, or `now` cannot be epoch nanoseconds and `wall_ns` is missing.
        """
        return self.composed(self.modules(run, groups, now, wall_ns=wall_ns))

    def modules(
        self, run: str, groups: Mapping[str, str] | None, now: Time, *, wall_ns: int | None, but: str = ""
    ) -> list[Module]:
        """Make one run's modules, all but those of one kind; for :meth:`start`, and for runtimes that add their own.

        Raises
        ------
        InputError
            If `now` cannot be epoch nanoseconds and `wall_ns` is missing, or a group is not named.
        """
        instant("now", now)
        outlives = any(state is not None for state in self._states)
        if outlives and wall_ns is None and now < _EARLIEST:
            hint = "Give wall_ns=time.time_ns() beside the run's own clock"
            raise InputError("now", expected="epoch nanoseconds, or wall_ns", got=now, hint=hint)
        wall = now if wall_ns is None else instant("wall_ns", wall_ns)
        named = dict(groups) if groups is not None else {}
        modules: list[Module] = [
            module.build(now) if state is None else module.attach(state, run, named, now, wall)  # type: ignore[attr-defined]
            for module, state in zip(self.spec.modules, self._states, strict=True)
            if module.kind != but
        ]
        name_run(modules, run)
        return modules

    def composed(self, modules: Sequence[Module]) -> SharedComposed:
        """Compose modules under this policy's rules of waiting and of what happens at a limit."""
        from harness_lab.policies.at_limit import SharedAtLimit  # it builds on this module

        wait, axis = self.spec.wait_ns, self.spec.at_limit
        shared = SharedComposed if axis is None else partial(SharedAtLimit, at_limit=axis)
        policy = shared(modules, max_wait_ns=wait)
        policy.opened = self
        return policy

    @property
    def thread(self) -> Executor:
        """The one thread in which an event loop asks its policies that do I/O: state in memory has no locks."""
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor  # loads slowly, and few need it

            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="harness-lab-policy")
        return self._thread

    def close(self) -> None:
        """Close what is open; state on disk stays."""
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
        for state in self._states:
            if hasattr(state, "close"):
                state.close()

    def __enter__(self) -> OpenPolicy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SharedComposed(Composed):
    """A composition on shared state: a module that does I/O decides last, and those who wait are asked about again.

    Admission: every module in memory is asked, which changes nothing; then the last one *claims*, in one commit; then
    those in memory hold, which cannot fail. So a refusal, an error or a crash before the commit leaves nothing held
    anywhere, and a crash after it leaves a hold that expires by rule. Settlement goes the other way round: the commit
    first, and if it fails nothing has moved and it can be tried again.

    Attributes
    ----------
    opened : OpenPolicy or None
        Whose state it is on.
    poll_ns : int
        How often :meth:`tick` wants to be called while somebody waits, nanoseconds: what other runs and other processes
        give back is seen only there.

    Raises
    ------
    InputError
        If a module that does I/O is not the last one.
    """

    __slots__ = ("_commit", "_memory", "opened")
    poll_ns = _POLL_NS

    def __init__(self, modules: Sequence[Module], *, max_wait_ns: int | None = None) -> None:
        super().__init__(modules, max_wait_ns=max_wait_ns)
        check_order(self.modules)
        last: Any = self.modules[-1] if self.modules else None
        self._commit: CommitModule | None = last if getattr(last, "blocking", False) else None
        self.blocking = any(getattr(m, "blocking", False) or getattr(m, "does_io", False) for m in self.modules)
        self.opened: OpenPolicy | None = None
        self._memory = [m for m in self._steps if m is not self._commit]

    def tick(self, now: Time) -> Time | None:
        """Refuse those who waited too long, ask about the others again, and say when to be told next.

        What others give back, or the turn of a window, reaches those who wait here only.
        """
        until = super().tick(now)
        if self._queue:
            self._wake(now)
        return None if until is None or not self._queue else min(until, Time(now + _POLL_NS))

    def give_up(self, step: Ticket, use: Use, now: Time) -> None:
        """Charge a step everywhere but where it could not be written: its hold there expires by rule."""
        commit: Any = self._commit
        for module in reversed(self._asked(step.ask)):
            if module is not commit:
                module.settle(step, use, now)
        if commit is not None:
            commit.forget(step)
        step.state, step.first = SETTLED, use

    def _answer(self, ticket: Ticket, modules: Sequence[Module], now: Time) -> Grant | Wait | Refusal:
        commit = self._commit
        if commit is None or type(ticket.ask) is SpawnAsk:
            return super()._answer(ticket, modules, now)
        ask = ticket.ask
        for module in self._memory:
            if module.short(ask, now):
                return self._not_now(ticket, module, modules, now)
        if self._queue and self._waits(ask) and self._is_behind(ticket):
            return self._wait(ticket, now, None)
        short = tuple(self._claimed(commit, ticket, now))
        if short:
            return self._wait(ticket, now, None) if self._may_wait(ask, short) else Refusal(short)
        return Grant(ticket)

    def _answered(self, ticket: Ticket, now: Time) -> bool:
        commit = self._commit
        if commit is None or type(ticket.ask) is SpawnAsk:
            return super()._answered(ticket, now)
        short = self._short(ticket.ask, self._memory, now) or tuple(self._claimed(commit, ticket, now))
        if short and all(s.helps == "wait" for s in short):
            return False
        if short:
            ticket.state = SETTLED
            self.news.append(Refused(ticket, Refusal(short)))
            return True
        ticket.state = OPEN
        self.news.append(Granted(ticket, Grant(ticket)))
        return True

    def _claimed(self, commit: CommitModule, ticket: Ticket, now: Time) -> Sequence[Shortfall]:
        """Claim, then hold in memory; if that is interrupted, the claim is taken back."""
        short = commit.claim(ticket, now)
        if short:
            return short
        try:
            refused = self._reserved(ticket, now) if self._observed else ()
            if refused:
                commit.withdraw(ticket, now)
                return refused
            for module in self._memory:
                module.hold(ticket, now)
        except BaseException:
            commit.withdraw(ticket, now)
            raise
        return ()

    def _end(self, ticket: Ticket, use: Use, now: Time) -> None:
        if ticket.state != OPEN:
            self._withdraw(ticket, now)
            return
        for module in reversed(self._asked(ticket.ask)):
            module.settle(ticket, use, now)
        ticket.state = SETTLED
        ticket.first = use
        if self._queue:
            self._wake(now, of_step=type(ticket.ask) is not SpawnAsk)


def check_order(modules: Sequence[object]) -> None:
    """Refuse a composition in which a module that does I/O is not the last one: its commit is the commit point.

    Raises
    ------
    InputError
        If one comes before the end.
    """
    for module in modules[:-1]:
        if getattr(module, "blocking", False):
            name = getattr(module, "kind", type(module).__name__)
            raise InputError("modules", expected=f"{name} in the last place: its commit decides", got="another order")


def name_run(modules: Sequence[Any], run: str) -> None:
    """Tell modules that name calls which run they belong to."""
    for module in modules:
        if hasattr(module, "run"):
            module.run = run


def scope_of(modules: Sequence[object]) -> Scope:
    """Return the widest scope of some modules."""
    scopes = {getattr(module, "scope", "run") for module in modules}
    return "shared" if "shared" in scopes else "session" if "session" in scopes else "run"


def _open(module: Any) -> Any:
    return module.open() if getattr(module, "scope", "run") != "run" else None

"""A scope: one driver, its children on a conserved pool, and the journal of both.

A driver spends on turns of its own and hands parts of its pool to children. The scope keeps the books: who holds what,
how each child ended, what of it is known; it writes every step into a journal from which, after a restart, the same
books are made again, without a token more and with the same deadline.

It reads no clock and starts nothing: whoever runs the children says what happened.

Source: supervisors of tangle-network/agent-runtime: one conserved pool, keyed work that is done once, and books that a
restart makes again; `PoolRules` names where its eras differ.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget.allocation import Allocation
from harness_lab.budget.scope_books import ScopeBooks
from harness_lab.budget.scope_child import Child, ExecutionRetained, ReservationsOpen, whose_fault
from harness_lab.budget.scope_restore import restored_children, restored_pool
from harness_lab.budget.spend import NOTHING, UNREPORTED, Quantity, Spend
from harness_lab.clock import Time, instant
from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, Cause, Code, Outcome, Refusal, Shortfall
from harness_lab.usage import checked_amounts, optional_count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from harness_lab.budget.scope_journal import Event, Leak, Settlement
    from harness_lab.usage import Amounts


BEGINNING: Final = Time(0)
"""The moment of a scope that counts time from its own start."""


class Scope(ScopeBooks):
    """The books of one driver and its children.

    Parameters
    ----------
    pool : ReservationPool
        What they share.
    name : str
        What ids in the tree begin with.
    deadline : Time or None
        When everything must have ended, nanoseconds; a moment, so that a restart does not move it.
    share : tuple of int or None, optional
        What a child gets that does not ask for itself; the driver takes no turn once that is not left.
    keep : tuple of int or None, optional
        What the driver keeps for itself: children are admitted beside it.

    Attributes
    ----------
    journal : list of Event
        Everything that happened, in order; nested scopes write into the same one.
    children : list of Child
        In the order in which they were asked for.

    Examples
    --------
    >>> from harness_lab.budget import ReservationPool
    >>> from harness_lab.usage import amounts
    >>> scope = Scope(ReservationPool(amounts(fresh=1_000)))
    >>> child = scope.spawn("look", amounts(fresh=400))
    >>> scope.settle(child, Spend(input=90, output=10), output="found").overspent
    ()
    >>> Scope.restore(scope.journal).pool.free()[3]
    900
    """

    __slots__ = ()

    @classmethod
    def restore(cls, journal: Sequence[Event], *, died: Collection[str] = ()) -> Scope:
        """Make the books again from a journal.

        Parameters
        ----------
        journal : sequence of Event
            What was written before the restart, whole.
        died : collection of str
            Ids of children that are known to have died with the process; they are charged nothing more. Any other child
            without a last word is charged its whole ask, because nobody knows.

        Raises
        ------
        InputError
            If it is no list of events, does not begin with its scope being opened, or a line of it is missing, there
            twice or in another place.

        Notes
        -----
        Lines that were never written cannot be missed. A child without a last word is charged its whole ask, so a lost
        end gives nothing back; but a driver's own turn (``metered``) and a start whose lines were lost are not known.
        Write each line to the disk before the driver goes on.
        """
        pool, about = restored_pool(journal, died), journal[0].data
        share, keep = (None if about[name] is None else tuple(about[name]) for name in ("share", "keep"))
        scope = cls(pool, name=journal[0].by, deadline=about["deadline"], share=share, keep=keep)
        scope.journal[:] = journal
        scope.children[:] = restored_children(journal, scope.name)
        return scope

    def nested(self, child: Child) -> Scope:
        """Return the scope of a child that is a driver itself: its children draw on its share.

        Raises
        ------
        InputError
            If the child does not run.
        """
        if child.allocation is None or child.state != "running":
            raise InputError("child", expected="one that runs", got=child.state)
        scope = object.__new__(Scope)
        scope.pool, scope.name, scope.deadline, scope.journal = self.pool, child.id, child.deadline, self.journal
        scope.children, scope.finished, scope._inside, scope._line = [], False, child.allocation, deque()
        scope.share, scope.keep = self.share, None
        child.scope, child.begun = scope, True
        return scope

    def spawn(
        self,
        name: str,
        ask: Amounts | None = None,
        *,
        key: str | None = None,
        task: str | None = None,
        resources: Mapping[str, Quantity] | None = None,
        keep: Amounts | None = None,
        lasts_ns: int | None = None,
        wait: bool = False,
        again: bool = False,
        now: Time = BEGINNING,
    ) -> Child | Refusal:
        """Set a child's ask aside, or say why not.

        Parameters
        ----------
        name : str
            What the driver calls it.
        ask : tuple of int or None
            By channel, None: drawn from what the scope has. The scope's share if left out.
        key : str, optional
            Work with the same key is done once: a child that completed is returned as it is, one that did not is done
            again and says so.
        task : str, optional
            Digest of what is to be done; another task under the same key is refused.
        resources : mapping of str to Quantity, optional
            Named resources; each that the pool limits must be named.
        keep : tuple of int or None, optional
            What the driver keeps for itself; the scope's if left out.
        lasts_ns : int, optional
            Longest life of the child.
        wait : bool
            Stand in line for what others give back, if that can ever be enough.
        again : bool
            Do the work of a key again although nobody knows how it ended the first time.
        now : Time
            The moment, nanoseconds on the clock of the scope's deadline.

        Raises
        ------
        InputError
            If the child has no name, its ask is none, or a time is no whole number.
        """
        now = instant("now", now)
        lasts_ns = optional_count("lasts_ns", lasts_ns)
        if not isinstance(name, str) or not name:
            raise InputError("name", expected="what the child is called", got=name)
        refused = self._closed(now)
        prior = None if refused or key is None else self._keyed(key)
        if prior is not None:
            refused = self._conflict(prior, task, again=again)
            if refused is None and prior.settlement is not None and prior.settlement.completed:
                prior.prior = "done"
                return prior
        if refused is not None:
            return Refusal((refused,))
        asked = self._asked(ask, resources)
        child = Child(f"{self.name}:s{len(self.children)}", name, key, task, asked)
        child.deadline = _sooner(self.deadline, None if lasts_ns is None else Time(now + lasts_ns))
        if prior is not None:
            child.prior = "lost" if prior.settlement is None else "retried"
            child.prior_reason = "" if prior.settlement is None else prior.settlement.reason
        return self._admitted(child, keep if keep is not None else self.keep, wait=wait)

    def resume(self, child: Child, *, wait: bool = False) -> Child | Refusal:
        """Hold the ask again of a child that is found alive after it was let go of.

        Raises
        ------
        InputError
            If the child was not let go of.
        """
        if child.state != "pending" or child.settlement is None:
            raise InputError("child", expected="one whose execution was retained", got=child.state)
        child.before, child.spent = child.settlement.spent, NOTHING
        return self._admitted(child, self.keep, wait=wait)

    def run(self, child: Child, work: Callable[[Callable[[Spend], None]], Any]) -> Settlement:
        """Do a child's work and settle it, whatever comes of it.

        Parameters
        ----------
        child : Child
            One that runs.
        work : callable
            Gets a function to report what it uses; what it returns is its output.

        Notes
        -----
        A bad input or a broken limit is the infrastructure's, any other exception the child's own. Work that raises
        before it reported anything has used nobody knows how much.
        """
        child.begun = True
        try:
            output = work(lambda spend: self.meter(child, spend))
        except ExecutionRetained:
            return self.retain(child)
        except Exception as error:
            child.spent = UNREPORTED if child.spent == NOTHING else child.spent
            return self.settle(child, outcome=Outcome.FAILED, cause=whose_fault(error), reason=str(error))
        return self.settle(child, output=output)

    def cancel(self, child: Child, reason: str = "cancelled") -> Settlement | None:
        """Stop a child: what it used is charged. One that still stands in line leaves it and has never been."""
        self._child(child)
        if child.state == "waiting":
            self._line = deque(each for each in self._line if each[0] is not child)
            child.state = "pending" if child.settlement is not None else "ended"
            self._serve()
            return None
        if child.state == "running" and child.settlement is not None and not child.begun:
            self._release(child)
            return None
        return self.settle(child, outcome=Outcome.CANCELLED, cause=Cause.USER, reason=reason)

    def finish(self, *, delivered: bool) -> tuple[Leak, ...]:
        """End the scope: no child starts from here on.

        Parameters
        ----------
        delivered : bool
            Whether the run has a result.

        Returns
        -------
        tuple of Leak
            Reservations that nobody closed, of a run without a result.

        Raises
        ------
        ReservationsOpen
            If a run with a result has such.
        """
        leaks = self.open_reservations()
        self.finished = True
        self._write("finished", None, {"delivered": delivered, "leaks": [asdict(leak) for leak in leaks]})
        if leaks and delivered:
            raise ReservationsOpen(leaks)
        return leaks

    def _closed(self, now: Time) -> Shortfall | None:
        if self.finished:
            return Shortfall(Code.PARENT_ENDED, None, None, None, "nothing")
        if self.deadline is not None and now >= self.deadline:
            return Shortfall(Code.DEADLINE, self.deadline, now, 0, "nothing", "time")
        return None

    def _asked(self, ask: Amounts | None, resources: Mapping[str, Quantity] | None) -> Amounts:
        asked = ask if ask is not None else self.share
        if asked is None:
            raise InputError("ask", expected="amounts by channel, or a share of the scope's", got=None)
        if isinstance(asked, tuple) and len(asked) == len(self.pool.channels) > len(CHANNELS):
            return asked
        return self.pool.ask(asked, resources) if resources or self.pool.units else checked_amounts("ask", asked)

    def _keyed(self, key: str) -> Child | None:
        return next((child for child in reversed(self.children) if child.key == key), None)

    @staticmethod
    def _conflict(prior: Child, task: str | None, *, again: bool) -> Shortfall | None:
        code = None
        if prior.task != task:
            code = Code.KEY_CONFLICT
        elif prior.state in ("running", "waiting"):
            code = Code.KEY_IN_USE
        elif prior.state == "pending" and not again:
            code = Code.KEY_IN_DOUBT
        return None if code is None else Shortfall(code, None, None, None, "nothing", detail=f"key {prior.key}")

    def _admitted(self, child: Child, keep: Amounts | None, *, wait: bool) -> Child | Refusal:
        short = self.pool.shortfalls(child.ask, self._inside, keep=keep)
        if short and not (wait and all(each.helps == "wait" for each in short)):
            return Refusal(short)
        answer = None if short or (wait and self._line) else self.pool.reserve(child.ask, self._inside, keep=keep)
        if isinstance(answer, Refusal):
            return answer
        if child.settlement is None:
            self.children.append(child)
        if isinstance(answer, Allocation):
            self._begin(child, answer)
        else:
            child.state = "waiting"
            self._line.append((child, keep))
        return child

    def _release(self, child: Child) -> None:
        if child.allocation is not None:
            self.pool.reconcile(child.allocation)
        child.state = "pending"
        self._write("withdrawn", child, {})
        self._serve()


def _sooner(one: Time | None, other: Time | None) -> Time | None:
    return min((moment for moment in (one, other) if moment is not None), default=None)

"""The books of a scope: turns and children charged, settled, written down, and added up."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from harness_lab.budget.pool_rules import BudgetFault
from harness_lab.budget.scope_child import Child
from harness_lab.budget.scope_journal import Accounting, Event, Leak, Settlement, metered, read_spend, spend_from_dict
from harness_lab.budget.spend import NOTHING, Spend
from harness_lab.clock import instant
from harness_lab.errors import AlreadySettled, InputError, check_kind
from harness_lab.outcome import COST, Cause, Outcome, Refusal, Shortfall
from harness_lab.usage import checked_amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.budget.allocation import Allocation
    from harness_lab.budget.pool import ReservationPool
    from harness_lab.budget.scope_journal import EventKind
    from harness_lab.clock import Time
    from harness_lab.usage import Amounts


class ScopeBooks:
    """What :class:`~harness_lab.budget.Scope` keeps; its driver starts children, this says what became of them.

    Attributes
    ----------
    journal : list of Event
        Everything that happened, in order; nested scopes write into the same one.
    children : list of Child
        In the order in which they were asked for.
    """

    __slots__ = ("_inside", "_line", "children", "deadline", "finished", "journal", "keep", "name", "pool",
                 "share")  # fmt: skip

    def __init__(
        self,
        pool: ReservationPool,
        *,
        name: str = "root",
        deadline: Time | None = None,
        share: Amounts | None = None,
        keep: Amounts | None = None,
    ) -> None:
        self.pool = pool
        self.share = None if share is None else checked_amounts("share", share)
        self.keep = None if keep is None else checked_amounts("keep", keep)
        self.name = name
        self.deadline = None if deadline is None else instant("deadline", deadline)
        self.journal: list[Event] = []
        self.children: list[Child] = []
        self.finished = False
        self._inside: Allocation = pool.root
        self._line: deque[tuple[Child, Amounts | None]] = deque()
        limits = tuple(None if account.limit < 0 else account.limit for account in pool.root.accounts)
        about = {"limits": limits, "units": dict(pool.units), "deadline": self.deadline, "rules": asdict(pool.rules)}
        about |= {"share": self.share, "keep": self.keep}
        self._write("opened", None, about)

    def meter(self, child: Child, spend: Spend) -> None:
        """Take note of what a child that runs has used; the pool moves when it settles.

        Raises
        ------
        InputError
            If the child does not run, or the spend is none; nothing has changed then.
        """
        self._child(child)
        if child.state != "running":
            raise InputError("child", expected="one that runs", got=child.state)
        check_kind("spend", spend, Spend, expected="a Spend")
        child.begun = True
        child.spent += spend

    def turn(self, spend: Spend) -> None:
        """Charge a turn of the driver's own; a limited resource that it does not name was not used by it.

        Raises
        ------
        BudgetFault
            Where the pool's rules do not let a turn of unknown cost pass; the journal has it all the same.
        InputError
            If it is no spend, or names a resource that the pool has not, or another unit; nothing is written then.
        """
        check_kind("spend", spend, Spend, expected="a Spend")
        spend.by_channel(self.pool.units, partial=True)
        self._write("metered", None, asdict(spend))
        if self._inside.parent is None:
            self.pool.observe(spend, partial=True)
        else:
            self.pool.book(self._inside, spend, partial=True)

    def before_turn(self) -> tuple[Shortfall, ...]:
        """Return why the driver must not take another turn: not even one more child's share would be left."""
        asked = self.share if self.share is not None else (None,) * len(self.pool.channels)
        padded = (*asked, *[None] * (len(self.pool.channels) - len(asked)))
        least = tuple(max(a or 0, 1) if i == COST else a for i, a in enumerate(padded))
        return self.pool.shortfalls(least if self._inside.accounts[COST].limit >= 0 else padded, self._inside)

    def settle(
        self,
        child: Child,
        spend: Spend | Mapping[str, Any] | None = None,
        *,
        output: Any = None,
        outcome: Outcome = Outcome.COMPLETED,
        cause: Cause | None = Cause.NONE,
        reason: str = "",
        score: float | None = None,
    ) -> Settlement:
        """End a child: what it used is charged, the rest comes back, and those in line are answered.

        A spend that cannot be read (InputError) leaves the child's reservation open. One that the pool's rules do not
        let pass makes the child failed, with the fault as its reason and without a result.
        """
        self._child(child)
        more = spend if isinstance(spend, Spend) else spend_from_dict(spend) if spend is not None else NOTHING
        spent = (child.spent + more).complete(self.pool.units, known=child.scope is not None)
        ended = Settlement(id=child.id, name=child.name, outcome=outcome, cause=cause, reason=reason, spent=spent)
        ended = self._reconciled(child, replace(ended, output=output, score=score))
        return self._end(child, ended, "cancelled" if outcome is Outcome.CANCELLED else "settled")

    def retain(self, child: Child) -> Settlement:
        """Let go of a child whose execution may still be alive elsewhere.

        What it has reported is charged, as a lower bound, and the rest of its reservation comes back; it has not ended,
        so it has no last word before :meth:`release`.
        """
        spent = replace(child.spent, tokens_known=False)
        self._close(child, spent)
        settlement = Settlement(
            id=child.id,
            name=child.name,
            outcome=Outcome.FAILED,
            cause=Cause.INFRASTRUCTURE,
            reason="its execution was let go of and may still be alive",
            spent=child.before + spent,
            retained="pending",
        )
        child.state, child.settlement = "pending", settlement
        self._write("reconciled", child, asdict(settlement))
        self._serve()
        return settlement

    def release(self, child: Child, *, destroyed: bool | None) -> Settlement | None:
        """Take note of what became of a retained execution.

        Parameters
        ----------
        child : Child
            One that was retained.
        destroyed : bool or None
            Whether its environment is known to be gone; None: nothing was heard, so nothing is written.

        Returns
        -------
        Settlement or None
            The child's last word, only once its execution is known to be gone.

        Raises
        ------
        InputError
            If the child was not let go of.
        """
        if child.settlement is None or child.settlement.retained != "pending":
            raise InputError("child", expected="one whose execution was retained", got=child.state)
        if destroyed is None:
            return None
        self._write("teardown", child, {"destroyed": destroyed})
        return self._end(child, replace(child.settlement, retained="released"), "settled") if destroyed else None

    def accounting(self) -> Accounting:
        """Return what was used so far, the turns of drivers and the work of children apart, each counted once."""
        inference, work = metered(self.journal, self.name), NOTHING
        for child in self.children:
            if child.scope is not None:
                below = child.scope.accounting()
                inference, work = inference + below.inference, work + below.work
                work += child.spent
            elif child.settlement is not None:
                work += child.settlement.spent
            else:  # after a restart its own children are known from the journal alone
                work += child.spent + read_spend(self.journal, child.id)[0]
        return Accounting(inference=inference, work=work)

    def best(self) -> Settlement | None:
        """Return the completed child with the best score; the first of those that have none; None without any."""
        done = [c.settlement for c in self.children if c.settlement is not None and c.settlement.completed]
        return max(done, key=lambda s: -1.0 if s.score is None else s.score, default=None)

    def open_reservations(self) -> tuple[Leak, ...]:
        """Return who holds a part of the pool now."""
        return tuple(
            Leak(ticket=i, child=c.id, name=c.name, key=c.key, stage="executing" if c.begun else "admitted")
            for i, c in enumerate(self.children)
            if c.state == "running"
        )

    @staticmethod
    def _child(child: object) -> None:
        check_kind("child", child, Child, expected="a child, as spawn returned it")

    def _begin(self, child: Child, allocation: Allocation) -> None:
        child.allocation, child.state, child.begun = allocation, "running", False
        about = {"name": child.name, "key": child.key, "task": child.task, "ask": child.ask, "deadline": child.deadline}
        self._write("spawned" if child.settlement is None else "resumed", child, about)

    def _serve(self) -> None:
        """Answer those in line from the front; whoever no longer can be served is refused, so that the next may."""
        while self._line:
            child, keep = self._line[0]
            answer = self.pool.reserve(child.ask, self._inside, keep=keep)
            if isinstance(answer, Refusal) and all(s.helps == "wait" for s in answer.shortfalls):
                return
            self._line.popleft()
            if isinstance(answer, Refusal):
                child.state = "ended" if child.settlement is None else "pending"
                child.refusal = answer
            else:
                self._begin(child, answer)

    def _close(self, child: Child, spent: Spend) -> None:
        """Charge a child that is let go of; what is only a lower bound is not held against its reservation."""
        if child.allocation is None or child.state != "running":
            raise InputError("child", expected="one that runs", got=child.state)
        try:
            self.pool.reconcile(child.allocation, spent)
        except BudgetFault:
            return

    def _reconciled(self, child: Child, ended: Settlement) -> Settlement:
        if child.state == "ended":
            raise AlreadySettled(child.name, child.settlement)
        if child.allocation is None or child.state != "running":
            raise InputError("child", expected="one that runs", got=child.state)
        try:
            over = self.pool.reconcile(child.allocation, ended.spent)
        except BudgetFault as fault:
            cause = Cause.INFRASTRUCTURE if fault.unknown else Cause.MODEL
            failed = replace(ended, outcome=Outcome.FAILED, cause=cause, reason=str(fault), output=None)
            ended, over = (failed if ended.completed else ended), fault.overspent
        below = child.scope.accounting().total if child.scope is not None else NOTHING
        return replace(ended, overspent=over, spent=child.before + ended.spent + below)

    def _end(self, child: Child, ended: Settlement, kind: EventKind) -> Settlement:
        before = sum(c.settlement is not None and c.settlement.seq is not None for c in self.children)
        ended = replace(ended, seq=before)
        child.state, child.settlement = "ended", ended
        self._write(kind, child, asdict(ended))
        self._serve()
        return ended

    def _write(self, kind: EventKind, child: Child | None, data: Mapping[str, Any]) -> None:
        seq = len(self.journal)
        self.journal.append(
            Event(seq=seq, kind=kind, by=self.name, child=None if child is None else child.id, data=data)
        )

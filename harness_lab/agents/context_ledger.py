"""The bridge between a run context and a policy: the context's own ledger answers the policy's questions.

``RunContext`` and ``RunLedger`` are what an application holds, cancels and reads; ``spawn, admit, settle, close`` are
what the agent loop asks. Here both are one object, so they cannot disagree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness_lab.agents.envelope import RunUsage
from harness_lab.agents.readout import BudgetLeft, reason
from harness_lab.budget import Ceiling, RunBudget, RunContext, RunLedger
from harness_lab.budget import _rules as rules
from harness_lab.outcome import CALLS, COST, Code, Shortfall
from harness_lab.policies.protocol import SpawnAsk, StepAsk
from harness_lab.policies.shared_ledger import SharedLedger

if TYPE_CHECKING:
    from harness_lab.agents.rules import AgentRules
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Ask, Path, Ticket, Use

NO_STEPS = "no steps remain in the run tree for this subagent"


class Account:
    """One node in the ledger: its ceiling, and what its own subtree has used.

    Attributes
    ----------
    above : Account or None
        Its parent's; None for the node at which this policy begins.
    fixed : Ceiling
        The ceiling on the tree's totals as it was when the node started.
    declared : Ceiling or None
        What was declared for it and counts its own subtree only; None: `fixed` is all there is.
    room : Ceiling
        What it might use itself when it started: `fixed` less what the tree had used.
    node : Ticket or None
        The node itself, once it has started.
    steps, cost_nusd, unmetered : int
        What it and all below it have used.
    """

    __slots__ = ("above", "cost_nusd", "declared", "fixed", "node", "room", "steps", "unmetered")

    def __init__(self, above: Account | None, fixed: Ceiling, declared: Ceiling | None, ledger: RunLedger) -> None:
        self.room = Ceiling(
            rules.free(fixed.steps, ledger.steps, 0),
            rules.free(fixed.cost_nusd, ledger.cost_nusd, 0),
            rules.free(fixed.elapsed_ns, ledger.elapsed_ns(), 0),
        )
        self.above = above
        self.node: Ticket | None = None
        self.fixed = fixed
        self.declared = declared
        self.steps = self.cost_nusd = self.unmetered = 0

    @property
    def usage(self) -> RunUsage:
        """What it and all below it have used."""
        return RunUsage.of(self.steps, self.cost_nusd, self.unmetered)


class ContextLedger(SharedLedger):
    """The shared-ledger module over the ledger of a run context.

    Parameters
    ----------
    context : RunContext
        The node at which the policy begins: the root, or the parent of a child that is run by hand.
    run_rules : AgentRules
        How declarations are counted.
    declared : RunBudget or None
        For a child that is run by hand: its declaration, under `context` as its parent's.
    charge_hold : bool
        Whether a call without reported cost is charged its worst case where it has one.
    """

    __slots__ = ("_announced", "_begins", "_rules", "accounts")

    def __init__(
        self,
        context: RunContext,
        run_rules: AgentRules,
        *,
        declared: RunBudget | None = None,
        charge_hold: bool = False,
    ) -> None:
        self.ledger = context.ledger
        self.index = 0
        self._charge_hold = charge_hold
        self._rules = run_rules
        self._announced: dict[Path, Ceiling] = {}
        self.accounts: dict[Path, Account] = {}
        self._begins = Account(None, Ceiling.of(context.budget), None, context.ledger)
        if declared is not None:
            self._begins = self._under(self._begins, Ceiling.of(declared))

    @property
    def whole(self) -> bool:
        """Whether the budget that it begins with is one of the whole tree, and not a child's declaration."""
        return self._begins.above is None

    def announce(self, path: Path, declared: RunBudget) -> None:
        """Say what a child that is about to be asked for may use, its time included."""
        self._announced[path] = Ceiling.of(declared)

    def in_force(self, account: Account) -> Ceiling:
        """Return the ceiling on the tree's totals that holds for a node now.

        A declaration that counts the node's own subtree moves with what others spend: what they use is neither its
        nor taken from it, until its parent's ceiling is reached.
        """
        declared, above = account.declared, account.above
        if declared is None or above is None:
            return account.fixed
        parent, ledger = self.in_force(above), self.ledger
        steps = rules.nested(parent.steps, ledger.steps - account.steps, declared.steps)
        cost = rules.nested(parent.cost_nusd, ledger.cost_nusd - account.cost_nusd, declared.cost_nusd)
        return Ceiling(steps, cost, account.fixed.elapsed_ns)

    def ceiling(self, path: Path) -> Ceiling:
        """Return the ceiling in force for the node of a path; the one it begins with before it has started."""
        return self.in_force(self.accounts.get(path, self._begins))

    def left(self, path: Path) -> BudgetLeft:
        """Return what is left for a node now."""
        return BudgetLeft.of(self.ledger, self.ceiling(path), rules=self._rules)

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return the first limit that the asking node has reached."""
        node = ask.node if type(ask) is StepAsk else ask.parent
        if node is None:
            return ()
        ceiling = self.in_force(node.memory[self.index])
        code = self.ledger.binding(ceiling)
        return () if code is None else (self._shortfall(code, ceiling),)

    def gauges(self, node: Ticket, now: Time) -> list[tuple[str, int, int]]:
        """Return how full each limit over a node is."""
        return self._full(self.in_force(node.memory[self.index]))

    def child_short(self, ask: SpawnAsk) -> tuple[Shortfall, ...]:
        """Return the limit that would keep a child from making even one call."""
        if ask.parent is None:
            return ()
        ceiling = self._under(ask.parent.memory[self.index], self._declaration(ask)).fixed
        code = self.ledger.binding(ceiling)
        if code is None:
            return ()
        found = self._shortfall(code, ceiling)
        return (replace(found, detail=NO_STEPS) if code is Code.STEPS_EXHAUSTED else found,)

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Open a node's account; a step holds nothing."""
        ask = ticket.ask
        if type(ask) is not SpawnAsk:
            return
        account = self._begins
        if ticket.parent is not None:
            account = self._under(ticket.parent.memory[self.index], self._declaration(ask))
        self._announced.pop(ask.path, None)
        account.node = ticket
        ticket.memory[self.index] = self.accounts[ask.path] = account

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Charge a step to the ledger, and to the accounts of its node and of all above it."""
        ledger = self.ledger
        steps, cost, unmetered = ledger.steps, ledger.cost_nusd, ledger.unmetered_runs
        super().settle(ticket, use, now)
        account: Account | None = ticket.memory[self.index]
        while account is not None:
            account.steps += ledger.steps - steps
            account.cost_nusd += ledger.cost_nusd - cost
            account.unmetered += ledger.unmetered_runs - unmetered
            account = account.above

    def _under(self, above: Account, declared: Ceiling) -> Account:
        fixed = self._rules.nested(declared, self.in_force(above), self.ledger)
        return Account(above, fixed, declared if self._rules.siblings == "own" else None, self.ledger)

    def _declaration(self, ask: SpawnAsk) -> Ceiling:
        announced = self._announced.get(ask.path)
        if announced is not None:
            return announced
        calls, cost = ask.budget[CALLS], ask.budget[COST]
        return Ceiling(-1 if calls is None else calls, -1 if cost is None else cost, -1)

    def _shortfall(self, code: Code, ceiling: Ceiling) -> Shortfall:
        """Add the ledger's own words."""
        return replace(super()._shortfall(code, ceiling), detail=reason(self.ledger, ceiling) or "")


class ChildCeilings:
    """Refuses a child that could not make one call, before it has a session or a prompt.

    A module of its own, so that depth can be asked in between: a child that is too deep as well is denied.
    """

    asks_spawn = True
    asks_step = False
    __slots__ = ("_ledger", "index")

    def __init__(self, ledger: ContextLedger) -> None:
        self._ledger = ledger
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return the limit that the child would have reached at once."""
        return self._ledger.child_short(ask) if type(ask) is SpawnAsk else ()

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Set nothing aside: the ledger keeps the accounts."""

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Charge nothing: the ledger does."""


def child_stop(context: RunContext, declared: RunBudget, run_rules: AgentRules) -> str | None:
    """Say why a child could not make one call under a context, None when it could."""
    ceiling = run_rules.nested(Ceiling.of(declared), Ceiling.of(context.budget), context.ledger)
    code = context.ledger.binding(ceiling)
    return NO_STEPS if code is Code.STEPS_EXHAUSTED else reason(context.ledger, ceiling)

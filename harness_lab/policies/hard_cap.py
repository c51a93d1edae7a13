"""A hard cap: each call's worst case is held before it starts, and what it really used is charged after it.

While every bound holds, spent + held never exceeds a cap, whatever runs side by side. Reaching it exactly is allowed. A
bill above its bound is charged in full, recorded, and ends admission: the bounds cannot be relied on any more.

A node's own declaration of cost is a cap on it and all below it, inside its parent's.

Source: the hard cost cap of prism-harness as its documents describe it; caps in other channels than money are our own.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from harness_lab.budget import _pots as pots
from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, COST, Code, Shortfall
from harness_lab.policies.call_costs import CallContext, CallCostObserver, CallRefused, CallReservation, CallSettlement
from harness_lab.policies.protocol import SpawnAsk, StepAsk, path_text
from harness_lab.pricing.bounds import CallBound
from harness_lab.usage import Amounts, amounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Ask, Status, Ticket, Use

UnknownCharge = pots.UnknownCharge


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHoldsSpec:
    """Parameters of holds by call; None: no cap in that channel, 0: nothing may be used.

    Parameters
    ----------
    calls, input, tokens, fresh : int or None
        Caps of the tree: model calls; prompt tokens; all tokens; newly presented tokens.
    cost_usd : float or None
        Dollars of the tree. What a node declares (the root, or any child) is a cap of its own, also where the tree has
        none.
    unknown_usage : {"charge-hold", "charge-prompt", "release"}
        What a call that ended without usage is charged: its worst case; the prompt's part of it, where the bound says
        which that is, else nothing; or nothing. In the last two, spend is a lower bound from then on, and what is
        capped there is refused.
    observer : CallCostObserver or None
        Who is told of every call. It is no data: it is not stored with the policy.

    Raises
    ------
    InputError
        If a limit is negative, not finite or not a number, or a choice is none of those named.
    """

    calls: int | None = None
    input: int | None = None
    tokens: int | None = None
    fresh: int | None = None
    cost_usd: float | None = None
    unknown_usage: UnknownCharge = "charge-hold"
    observer: CallCostObserver | None = field(default=None, compare=False, repr=False)
    kind: str = "call_holds"

    def __post_init__(self) -> None:
        for name, limit in zip(CHANNELS[:-1], self.limits(), strict=False):
            object.__setattr__(self, name, limit)
        if self.unknown_usage not in get_args(UnknownCharge):
            choices = ", ".join(get_args(UnknownCharge))
            raise InputError("unknown_usage", expected=f"one of {choices}", got=self.unknown_usage)
        if self.observer is not None and not (
            hasattr(self.observer, "reserving") and hasattr(self.observer, "settled")
        ):
            raise InputError("observer", expected="an object with reserving and settled", got=self.observer)

    def limits(self) -> Amounts:
        """Return the caps by channel."""
        return amounts(calls=self.calls, input=self.input, tokens=self.tokens, fresh=self.fresh, cost_usd=self.cost_usd)

    def build(self, now: Time) -> CallHolds:
        """Make a module with nothing spent."""
        return CallHolds(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, the observer left out."""
        plain = asdict(replace(self, observer=None))
        del plain["observer"]
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundViolation:
    """A bill above its bound.

    Parameters
    ----------
    call_id : str
        The call.
    channels : tuple of str
        Capped channels in which the bill lies above the bound.
    bound, billed : Amounts
        What was held, and what was charged.
    """

    call_id: str
    channels: tuple[str, ...]
    bound: Amounts
    billed: Amounts


class CapPot(pots.Pot):
    """A capped budget: the tree's, or that of a child and all below it.

    Attributes
    ----------
    limited : tuple of (int, int)
        Channels that have a cap, and the cap.
    apart : list of int
        Charged outside the cap (wrap-up steps), by channel; not part of `spent`.
    """

    __slots__ = ("apart", "limited")

    def __init__(self, limits: Sequence[int | None]) -> None:
        super().__init__([-1 if limit is None else limit for limit in limits])
        self.limited = tuple((i, limit) for i, limit in enumerate(self.limits) if limit >= 0)
        self.apart = [0] * pots.SIZE

    def set_aside(self, bound: Amounts, sign: int) -> None:
        """Set a bound aside in the capped channels; with ``sign=-1`` give it back."""
        self.open += sign
        held = self.held
        for i, _ in self.limited:
            held[i] += sign * (bound[i] or 0)

    def violated(self, bound: Amounts, spent: Amounts) -> bool:
        """Whether a bill lies above its bound in a capped channel."""
        for i, _ in self.limited:
            amount = spent[i]
            if amount is not None and amount > (bound[i] or 0):
                return True
        return False


class CallHolds:
    """The module; a node's memory is the chain of pots from the tree's to its own.

    Attributes
    ----------
    pot : CapPot
        The tree's.
    violations : list of BoundViolation
        Bills above their bounds.
    run : str
        Name of the run, the beginning of every call's id.
    """

    asks_spawn = True
    asks_step = True
    takes_at_admission = True
    __slots__ = (
        "_calls",
        "_channels",
        "_ids",
        "_open",
        "_root_counts_it",
        "_spec",
        "index",
        "pot",
        "run",
        "violations",
    )

    def __init__(self, spec: CallHoldsSpec) -> None:
        self._spec = spec
        self.pot = CapPot(spec.limits())
        self._channels = {i for i, _ in self.pot.limited} | {COST}
        self._open: dict[Ticket, tuple[tuple[CapPot, ...], Amounts, str]] = {}
        self._ids: dict[Ticket, str] = {}
        self._calls = 0
        self._root_counts_it = False
        self.violations: list[BoundViolation] = []
        self.run = ""
        self.index = 0

    @property
    def observes(self) -> bool:
        """Whether somebody wants to be told before a call is held."""
        return self._spec.observer is not None

    def short(self, ask: Ask, now: Time) -> Sequence[Shortfall]:
        """Return every cap that the call's worst case would cross, or why it has no worst case."""
        if type(ask) is not StepAsk:
            return self._ended(ask.parent)
        bound = ask.bound
        for pot in ask.node.memory[self.index]:
            spent, held = pot.spent, pot.held
            for i, limit in pot.limited:
                asked = bound[i]
                if asked is None or pot.ended or pot.unknown[i] or spent[i] + held[i] + asked > limit:
                    return self._shortfalls(ask)
        return ()

    def carry_on(self, spent_nusd: int, unknown: int, *, root_counts_it: bool) -> None:
        """Begin in the middle of a tree.

        Parameters
        ----------
        spent_nusd : int
            What the tree has cost so far, nano-dollars.
        unknown : int
            How many of its calls did not report their cost.
        root_counts_it : bool
            Whether the budget of the node at which this begins is one of the whole tree, so that it counts there too.
        """
        self.pot.spent[COST], self.pot.unknown[COST] = spent_nusd, unknown
        self._root_counts_it = root_counts_it

    def reserve(self, ticket: Ticket, now: Time) -> Sequence[Shortfall]:
        """Tell the observer of a call that fits every limit; return its refusal."""
        ask, observer = ticket.ask, self._spec.observer
        if type(ask) is not StepAsk or ask.kind == "tool" or observer is None:
            return ()
        bound = ask.bound
        reservation = CallReservation(
            call_id=self._named(ticket),
            provider=bound.provider if isinstance(bound, CallBound) else None,
            model=bound.model if isinstance(bound, CallBound) else None,
            worst_case_nusd=bound[COST],
            kind=ask.kind,
        )
        try:
            observer.reserving(reservation, self._context(ticket))
        except CallRefused as refused:
            return (Shortfall(Code.CALL_REFUSED, None, bound[COST], None, "other-path", "cost", refused.code),)
        self._ids[ticket] = reservation.call_id
        return ()

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Set a call's worst case aside; give a child that declares a cost its own cap."""
        ask = ticket.ask
        if type(ask) is SpawnAsk:
            above: tuple[CapPot, ...] = (self.pot,) if ticket.parent is None else ticket.parent.memory[self.index]
            ticket.memory[self.index] = whose = self._chain(above, ask.budget)
            if ticket.parent is None and self._root_counts_it and len(whose) > 1:
                whose[1].spent[COST], whose[1].unknown[COST] = self.pot.spent[COST], self.pot.unknown[COST]
            return
        bound = _counted(ask)
        chain: tuple[CapPot, ...] = ticket.memory[self.index]
        for pot in chain:
            pot.set_aside(bound, 1)
        self._open[ticket] = (chain, bound, self._ids.pop(ticket, "") if self._ids else "")

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Give the hold back and charge what was used, never clamped to it."""
        ask = ticket.ask
        if type(ask) is not StepAsk:
            return
        chain, bound, call_id = self._open.pop(ticket)
        spent, sent = use.spent, use.status != "unsent"
        charge = None if sent and None not in spent else self._charge(ask, bound, use)
        over = False
        for pot in chain:
            pot.set_aside(bound, -1)
            if charge is None:
                pot.spent = [x + y for x, y in zip(pot.spent, spent, strict=True)]  # type: ignore[operator]
            else:
                pot.add(charge)
            over = over or (sent and pot.violated(bound, spent))
        if over:
            self._violated(chain, bound, use, call_id or self._named(ticket))
        if call_id:
            self._told(ticket, call_id, charge if charge is not None else self._charge(ask, bound, use), use.status)

    def outside(self, ticket: Ticket, use: Use, now: Time, *, counts: bool = False) -> None:
        """Charge a step that was never held: booked apart, so that it takes nothing from the caps, or counted as spent.

        Spend that counts may lie above a cap: whoever lets a step run that the cap refused, does so knowingly.
        """
        ask = ticket.ask
        if type(ask) is not StepAsk:
            return
        charge = self._charge(ask, _counted(ask), use)
        for pot in ticket.memory[self.index]:
            if counts:
                pot.add(charge)
                continue
            for i, amount in enumerate(charge.spent):
                pot.apart[i] += amount
        self._told(ticket, self._ids.pop(ticket, ""), charge, use.status)

    def unsettled(self) -> str | None:
        """Say what is still held; None once every call has been settled."""
        return f"{self.pot.open} call(s) are still held" if self.pot.open or any(self.pot.held) else None

    def gauges(self, node: Ticket, now: Time) -> list[tuple[str, int, int]]:
        """Return how full each cap over a node is: its channel, what is spent or held, and the cap."""
        return [
            (CHANNELS[i], pot.spent[i] + pot.held[i], limit)
            for pot in node.memory[self.index]
            for i, limit in pot.limited
        ]

    def _ended(self, parent: Ticket | None) -> Sequence[Shortfall]:
        """Refuse children of a node that may make no call any more."""
        chain: tuple[CapPot, ...] = () if parent is None else parent.memory[self.index]
        return (Shortfall(Code.BOUND_VIOLATED, None, None, None, "nothing"),) if any(p.ended for p in chain) else ()

    def _chain(self, above: tuple[CapPot, ...], budget: Amounts) -> tuple[CapPot, ...]:
        own = [amount if i in self._channels else None for i, amount in enumerate(budget)]
        return above if all(amount is None for amount in own) else (*above, CapPot(own))

    def _charge(self, ask: StepAsk, bound: Amounts, use: Use) -> pots.Charge:
        if use.status == "unsent":
            return pots.NOTHING
        prompt = ask.bound.prompt if isinstance(ask.bound, CallBound) else None
        return pots.charge(bound, use.spent, self._spec.unknown_usage, prompt)

    def _violated(self, chain: tuple[CapPot, ...], bound: Amounts, use: Use, call_id: str) -> None:
        over = pots.violated(bound, use.spent)
        capped = {i for pot in chain for i, _ in pot.limited}
        channels = tuple(CHANNELS[i] for i in sorted(capped) if over >> i & 1)
        self.violations.append(BoundViolation(call_id=call_id, channels=channels, bound=bound, billed=use.spent))
        for pot in chain:
            pot.ended = True

    def _told(self, ticket: Ticket, call_id: str, charge: pots.Charge, status: Status) -> None:
        observer = self._spec.observer
        if observer is None or not call_id:
            return
        settlement = CallSettlement(
            call_id=call_id,
            outcome="failed" if status == "unsent" else status,
            charged_nusd=charge.spent[COST],
            usage_known=not charge.assumed >> COST & 1,
        )
        try:
            observer.settled(settlement, self._context(ticket))
        except Exception as error:  # the money has been booked, and the other modules have to book it too
            warnings.warn(f"an observer of call costs failed: {error!r}", RuntimeWarning, stacklevel=2)

    def _shortfalls(self, ask: StepAsk) -> list[Shortfall]:
        bound = _counted(ask)
        found: list[Shortfall] = []
        for pot in ask.node.memory[self.index]:
            whose = "" if pot is self.pot else "of this child's own declaration"
            for short in pots.shortfalls(pot, bound, cap="hard", fresh=None, detail=whose):
                found += self._named_codes(short, ask.bound)
        return list(dict.fromkeys(found))

    @staticmethod
    def _named_codes(short: Shortfall, bound: Amounts) -> tuple[Shortfall, ...]:
        """Put the code of the hard cost cap in place of the general one."""
        if short.code is Code.UNBOUNDED and isinstance(bound, CallBound) and bound.shortfalls:
            return bound.shortfalls
        crosses = short.code is Code.BUDGET_EXHAUSTED and short.channel == CHANNELS[COST]
        return (replace(short, code=Code.COST_CAP_WOULD_EXCEED) if crosses else short,)

    def _named(self, ticket: Ticket) -> str:
        ask = ticket.ask
        self._calls += 1
        step = f"{ask.call}.{ask.attempt}" if isinstance(ask, StepAsk) else ""
        return f"{self.run}{path_text(ticket.path)}#{step}#{self._calls}"

    def _context(self, ticket: Ticket) -> CallContext:
        ask = ticket.ask
        call, attempt = (ask.call, ask.attempt) if isinstance(ask, StepAsk) else (0, 0)
        return CallContext(run=self.run, path=ticket.path, depth=ticket.depth, call=call, attempt=attempt)


def _counted(ask: StepAsk) -> Amounts:
    """Return what a step holds: its bound with its calls counted; a tool is no call and holds only what it names."""
    bound = ask.bound
    if ask.kind == "tool":
        return tuple(amount or 0 for amount in bound)
    return bound if bound[0] is not None else (ask.count, *bound[1:])

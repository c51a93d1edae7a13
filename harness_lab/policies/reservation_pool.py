"""The reservation pool as a module: an ask is held at spawn, calls are metered inside, the rest comes back.

Source: the conserved pool of tangle-network/agent-runtime (:mod:`harness_lab.budget.pool`); `grants` and `inside` are
our own axes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from harness_lab.budget import Allocation, ReservationPool
from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, COST, Code
from harness_lab.policies.protocol import SpawnAsk, StepAsk
from harness_lab.policies.shared_ledger import UNKNOWN_USAGE, UnknownUsage
from harness_lab.usage import Amounts, amounts

if TYPE_CHECKING:
    from harness_lab.clock import Time
    from harness_lab.outcome import Shortfall
    from harness_lab.policies.protocol import Ask, Ticket, Use

Inside = Literal["stop", "record"]
Grants = Literal["as-asked", "even-split", "isolated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationPoolSpec:
    """Parameters of the reservation pool; None: no limit in that channel.

    Parameters
    ----------
    calls, input, tokens, fresh : int or None
        Model calls; prompt tokens; all tokens; newly presented tokens, of the whole tree.
    cost_usd : float or None
        Dollars of the whole tree.
    inside : {"stop", "record"}
        What happens once a child has used up its own ask: its next call is refused, or it goes on and the overspend is
        recorded.
    grants : {"as-asked", "even-split", "isolated"}
        What a child is granted: its ask, or a refusal; its ask bounded by an even share of what its parent has left,
        over the children of its batch; or its ask as a budget of its own, outside its parent's, so that the limits of
        the pool do not bound the tree.
    unknown_usage : {"release", "charge-hold"}
        What a call without reported usage does: ``release`` charges nothing in the unknown channels, so that spend is a
        lower bound and money under a ceiling is closed from then on; ``charge-hold`` charges the call's worst case.

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
    inside: Inside = "stop"
    grants: Grants = "as-asked"
    unknown_usage: UnknownUsage = "release"
    kind: str = "reservation_pool"

    def __post_init__(self) -> None:
        for name, limit in zip(CHANNELS[:-1], self.limits(), strict=False):
            object.__setattr__(self, name, limit)
        if self.inside not in ("stop", "record"):
            raise InputError("inside", expected="stop or record", got=self.inside)
        if self.grants not in get_args(Grants):
            raise InputError("grants", expected=f"one of {', '.join(get_args(Grants))}", got=self.grants)
        if self.unknown_usage not in UNKNOWN_USAGE:
            raise InputError("unknown_usage", expected=f"one of {', '.join(UNKNOWN_USAGE)}", got=self.unknown_usage)

    def limits(self) -> Amounts:
        """Return the totals by channel."""
        return amounts(calls=self.calls, input=self.input, tokens=self.tokens, fresh=self.fresh, cost_usd=self.cost_usd)

    def build(self, now: Time) -> PoolModule:
        """Make a module with a full pool."""
        return PoolModule(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@lru_cache(maxsize=256)
def _limits(spec: ReservationPoolSpec) -> Amounts:
    """Return the totals by channel; made once for the many runs of a simulation."""
    return spec.limits()


class PoolModule:
    """One :class:`~harness_lab.budget.ReservationPool` for the tree; each node's memory is its allocation."""

    asks_spawn = True
    asks_step = True
    holds_steps = False
    __slots__ = ("_charge_hold", "_grants", "_record", "index", "pool")

    def __init__(self, spec: ReservationPoolSpec) -> None:
        self.pool = ReservationPool(_limits(spec))
        self._grants = spec.grants
        self._record = spec.inside == "record"
        self._charge_hold = spec.unknown_usage == "charge-hold"
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return every channel in which the ask, or one more call, does not fit."""
        if type(ask) is StepAsk:
            short = self.pool.used_up(ask.node.memory[self.index])
            return tuple(s for s in short if s.code is Code.SPEND_UNKNOWN) if self._record and short else short
        if ask.parent is None or self._grants == "isolated":
            return ()
        above: Allocation = ask.parent.memory[self.index]
        if self._grants == "as-asked":
            return self.pool.missing(ask.budget, above)
        nothing_left = self.pool.used_up(above)
        return nothing_left if nothing_left else self.pool.missing(self._granted(ask, above), above)

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Set a child's ask aside; a step holds nothing."""
        ask = ticket.ask
        if type(ask) is not SpawnAsk:
            return
        parent = ticket.parent
        if parent is None:
            ticket.memory[self.index] = self.pool.root
        elif self._grants == "isolated":
            ticket.memory[self.index] = ReservationPool(ask.budget).root
            ticket.ceiling = ask.budget
        else:
            above: Allocation = parent.memory[self.index]
            ticket.ceiling = self._granted(ask, above)
            ticket.memory[self.index] = self.pool.hold(ticket.ceiling, above)

    def _granted(self, ask: SpawnAsk, above: Allocation) -> Amounts:
        if self._grants == "as-asked":
            return ask.budget
        return self.pool.even_share(ask.budget, above, together=ask.together)

    def unsettled(self) -> str | None:
        """Say what is still held; None once every child has ended."""
        held = [f"{amount:,} in {name}" for name, amount in zip(CHANNELS, self.pool.held(), strict=False) if amount]
        return f"the pool still holds {', '.join(held)}" if held else None

    def booked_nusd(self) -> tuple[int, bool] | None:
        """Return the money booked, and whether it is just what was reported; None where children have budgets apart."""
        if self._grants == "isolated":
            return None
        return self.pool.root.accounts[COST].spent, not self._charge_hold

    def gauges(self, node: Ticket, now: Time) -> list[tuple[str, int, int]]:
        """Return how full each limit over a node is: its channel, what is spent or held, and the limit."""
        allocation: Allocation = node.memory[self.index]
        return [(CHANNELS[i], a.spent + a.held, a.limit) for i, a in allocation.limited]

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Meter a step, or end a child's allocation."""
        allocation: Allocation = ticket.memory[self.index]
        ask = ticket.ask
        if type(ask) is SpawnAsk:
            if allocation.parent is not None:
                self.pool.reconcile(allocation)
        elif use.status != "unsent":
            spent = use.spent
            if self._charge_hold and None in spent:
                spent = tuple(b if s is None else s for s, b in zip(spent, ask.bound, strict=True))
            self.pool.commit(allocation, spent)

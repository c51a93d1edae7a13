"""What most targets enforce: a counter that is checked before a call and added to after it, as a module of a policy.

A file that was exported is read back as a policy that answers as the target does, so that it can be simulated on the
same draws as the policy it came from. Nothing is held: calls that run at once all pass while anything is left, and the
call that crosses a limit is paid in full. A call that reports no usage adds nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from harness_lab.errors import InputError
from harness_lab.outcome import CALLS, CHANNELS, Code, Shortfall
from harness_lab.policies.protocol import SpawnAsk, StepAsk
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Ask, Ticket, Use
    from harness_lab.usage import Amounts

Whose = Literal["tree", "node", "root", "child"]
Trips = Literal["reached", "passed"]
Counts = Literal["attempts", "replies", "starts"]

_CODES = {"calls": Code.STEPS_EXHAUSTED, "cost": Code.COST_EXHAUSTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterSpec:
    """Parameters of a counter; None: no limit in that channel, 0: nothing may be used.

    Parameters
    ----------
    calls, input, tokens, fresh : int or None
        Model calls; prompt tokens; all tokens; newly presented tokens.
    cost_usd : float or None
        Dollars.
    whose : {"tree", "node", "root", "child"}
        One counter for the tree; one for each node; one for the root alone; one for each node but the root.
    trips : {"reached", "passed"}
        Whether the next call is refused once a limit is reached, or only once it is passed. Calls always trip when
        reached.
    counts : {"attempts", "replies", "starts"}
        What a call is: each attempt, once it ended; only one that came back, where failed ones are tried again below
        the loop or end it; each attempt as it starts, so that those at once cannot pass the limit together. What a call
        used counts when it ended, whatever came of it.
    """

    calls: int | None = None
    input: int | None = None
    tokens: int | None = None
    fresh: int | None = None
    cost_usd: float | None = None
    whose: Whose = "tree"
    trips: Trips = "reached"
    counts: Counts = "attempts"
    kind: str = "meter"

    many: ClassVar[bool] = True
    """A composition may hold several."""

    def __post_init__(self) -> None:
        self.limits()
        switches = {"whose": Whose, "trips": Trips, "counts": Counts}
        for name, choices in ((name, get_args(kind)) for name, kind in switches.items()):
            if getattr(self, name) not in choices:
                raise InputError(name, expected=f"one of {', '.join(choices)}", got=getattr(self, name))

    def limits(self) -> Amounts:
        """Return the limits by channel."""
        return amounts(calls=self.calls, input=self.input, tokens=self.tokens, fresh=self.fresh, cost_usd=self.cost_usd)

    def build(self, now: Time) -> Meter:
        """Make a module with nothing counted."""
        return Meter(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


class Meter:
    """A node's memory is the list of what its counter holds by channel; None where nothing is counted."""

    asks_spawn = True
    asks_step = True
    __slots__ = ("_counts", "_limited", "_passed", "_whose", "index")

    def __init__(self, spec: MeterSpec) -> None:
        self._limited = [(channel, limit) for channel, limit in enumerate(spec.limits()) if limit is not None]
        self._whose = spec.whose
        self._passed = spec.trips == "passed"
        self._counts = spec.counts
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return every limit that is reached (or passed); a spawn is never refused."""
        if type(ask) is not StepAsk or ask.kind == "tool":
            return ()
        counted: list[int] | None = ask.node.memory[self.index]
        if counted is None:
            return ()
        return tuple(
            Shortfall(_CODES.get(CHANNELS[c], Code.BUDGET_EXHAUSTED), limit, 1, 0, "nothing", CHANNELS[c])
            for c, limit in self._limited
            if counted[c] > limit or (counted[c] == limit and not (self._passed and c != CALLS))
        )

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Give a node its counter; a step holds nothing, and counts where starts do."""
        if type(ticket.ask) is not SpawnAsk:
            counted: list[int] | None = ticket.memory[self.index]
            if self._counts == "starts" and counted is not None and ticket.ask.kind != "tool":
                counted[CALLS] += ticket.ask.count
            return
        parent = ticket.parent
        if self._whose == "tree" and parent is not None:
            ticket.memory[self.index] = parent.memory[self.index]
        else:
            apart = {"root": parent is not None, "child": parent is None}
            ticket.memory[self.index] = None if apart.get(self._whose, False) else [0] * len(CHANNELS)

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Add what a step used; what is unknown adds nothing."""
        ask = ticket.ask
        if type(ask) is not StepAsk or use.status == "unsent" or ask.kind == "tool":
            return
        counted: list[int] | None = ticket.memory[self.index]
        if counted is None:
            return
        calls = use.spent[CALLS]
        if self._counts == "attempts" or (self._counts == "replies" and use.status == "completed"):
            counted[CALLS] += ask.count if calls is None else calls
        for channel, _ in self._limited:
            if channel != CALLS:
                counted[channel] += use.spent[channel] or 0

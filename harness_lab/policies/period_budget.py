"""Period budgets as a module: what a user, team, key or any group may use in a window, whatever the number of runs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from harness_lab.budget.period import Carry, PeriodBudget, PeriodHold, PeriodLimits
from harness_lab.budget.windows import Calendar, Every, Rolling
from harness_lab.clock import ns
from harness_lab.errors import InputError
from harness_lab.outcome import CALLS, CHANNELS, amount_text
from harness_lab.policies.protocol import StepAsk
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.budget._pots import Cap
    from harness_lab.clock import Time
    from harness_lab.outcome import Shortfall
    from harness_lab.policies.protocol import Ask, Ticket, Use
    from harness_lab.usage import Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodBudgetSpec:
    """Parameters of a period budget; limits apply to one window of one group, None: no limit, 0: nothing may be used.

    Parameters
    ----------
    calls, input, tokens, fresh : int or None
        Model calls; prompt tokens; all tokens; newly presented tokens.
    cost_usd : float or None
        Dollars.
    by : str or tuple of str
        Names of the groups that each have a budget of their own, such as ``"user"`` or ``("team", "key")``; empty: one
        budget for all. A run names its groups when it starts.
    every : {"day", "week", "month"} or None
        Calendar windows.
    rolling_s : float or None
        A rolling window of that many seconds. With neither: one window without an end, for the life of a group
        (``by="session"`` makes a budget of a session).
    zone : str
        Time zone of calendar windows, a name in the IANA database.
    day : int
        Day on which a month begins.
    carry : {"none", "capped", "full"}
        Whether what is unused is added to the next window.
    carry_windows : int
        With ``capped``: at most so many windows' worth.
    cap : {"soft", "hard"}
        ``soft``: a call without a known worst case is admitted while anything is left and charged afterwards.
        ``hard``: it is refused, and a bill above its bound ends admission.
    unknown_usage : {"release", "charge-hold"}
        What a call without reported usage is charged. Under a durable account its rule applies instead.
    name : str
        For messages and the durable account; made from `every` and `by` if empty.

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
    by: tuple[str, ...] | str = ()
    every: Every | None = None
    rolling_s: float | None = None
    zone: str = "UTC"
    day: int = 1
    carry: Carry = "none"
    carry_windows: int = 1
    cap: Cap = "soft"
    unknown_usage: Literal["release", "charge-hold"] = "release"
    name: str = ""
    kind: str = "period_budget"

    many: ClassVar[bool] = True
    """A composition may hold several."""

    def __post_init__(self) -> None:
        groups = (self.by,) if isinstance(self.by, str) else tuple(self.by)
        if not all(isinstance(group, str) and group for group in groups) or len(set(groups)) < len(groups):
            raise InputError("by", expected="different names of groups", got=self.by)
        if self.every is not None and self.rolling_s is not None:
            raise InputError("every and rolling_s", expected="one of them", got=(self.every, self.rolling_s))
        object.__setattr__(self, "by", groups)
        if not self.name:
            span = self.every or ("ever" if self.rolling_s is None else amount_text("time", ns(self.rolling_s)))
            object.__setattr__(self, "name", f"{span}{' by ' + ', '.join(groups) if groups else ''}")
        PeriodBudget(self.limits(), unknown_usage=self.unknown_usage)

    @property
    def scope(self) -> Literal["session", "shared"]:
        """How long its state lasts: over the runs of a session, or of everybody."""
        return "session" if self.by == ("session",) else "shared"

    def limits(self) -> PeriodLimits:
        """Return the limits themselves."""
        by_channel = amounts(
            calls=self.calls, input=self.input, tokens=self.tokens, fresh=self.fresh, cost_usd=self.cost_usd
        )
        window: Calendar | Rolling | None = None
        if self.every is not None:
            window = Calendar(self.every, self.zone, self.day)
        elif self.rolling_s is not None:
            window = Rolling(self.rolling_s)
        return PeriodLimits(
            name=self.name,
            limits=by_channel,
            window=window,
            carry=self.carry,
            carry_windows=self.carry_windows,
            cap=self.cap,
        )

    def group(self, groups: Mapping[str, str]) -> str:
        """Return the name of a run's group, such as ``["ann"]``.

        Raises
        ------
        InputError
            If the run does not say which.
        """
        missing = [name for name in self.by if not isinstance(groups.get(name), str) or not groups[name]]
        if missing:
            raise InputError("groups of the run", expected=f"{', '.join(missing)} for {self.name}", got=dict(groups))
        return json.dumps([groups[name] for name in self.by], ensure_ascii=False) if self.by else ""

    def open(self) -> PeriodBudget:
        """Make the state that runs share."""
        return PeriodBudget(self.limits(), unknown_usage=self.unknown_usage)

    def attach(
        self, state: PeriodBudget, run: str, groups: Mapping[str, str], now: Time, wall_ns: int
    ) -> PeriodBudgetModule:
        """Make one run's module on shared state."""
        return PeriodBudgetModule(state, self.group(groups), wall_ns - now)

    def build(self, now: Time) -> PeriodBudgetModule:
        """Refuse: a period budget that every run starts afresh would limit nothing.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError("policy", expected="one that was opened", got=self.kind, hint="spec.open().start(run, ...)")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {k: v for k, v in asdict(self).items() if v is not None} | {"by": list(self.by)}


class PeriodBudgetModule:
    """One run's door to a period budget: each step's worst case is held in its group's window."""

    asks_spawn = False
    asks_step = True
    holds_steps = True
    takes_at_admission = True
    __slots__ = ("_holds", "_offset", "budget", "group", "index")

    def __init__(self, budget: PeriodBudget, group: str, offset_ns: int) -> None:
        self.budget = budget
        self.group = group
        self._offset = offset_ns
        self._holds: dict[Ticket, PeriodHold] = {}
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return every channel in which the step does not fit."""
        return self.budget.shortfalls(self.group, step_bound(ask), now + self._offset)

    def gauges(self, node: Ticket, now: Time) -> list[tuple[str, int, int]]:
        """Return how full the group's window is: its channel, what is spent or held, and the limit."""
        pot = self.budget.pot(self.group, now + self._offset)
        return [(CHANNELS[i], pot.spent[i] + pot.held[i], limit) for i, limit in enumerate(pot.limits) if limit >= 0]

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Set the step's worst case aside."""
        self._holds[ticket] = self.budget.hold(self.group, step_bound(ticket.ask), now + self._offset)

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Release it and charge what was used."""
        spent = None if use.status == "unsent" else step_spent(ticket.ask, use)
        self.budget.settle(self._holds.pop(ticket), spent, now + self._offset)


def step_bound(ask: Ask) -> Amounts:
    """Return a step's worst case, with its calls counted: one a model step, none a tool.

    Raises
    ------
    InputError
        If it is not a step.
    """
    if type(ask) is not StepAsk:
        raise InputError("ask", expected="a step", got=type(ask).__name__)
    return ask.bound if ask.bound[CALLS] is not None else (_calls(ask), *ask.bound[CALLS + 1 :])


def step_spent(ask: Ask, use: Use) -> Amounts:
    """Return what a step used, with its calls counted where they were not reported."""
    return use.spent if use.spent[CALLS] is not None else (_calls(ask), *use.spent[CALLS + 1 :])


def _calls(ask: Ask) -> int:
    return ask.count if isinstance(ask, StepAsk) and ask.kind != "tool" else 0

"""The durable account as a module: one cap for many processes, last in any composition because its commit decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from harness_lab.budget.durable import DurableAccount
from harness_lab.clock import ns
from harness_lab.errors import AccountUnavailable, InputError
from harness_lab.outcome import Code, Refusal, Shortfall
from harness_lab.policies.period_budget import PeriodBudgetSpec, step_bound, step_spent
from harness_lab.policies.protocol import path_text
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.budget.durable_store import Synchronous
    from harness_lab.budget.period import PeriodLimits
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Ask, Ticket, Use
    from harness_lab.usage import Amounts

UnknownCharge = Literal["charge-hold", "release"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableAccountSpec:
    """Parameters of a durable account; caps None: no limit, 0: nothing may be used.

    Parameters
    ----------
    path : str
        The account's file, on a local disk.
    calls, input, tokens, fresh : int or None
        Caps of the account, for ever: model calls; prompt tokens; all tokens; newly presented tokens.
    cost_usd : float or None
        Dollars.
    periods : tuple of PeriodBudgetSpec
        Period budgets kept in the same file and decided in the same commit.
    hold_s : float
        After how long a hold that nobody settled expires; longer than a call can last.
    unknown_usage : {"charge-hold", "release"}
        What a call that expired, or did not report its usage, is charged.
    if_missing : {"refuse", "create"}
        What to do when there is no file. An account that has gone missing has not spent nothing, so ``create`` is for
        places where losing the file cannot be mistaken for a beginning.
    synchronous : {"full", "normal"}
        ``full``: a commit survives a loss of power; ``normal``: the death of any process.
    busy_s : float
        How long to wait for the transactions of others before the account counts as unavailable.

    Raises
    ------
    InputError
        If a limit is negative, not finite or not a number, or a choice is none of those named.
    """

    path: str
    calls: int | None = None
    input: int | None = None
    tokens: int | None = None
    fresh: int | None = None
    cost_usd: float | None = None
    periods: tuple[PeriodBudgetSpec, ...] = ()
    hold_s: float = 900.0
    unknown_usage: UnknownCharge = "charge-hold"
    if_missing: Literal["refuse", "create"] = "refuse"
    synchronous: Synchronous = "full"
    busy_s: float = 5.0
    kind: str = "durable_account"

    blocking: ClassVar[bool] = True
    scope: ClassVar[Literal["shared"]] = "shared"

    def __post_init__(self) -> None:
        if not isinstance(self.path, str) or not self.path:
            raise InputError("path", expected="a file's name", got=self.path)
        self.limits()
        for what, got, allowed in (
            ("unknown_usage", self.unknown_usage, ("charge-hold", "release")),
            ("if_missing", self.if_missing, ("refuse", "create")),
            ("synchronous", self.synchronous, ("full", "normal")),
        ):
            if got not in allowed:
                raise InputError(what, expected=f"one of {', '.join(allowed)}", got=got)
        object.__setattr__(self, "periods", tuple(_period(each) for each in self.periods))
        if ns(self.hold_s, what="hold_s") <= 0:
            raise InputError("hold_s", expected="a number above 0", got=self.hold_s)
        if ns(self.busy_s, what="busy_s") < 0:
            raise InputError("busy_s", expected="a number from 0 on", got=self.busy_s)
        names = [each.name for each in self.periods]
        if len(set(names)) < len(names):
            raise InputError("periods", expected="period budgets of different names", got=names)

    def limits(self) -> Amounts:
        """Return the caps by channel."""
        return amounts(calls=self.calls, input=self.input, tokens=self.tokens, fresh=self.fresh, cost_usd=self.cost_usd)

    def create(self, now_ns: int) -> DurableAccount:
        """Make the account, on purpose; refused if there is one.

        Raises
        ------
        InputError
            If there is a file already.
        """
        return self._create(now_ns, "refuse")

    def open(self) -> DurableAccount:
        """Connect to the account, and put its period budgets in force.

        Raises
        ------
        AccountUnavailable
            If there is no account, or it cannot be used.
        InputError
            If it has other caps, rules or period budgets than these.
        """
        if self.if_missing == "create":
            account = self._create(0, "open")
        else:
            account = DurableAccount(self.path, synchronous=self.synchronous, busy_seconds=self.busy_s)
            theirs, ours = (account.limits, account.unknown_usage), (self.limits(), self.unknown_usage)
            if theirs != ours:
                raise InputError("durable account", expected=f"the caps and rule of the file, {theirs}", got=ours)
        for period in self.periods:
            account.ensure(period.limits(), now_ns=0)
        return account

    def attach(
        self, state: DurableAccount, run: str, groups: Mapping[str, str], now: Time, wall_ns: int
    ) -> DurableAccountModule:
        """Make one run's module; the account is not touched before its first call."""
        drawn = [(period.limits(), period.group(groups)) for period in self.periods]
        return DurableAccountModule(state, run, drawn, wall_ns - now)

    def build(self, now: Time) -> DurableAccountModule:
        """Refuse: an account is opened once and shared by runs.

        Raises
        ------
        InputError
            Always: an account that every run starts afresh would limit nothing.
        """
        raise InputError("policy", expected="one that was opened", got=self.kind, hint="spec.open().start(run, ...)")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {k: v for k, v in asdict(self).items() if v is not None} | {
            "periods": [period.to_dict() for period in self.periods]
        }

    def _create(self, now_ns: int, if_exists: Literal["refuse", "open"]) -> DurableAccount:
        return DurableAccount.create(
            self.path,
            self.limits(),
            now_ns=now_ns,
            hold_seconds=self.hold_s,
            unknown_usage=self.unknown_usage,
            synchronous=self.synchronous,
            busy_seconds=self.busy_s,
            if_exists=if_exists,
        )


class DurableAccountModule:
    """One run's door to a durable account; holds each step's worst case there."""

    asks_spawn = False
    asks_step = True
    blocking = True
    kind = "durable_account"
    __slots__ = ("_begun", "_names", "_offset", "_periods", "_run", "_steps", "account", "index")

    def __init__(
        self, account: DurableAccount, run: str, periods: Sequence[tuple[PeriodLimits, str]], offset_ns: int
    ) -> None:
        self.account = account
        self._run = run
        self._periods = tuple(periods)
        self._offset = offset_ns
        self._begun = ""  # the run with its number, so that no restart can repeat a call's name
        self._names: dict[Ticket, str] = {}
        self._steps = 0
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return every channel in which the step does not fit, or that the account cannot be asked."""
        try:
            return self.account.would(step_bound(ask), now + self._offset, periods=self._periods)
        except AccountUnavailable as error:
            return (_unavailable(error),)

    def claim(self, ticket: Ticket, now: Time) -> Sequence[Shortfall]:
        """Check and hold in one commit; an account that cannot be asked is a shortfall: nothing is admitted."""
        self._steps += 1
        ask = ticket.ask
        step = f"{getattr(ask, 'kind', '')} {getattr(ask, 'call', '')}.{getattr(ask, 'attempt', '')}"
        try:
            self._begun = self._begun or f"{self._run}~{self.account.begin(now + self._offset)}"
            name = f"{self._begun}{path_text(ticket.path)}#{step}#{self._steps}"
            held = self.account.hold(name, step_bound(ask), now + self._offset, periods=self._periods)
        except AccountUnavailable as error:
            return (_unavailable(error),)
        if isinstance(held, Refusal):
            return held.shortfalls
        self._names[ticket] = name
        return ()

    def withdraw(self, ticket: Ticket, now: Time) -> None:
        """Take a claim back that came to nothing."""
        self.account.settle(self._names.pop(ticket), (0,) * 5, now + self._offset, status="unsent")

    def forget(self, ticket: Ticket) -> None:
        """Leave a claim to its expiry."""
        self._names.pop(ticket, None)

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Claim; for a composition that does not know that this can fail.

        Raises
        ------
        AccountUnavailable
            If it does not fit any more, or the account cannot be asked.
        """
        short = self.claim(ticket, now)
        if short:
            raise AccountUnavailable(self.account.path, f"refused after it fitted: {short[0]}")

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Charge what the step used; if the account cannot be written, it can be tried again.

        Raises
        ------
        AccountUnavailable
            If the account cannot be written; the hold is still there, and expires by rule.
        """
        name = self._names[ticket]
        self.account.settle(name, step_spent(ticket.ask, use), now + self._offset, status=use.status)
        del self._names[ticket]


def _unavailable(error: AccountUnavailable) -> Shortfall:
    return Shortfall(Code.ACCOUNT_UNAVAILABLE, None, None, None, "wait", detail=str(error))


def _period(each: object) -> PeriodBudgetSpec:
    if isinstance(each, PeriodBudgetSpec):
        return each
    known = {field.name for field in fields(PeriodBudgetSpec)}
    if not isinstance(each, Mapping) or not set(each) <= known:
        raise InputError("periods", expected=f"period budgets with some of {', '.join(sorted(known))}", got=each)
    return PeriodBudgetSpec(**each)

"""What happens at a limit: stop, one last step to wrap up, or pause; and before it a warning or a cheaper model.

The wrap-up step is admitted outside the limit, once for each node that a limit refused, and books apart what it used.

Sources: the last call without tools is hermes-agent's; a pause until a person approves prism-harness's; warnings and a
cheaper model are options of several systems, here one axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.clock import instant
from harness_lab.errors import AlreadySettled, InputError, check_kind
from harness_lab.outcome import CHANNELS, Code, Refusal, Shortfall, amount_text
from harness_lab.policies.compose import Composed
from harness_lab.policies.opened import SharedComposed
from harness_lab.policies.outside import charge_outside, step_outside
from harness_lab.policies.protocol import OPEN, SETTLED, Grant, Granted, Refused, StepAsk, Stop, Ticket, Use

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness_lab.clock import Time
    from harness_lab.policies.protocol import End, Module, News, Wait

Then = Literal["stop", "wrap-up", "pause"]

LIMITS = frozenset(
    {
        Code.STEPS_EXHAUSTED,
        Code.COST_EXHAUSTED,
        Code.TIME_EXHAUSTED,
        Code.SPEND_UNKNOWN,
        Code.BUDGET_EXHAUSTED,
        Code.ITERATIONS_EXHAUSTED,
        Code.COST_CAP_WOULD_EXCEED,
    }
)
"""Refusals that something may follow; after any other (a cancellation, a call without a bound) a node stops."""
_PPM = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLimit:
    """What happens at a limit, and before it.

    Parameters
    ----------
    then : {"stop", "wrap-up", "pause"}
        After a step that a limit refused: the node ends; it makes one last call, without tools, and ends; or it pauses
        until a person lets it go on.
    warn_at : float or None
        Share of a limit, 0 to 1, used or held, from which each grant carries a warning; None: never.
    cheaper_model : str or None
        Model that grants name from `cheaper_at` on; None: none. What is held stays the worst case of the model that was
        asked for.
    cheaper_at : float
        Share of a limit, 0 to 1.

    Raises
    ------
    InputError
        If a share lies outside 0 to 1, or a value is not allowed.
    """

    then: Then = "stop"
    warn_at: float | None = None
    cheaper_model: str | None = None
    cheaper_at: float = 0.8

    def __post_init__(self) -> None:
        if self.then not in ("stop", "wrap-up", "pause"):
            raise InputError("then", expected="stop, wrap-up or pause", got=self.then)
        for name in ("warn_at", "cheaper_at"):
            share = getattr(self, name)
            if share is not None and (
                isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1
            ):
                raise InputError(name, expected="a share from 0 to 1", got=share)
        if self.cheaper_model is not None and (not isinstance(self.cheaper_model, str) or not self.cheaper_model):
            raise InputError("cheaper_model", expected="a model's name or None", got=self.cheaper_model)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; what is None is left out."""
        plain = {"then": self.then, "warn_at": self.warn_at, "cheaper_model": self.cheaper_model}
        return {k: v for k, v in plain.items() if v is not None} | {"cheaper_at": self.cheaper_at}

    @classmethod
    def from_dict(cls, data: object) -> AtLimit:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If it is no mapping, or names something else.
        """
        known = ("then", "warn_at", "cheaper_model", "cheaper_at")
        if not isinstance(data, Mapping) or not set(data) <= set(known):
            raise InputError("at_limit", expected=f"some of {', '.join(known)}", got=data)
        return cls(**data)


class Apart:
    """Steps that were admitted outside a limit.

    Attributes
    ----------
    steps : int
        How many.
    spent : list of int
        What they used by channel, as far as known. The ledger and the pool count it too, since it happened; caps do
        not.
    """

    __slots__ = ("spent", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.spent = [0] * len(CHANNELS)


class _AtLimit:
    """The mechanics, in front of a composition."""

    __slots__ = ()
    _axis: AtLimit
    _may_wrap: set[Ticket]
    _outside: set[Ticket]
    apart: Apart

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a step may start, and say what may follow a refusal."""
        if ask.kind == "wrap-up":
            return self._wrap_up(ask, now)
        answer: Any = super().admit(ask, now)  # type: ignore[misc]
        said: Grant | Wait | Refusal = self._said(ask.node, answer, now)
        return said

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a step ended; a wrap-up is booked apart."""
        if type(step) is not Ticket or step not in self._outside:
            super().settle(step, use, now)  # type: ignore[misc]
            return
        now = instant("now", now)
        check_kind("use", use, Use, expected="a Use")
        if step.state != OPEN:
            raise AlreadySettled(str(step), step.first)
        step.state, step.first = SETTLED, use
        charge_outside(self, step, use, now, counts=False)  # type: ignore[arg-type]
        if use.status != "unsent":
            self.apart.steps += 1
            for i, amount in enumerate(use.spent):
                self.apart.spent[i] += amount or 0

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node's work has really ended."""
        super().close(node, use, end, now)  # type: ignore[misc]
        self._may_wrap.discard(node)

    def outbox(self) -> Iterator[News]:
        """Yield answers to those who waited, with what may follow."""
        for news in super().outbox():  # type: ignore[misc]
            ask = None if isinstance(news, Stop) else news.ticket.ask
            if isinstance(news, Granted) and isinstance(ask, StepAsk):
                yield Granted(news.ticket, self._said(ask.node, news.grant, news.ticket.asked))
            elif isinstance(news, Refused) and isinstance(ask, StepAsk):
                yield Refused(news.ticket, self._said(ask.node, news.refusal, news.ticket.asked))
            else:
                yield news

    def _said(self, node: Ticket, answer: Any, now: Time) -> Any:
        axis = self._axis
        if isinstance(answer, Refusal):
            if axis.then == "stop" or not all(short.code in LIMITS for short in answer.shortfalls):
                return answer
            self._may_wrap.add(node)
            return replace(answer, then=axis.then)
        if isinstance(answer, Grant) and (axis.warn_at is not None or axis.cheaper_model is not None):
            self._advise(node, answer, now)
        return answer

    def _advise(self, node: Ticket, grant: Grant, now: Time) -> None:
        axis = self._axis
        gauges = gauges_of(self.modules, node, now)  # type: ignore[attr-defined]
        if axis.warn_at is not None:
            grant.warnings = [_warning(*gauge) for gauge in gauges if _reaches(gauge, axis.warn_at)]
        if axis.cheaper_model is not None and any(_reaches(gauge, axis.cheaper_at) for gauge in gauges):
            grant.model = axis.cheaper_model

    def _wrap_up(self, ask: StepAsk, now: Time) -> Grant | Refusal:
        ticket = step_outside(ask, now)
        reason = self._stopped(ticket)  # type: ignore[attr-defined]
        if reason is not None:
            return Refusal((Shortfall(Code.CANCELLED, None, None, None, "nothing", detail=reason),))
        if ask.node not in self._may_wrap or self._axis.then != "wrap-up":
            return Refusal((Shortfall(Code.WRAP_UP_USED, 1, 1, 0, "nothing"),))
        refused = self._reserved(ticket, now)  # type: ignore[attr-defined]
        if refused:
            return Refusal(refused)
        self._may_wrap.discard(ask.node)
        self._outside.add(ticket)
        return Grant(ticket)


class ComposedAtLimit(_AtLimit, Composed):
    """A composition that says what may follow at a limit.

    Attributes
    ----------
    apart : Apart
        The steps that were admitted to wrap up.
    """

    __slots__ = ("_axis", "_may_wrap", "_outside", "apart")

    def __init__(self, modules: Sequence[Module], *, at_limit: AtLimit, max_wait_ns: int | None = None) -> None:
        super().__init__(modules, max_wait_ns=max_wait_ns)
        _begin(self, at_limit)


class SharedAtLimit(_AtLimit, SharedComposed):
    """The same, on state that runs share."""

    __slots__ = ("_axis", "_may_wrap", "_outside", "apart")

    def __init__(self, modules: Sequence[Module], *, at_limit: AtLimit, max_wait_ns: int | None = None) -> None:
        super().__init__(modules, max_wait_ns=max_wait_ns)
        _begin(self, at_limit)


def gauges_of(modules: Sequence[Module], node: Ticket, now: Time) -> list[tuple[str, int, int]]:
    """Return how full each limit over a node is: channel, used or held, and the limit."""
    return [gauge for module in modules if hasattr(module, "gauges") for gauge in module.gauges(node, now)]


def check_at_limit(at_limit: AtLimit, modules: Sequence[object]) -> None:
    """Refuse a wrap-up under a durable account: nothing may be spent outside the cap of many processes.

    Raises
    ------
    InputError
        If it is asked for.
    """
    for module in modules:
        if at_limit.then == "wrap-up" and getattr(module, "blocking", False):
            raise InputError("at_limit", expected="stop or pause with a durable account", got="wrap-up")


def _begin(policy: Any, at_limit: AtLimit) -> None:
    policy._axis = at_limit
    policy._may_wrap = set()
    policy._outside = set()
    policy.apart = Apart()


def _reaches(gauge: tuple[str, int, int], share: float) -> bool:
    _, used, limit = gauge
    return used * _PPM >= limit * round(share * _PPM)


def _warning(channel: str, used: int, limit: int) -> str:
    return f"{channel}: {amount_text(channel, used)} of {amount_text(channel, limit)} used or held"

"""Observers of call costs: told before a call is held and after it was settled, and free to refuse it.

Source: `CallCostObserver` of prism-harness's hard cost cap, as its documents describe it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from harness_lab.errors import HarnessLabError, InputError
from harness_lab.usage import usd

if TYPE_CHECKING:
    from harness_lab.policies.protocol import Path, StepKind


class CallRefused(HarnessLabError):
    """What an observer raises to refuse a call.

    Parameters
    ----------
    code : str
        A reason code of the observer's own; the refusal carries it as its detail.

    Raises
    ------
    InputError
        If the code is no text.
    """

    def __init__(self, code: str) -> None:
        if not isinstance(code, str) or not code:
            raise InputError("code", expected="some text", got=code)
        self.code = code
        super().__init__(code)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReservation:
    """A call that is about to be held.

    Parameters
    ----------
    call_id : str
        Unique; its settlement has the same.
    provider, model : str or None
        Where it goes; None where the bound does not say.
    worst_case_nusd : int or None
        What is held, nano-dollars; None: cost is not capped and the call has no bound.
    kind : {"model", "compaction", "wrap-up"}
        What kind of call.
    """

    call_id: str
    provider: str | None
    model: str | None
    worst_case_nusd: int | None
    kind: StepKind

    @property
    def worst_case_usd(self) -> float | None:
        """What is held in dollars, for display."""
        return None if self.worst_case_nusd is None else usd(self.worst_case_nusd)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettlement:
    """How a call that was held has ended.

    Parameters
    ----------
    call_id : str
        Its reservation's.
    outcome : {"completed", "failed", "abandoned"}
        A call that was provably never sent is ``failed`` and charged nothing.
    charged_nusd : int
        What was charged, nano-dollars.
    usage_known : bool
        Whether that is what was reported, and not what a rule put in its place.
    """

    call_id: str
    outcome: Literal["completed", "failed", "abandoned"]
    charged_nusd: int
    usage_known: bool

    @property
    def charged_usd(self) -> float:
        """What was charged in dollars, for display."""
        return usd(self.charged_nusd)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Where in its run a call stands.

    Parameters
    ----------
    run : str
        Name of the run; empty where it has none.
    path : Path
        The node that calls.
    depth : int
        Its depth; the root's is 0.
    call, attempt : int
        The logical call of that node, and its retry.
    """

    run: str
    path: Path
    depth: int
    call: int
    attempt: int


class CallCostObserver(Protocol):
    """Whoever wants to know of every call's cost.

    Notes
    -----
    Both are called from inside a decision: they should be quick. An error of `settled` is warned about and changes
    nothing, since the money has been booked; any error of `reserving` leaves nothing held, and only
    :class:`CallRefused` is a refusal.
    """

    def reserving(self, reservation: CallReservation, context: CallContext) -> None:
        """Take note that a call fits every limit and is about to be held; raise :class:`CallRefused` to refuse it."""

    def settled(self, settlement: CallSettlement, context: CallContext) -> None:
        """Take note that a call was settled; once for each reservation that was not refused."""

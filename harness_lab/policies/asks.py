"""What is asked and told: questions about children and steps, what was used, and how it ended.

Values only; who answers is in :mod:`harness_lab.policies.protocol`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, final, get_args

from harness_lab.clock import instant
from harness_lab.errors import InputError, check_kind
from harness_lab.outcome import Cause, Outcome
from harness_lab.usage import checked_amounts
from harness_lab.usage import count as count_of

if TYPE_CHECKING:
    from harness_lab.clock import Time
    from harness_lab.floors import FloorKey
    from harness_lab.policies.protocol import Ticket
    from harness_lab.usage import Amounts

Path = tuple[tuple[int, int, int], ...]
"""A node's name in its tree: (call, slot, attempt) on each level; the root is empty."""

StepKind = Literal["model", "tool", "compaction", "wrap-up"]
Status = Literal["completed", "failed", "abandoned", "unsent"]
Turn = Literal["interactive", "programmatic"]
STEP_KINDS: Final[tuple[StepKind, ...]] = get_args(StepKind)
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


@final
class SpawnAsk:
    """The question whether a child may start.

    Parameters
    ----------
    parent : Ticket or None
        None: the root.
    path : Path
        The child's name, given when it is asked for and not when it is admitted.
    budget : Amounts
        The ask, by channel; None: nothing declared there.
    together : int
        Children of one batch that are still to be answered, this one counted.
    floor_key : FloorKey or None
        The path that would run it.
    awaited : bool
        The parent only waits for it, and may lend it its slot.
    wait_until : Time or None
        None: answer now.
    resume : Ticket or None
        A node that paused, or ended and goes on.

    Raises
    ------
    InputError
        If an amount of the ask, or `together`, is negative, not finite or not a whole number, `wait_until` no whole
        nanoseconds, or `path` no path.
    """

    __slots__ = ("awaited", "budget", "floor_key", "parent", "path", "resume", "together", "wait_until")

    def __init__(
        self,
        parent: Ticket | None,
        path: Path,
        budget: Amounts,
        floor_key: FloorKey | None = None,
        *,
        awaited: bool = True,
        wait_until: Time | None = None,
        resume: Ticket | None = None,
        together: int = 1,
    ) -> None:
        check_kind("path", path, tuple, expected="(call, slot, attempt) on each level")
        self.parent = parent
        self.path = path
        self.budget = checked_amounts("ask", budget)
        self.floor_key = floor_key
        self.awaited = awaited
        self.wait_until = wait_until if wait_until is None else instant("wait_until", wait_until)
        self.resume = resume
        self.together = count_of("together", together)


@final
class StepAsk:
    """The question whether a step may start.

    Parameters
    ----------
    node : Ticket
        Who asks.
    kind : {"model", "tool", "compaction", "wrap-up"}
        What kind of step.
    call, attempt : int
        The logical call, and one more for each retry of it.
    bound : Amounts
        Worst case by channel; None: cannot be bounded.
    count : int
        Steps asked for as a whole; a batch is admitted whole or refused.
    wait_until : Time or None
        None: answer now.

    Raises
    ------
    InputError
        If an amount of the bound or `count` is negative, not finite or not a whole number, `wait_until` no whole
        nanoseconds, or `kind` none.
    """

    __slots__ = ("attempt", "bound", "call", "count", "kind", "node", "wait_until")

    def __init__(
        self,
        node: Ticket,
        call: int,
        attempt: int,
        bound: Amounts,
        kind: StepKind = "model",
        count: int = 1,
        wait_until: Time | None = None,
    ) -> None:
        if type(call) is not int or type(attempt) is not int or type(count) is not int or count < 0:
            call, attempt, count = count_of("call", call), count_of("attempt", attempt), count_of("count", count)
        if kind != "model" and kind not in STEP_KINDS:
            raise InputError("kind", expected=f"one of {', '.join(STEP_KINDS)}", got=kind)
        self.node = node
        self.call = call
        self.attempt = attempt
        self.bound = checked_amounts("bound", bound)
        self.kind = kind
        self.count = count
        self.wait_until = wait_until if wait_until is None else instant("wait_until", wait_until)


Ask = SpawnAsk | StepAsk


class Use:
    """What a step or a node really used.

    Parameters
    ----------
    spent : Amounts
        By channel; None: unknown, never zero.
    status : {"completed", "failed", "abandoned", "unsent"}
        ``unsent`` charges nothing.
    turn : {"interactive", "programmatic"}
        Kind of turn.

    Raises
    ------
    InputError
        If an amount is negative, not finite or not a whole number: it would give money back, or poison the sum; if
        `status` or `turn` is none of these.
    """

    __slots__ = ("spent", "status", "turn")

    def __init__(self, spent: Amounts, status: Status = "completed", turn: Turn = "interactive") -> None:
        if status != "completed" and status not in STATUSES:
            raise InputError("status", expected=f"one of {', '.join(STATUSES)}", got=status)
        if turn != "interactive" and turn != "programmatic":
            raise InputError("turn", expected="interactive or programmatic", got=turn)
        self.spent = checked_amounts("use", spent)
        self.status = status
        self.turn = turn

    def __repr__(self) -> str:
        return f"Use({self.spent}, {self.status!r})"


@dataclass(frozen=True, slots=True)
class End:
    """How a node ended.

    Parameters
    ----------
    outcome : Outcome
        How.
    stopped_by : str or None
        Code of the first binding limit of a node that did not complete.
    cause : Cause
        What brought it about.
    """

    outcome: Outcome
    stopped_by: str | None = None
    cause: Cause = Cause.NONE


COMPLETED = End(Outcome.COMPLETED)


def path_text(path: Path) -> str:
    """Write a path as text: ``/`` is the root, ``/3.0`` its first child after call 3, ``/3.0r1`` that child's retry."""
    return "/" + "/".join(f"{call}.{slot}{f'r{attempt}' if attempt else ''}" for call, slot, attempt in path)

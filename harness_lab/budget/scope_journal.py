"""What a scope writes down, and what is read back from it after a restart: events, settlements, sums.

A child's spend is read from its last word: how it ended, else what it was reconciled at when its execution was let go,
else its whole ask, because nobody knows. Each child is counted once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from harness_lab.budget.allocation import Overspend
from harness_lab.budget.spend import NOTHING, Quantity, Spend
from harness_lab.errors import HarnessLabError, InputError, check_kind
from harness_lab.outcome import Cause, Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from harness_lab.usage import Amounts

EventKind = Literal[
    "opened", "spawned", "metered", "settled", "cancelled", "reconciled", "resumed", "withdrawn", "teardown", "finished"
]
Retained = Literal["", "pending", "released"]


class NotDelivered(HarnessLabError):
    """A child that did not complete has no result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """How a child ended, and what it used. The outcome says how the work ended, `overspent` what the budget says to it.

    Parameters
    ----------
    id, name : str
        The child's id in its tree, and what its driver called it.
    outcome : Outcome
        How its work ended.
    cause : Cause or None
        What brought that about; None: nobody can say.
    reason : str
        In words, for a person.
    spent : Spend
        What it and all below it used.
    overspent : tuple of Overspend
        Channels in which that is more than was held for it.
    output : object
        What it made, None if nothing.
    score : float or None
        What its output was judged to be worth.
    seq : int or None
        Its place among its scope's last words, from 0 without gaps; the order of delivery. None: it has not ended.
    retained : {"", "pending", "released"}
        Whether its execution may still be alive elsewhere (it has then not ended), or was and is gone.
    """

    id: str
    name: str
    outcome: Outcome
    cause: Cause | None = Cause.NONE
    reason: str = ""
    spent: Spend = NOTHING
    overspent: tuple[Overspend, ...] = ()
    output: Any = None
    score: float | None = None
    retained: Retained = ""
    seq: int | None = None

    @property
    def completed(self) -> bool:
        """Whether its work ended as it should."""
        return self.outcome is Outcome.COMPLETED

    def result(self) -> Any:
        """Return what it made.

        Raises
        ------
        NotDelivered
            If it did not complete; what a failed child left is evidence and never a result.
        """
        if not self.completed:
            raise NotDelivered(f"{self.name} is {self.outcome}: it has no result")
        return self.output

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settlement:
        """Read what ``dataclasses.asdict`` wrote."""
        cause = values["cause"]
        known = {
            "outcome": Outcome(values["outcome"]),
            "cause": None if cause is None else Cause(cause),
            "spent": spend_from_dict(values["spent"]),
            "overspent": tuple(Overspend(**over) for over in values["overspent"]),
        }
        return cls(**(dict(values) | known))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a scope's journal.

    Parameters
    ----------
    seq : int
        Its place, without gaps; the order of delivery, not of time.
    kind : str
        What happened.
    by : str
        Name of the scope.
    child : str or None
        Id of the child that it is about; None: the driver itself.
    data : mapping
        Plain values.
    """

    seq: int
    kind: EventKind
    by: str
    child: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for one line of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Event:
        """Read what :meth:`to_dict` wrote."""
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """What a tree used: `inference` is the turns of drivers, `work` that of the children they started."""

    inference: Spend
    work: Spend

    @property
    def total(self) -> Spend:
        """Both together."""
        return self.inference + self.work


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """A reservation that was open when its scope ended.

    Parameters
    ----------
    ticket : int
        Its number in the scope.
    child, name : str
        The child that it was held for.
    key : str or None
        The child's key.
    stage : {"admitted", "executing"}
        Whether the child had begun.
    """

    ticket: int
    child: str
    name: str
    key: str | None
    stage: Literal["admitted", "executing"]


def spend_from_dict(values: Mapping[str, Any]) -> Spend:
    """Read a spend that was written as plain values.

    Raises
    ------
    InputError
        If it is none.
    """
    check_kind("spend", values, Mapping, expected="a Spend, or one as plain values")
    try:
        resources = {name: Quantity(**quantity) for name, quantity in values.get("resources", {}).items()}
        return Spend(**(dict(values) | {"resources": resources}))
    except (TypeError, AttributeError):
        known = ", ".join(Spend.__dataclass_fields__)
        raise InputError("spend", expected=f"some of {known}", got=values) from None


@dataclass(slots=True)
class Past:
    """A child as its journal tells of it.

    Parameters
    ----------
    id, by : str
        The child's id, and that of its scope.
    data : mapping
        What it was started with.
    settlement : Settlement or None
        Its last word; None without one.
    resumed : bool
        Whether it was taken up again after it was let go of.
    """

    id: str
    by: str
    data: Mapping[str, Any]
    settlement: Settlement | None = None
    resumed: bool = False

    @property
    def over(self) -> bool:
        """Whether it has ended for good."""
        return self.settlement is not None and self.settlement.retained != "pending"


def read_children(events: Sequence[Event]) -> dict[str, Past]:
    """Return every child that a journal names, by id, with its last word.

    Raises
    ------
    InputError
        If a line is about a child that was never started: lines are in another order, or of another journal.
    """
    children: dict[str, Past] = {}
    for event in events:
        if event.child is None:
            continue
        if event.kind == "spawned":
            children[event.child] = Past(event.child, event.by, event.data)
        elif event.child not in children:
            raise InputError(f"journal, seq {event.seq}", expected="a child that was started before", got=event.child)
        elif event.kind in ("settled", "cancelled", "reconciled"):
            children[event.child].settlement = Settlement.from_dict(event.data)
            children[event.child].resumed = False
        elif event.kind in ("resumed", "withdrawn"):
            children[event.child].resumed = event.kind == "resumed"
    return children


def read_spend(events: Sequence[Event], scope: str, died: Collection[str] = ()) -> tuple[Spend, list[Amounts]]:
    """Return what a scope is known to have spent, and what is charged for children of whom nothing is known.

    Such a child is charged its whole ask, and more in a channel in which it is known to have spent more. Those that
    died with the process are charged what is known of them.
    """
    known = metered(events, scope)
    uncertain: list[Amounts] = []
    units = events[0].data["units"]
    for child in (child for child in read_children(events).values() if child.by == scope):
        inside, below = read_spend(events, child.id, died)
        if child.settlement is not None:
            known += child.settlement.spent
            uncertain += [tuple(child.data["ask"])] if child.resumed and child.id not in died else []
        elif child.id in died:
            known, uncertain = known + inside, uncertain + below
        else:
            uncertain.append(_at_least(tuple(child.data["ask"]), [inside.by_channel(units, partial=True)[0], *below]))
    return known, uncertain


def metered(events: Sequence[Event], scope: str) -> Spend:
    """Return what a driver's own turns used."""
    spent = NOTHING
    for event in events:
        if event.kind == "metered" and event.by == scope:
            spent += spend_from_dict(event.data)
    return spent


def _at_least(ask: Amounts, used: Sequence[Amounts]) -> Amounts:
    """Return an ask, and where more than it is known to have been used, that."""
    return tuple(
        None if asked is None else max(asked, sum((each[i] or 0) for each in used if i < len(each)))
        for i, asked in enumerate(ask)
    )

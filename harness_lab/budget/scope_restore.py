"""Making a scope's books again after a restart: never with more to give, and with the same deadline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness_lab.budget.pool import ReservationPool
from harness_lab.budget.pool_rules import PoolRules
from harness_lab.budget.scope_child import Child
from harness_lab.budget.scope_journal import Event, read_children, read_spend
from harness_lab.budget.spend import Quantity
from harness_lab.errors import InputError, check_kind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def restored_pool(journal: Sequence[Event], died: Collection[str]) -> ReservationPool:
    """Make a pool with what a journal says was spent, and with the asks of those of whom it says nothing.

    Raises
    ------
    InputError
        If it is no list of events, does not begin with its scope being opened, or a line of it is missing, there twice
        or in another place.
    """
    check_kind("journal", journal, (list, tuple), expected="the events of a scope")
    for event in journal:
        check_kind("journal", event, Event, expected="the events of a scope (Event.from_dict reads a line)")
    if not journal or journal[0].kind != "opened":
        raise InputError("journal", expected="one that begins with its scope being opened", got=len(journal))
    for place, event in enumerate(journal):
        if event.seq != place:
            raise InputError("journal", expected=f"seq {place} next, without gaps", got=event.seq)
    about, name = journal[0].data, journal[0].by
    known, uncertain = read_spend(journal, name, died)
    size = len(about["limits"]) - len(about["units"])
    named = zip(about["units"].items(), about["limits"][size:], strict=True)
    unused = {name: Quantity(unit=unit, amount=0) for name, unit in about["units"].items()}
    return ReservationPool.restore(
        tuple(about["limits"][:size]),
        committed=replace(known, resources=unused | dict(known.resources)),
        uncertain=uncertain,
        resources={name: Quantity(unit=unit, amount=amount) for (name, unit), amount in named},
        rules=PoolRules(**about["rules"]),
    )


def restored_children(journal: Sequence[Event], scope: str) -> list[Child]:
    """Return a scope's children as its journal tells of them: ended, or of unknown state."""
    children = []
    for past in read_children(journal).values():
        if past.by == scope:
            data = past.data
            child = Child(past.id, data["name"], data["key"], data["task"], tuple(data["ask"]))
            child.deadline, child.settlement = data["deadline"], past.settlement
            child.state = "ended" if past.over else "pending"
            children.append(child)
    return children

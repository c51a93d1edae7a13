"""Cases of groups: children that end together, and what a failure does to the others."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents.groups import Group, Settled
from harness_lab.conformance.areas.tree_play import Tree
from harness_lab.conformance.shapes import UnknownShape

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.conformance.shapes import Answer, Case


def group(case: Case) -> Answer:
    """Run a group's body."""
    given, what = case["given"], case["when"]["body"]
    if what not in BODIES:
        raise UnknownShape(f"the body {what!r}")
    tree = Tree({})
    rows = {str(row.get("name", "bad")): row for row in given["children"]}
    agents = {
        name: tree.code(row["duration_ms"], name, raises=row.get("throws", ""), name=name) for name, row in rows.items()
    }
    rule: Any = given["onFailure"] or "cancel-siblings"
    told = tree.play(lambda root: root.group(BODIES[what], on_failure=rule), **agents)
    seen = [(name, how) for name, how in (what.split() for _, what in tree.log) if name in rows]
    answer = {
        "aborted": [name for name, how in seen if how == "aborted"],
        "finished": [name for name, how in seen if how == "finished"],
        "returns_at_ms": tree.now(),
    }
    thrown = isinstance(told, Exception)
    return answer | ({"group_throws": str(told.args[0])} if thrown else {"value": _plain(told)})


async def _both(group: Group) -> Any:
    group.start("a")
    return await group.run("bad")


async def _settled(group: Group) -> Any:
    return [await operation.settled() for operation in (group.start("a"), group.start("bad"))]


async def _caught(group: Group) -> Any:
    slow = group.start("a")
    with suppress(ValueError):
        await group.run("bad")
    return await slow.settled()


async def _late(group: Group) -> Any:
    with suppress(ValueError):
        await group.run("bad")
    return await group.run("late")


async def _raises(group: Group) -> Any:
    group.start("a")
    raise KeyError("body error")


BODIES: Final[dict[str, Callable[[Group], Any]]] = {
    "all of run(a), run(bad)": _both,
    "all of runSettled(a), runSettled(bad)": _settled,
    "s = runSettled(a); run(bad) caught; return s": _caught,
    "run(bad) caught; then run(late)": _late,
    "run(a) not awaited; throw body error": _raises,
}


def _plain(told: Any) -> Any:
    if isinstance(told, list):
        return [_plain(item) for item in told]
    if not isinstance(told, Settled):
        return told
    return {"ok": True, "value": told.value} if told.ok else {"ok": False, "error": str(told.error)}

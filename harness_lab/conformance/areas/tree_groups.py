"""Cases of groups: children that end together, and what a failure does to the others."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
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
    body, named = _body(what)
    tree = Tree({})
    nameless = [name for name in named if name not in {row.get("name") for row in given["children"]}]
    rows = {str(row.get("name") or (nameless[0] if nameless else "bad")): row for row in given["children"]}
    agents = {
        name: tree.code(row["duration_ms"], name, raises=row.get("throws", ""), name=name) for name, row in rows.items()
    }
    rule: Any = given["onFailure"] or "cancel-siblings"
    told = tree.play(lambda root: root.group(body, on_failure=rule), **agents)
    seen = [(name, how) for name, how in (what.rsplit(" ", 1) for _, what in tree.log) if name in rows]
    answer = {
        "aborted": [name for name, how in seen if how == "aborted"],
        "finished": [name for name, how in seen if how == "finished"],
        "returns_at_ms": tree.now(),
    }
    thrown = isinstance(told, Exception)
    return answer | ({"group_throws": str(told.args[0])} if thrown else {"value": _plain(told)})


async def _both(group: Group, *names: str) -> Any:
    for name in names[:-1]:
        group.start(name)
    return await group.run(names[-1])


async def _settled(group: Group, *names: str) -> Any:
    return [await operation.settled() for operation in [group.start(name) for name in names]]


async def _caught(group: Group, settled: str, fails: str) -> Any:
    slow = group.start(settled)
    with suppress(ValueError):
        await group.run(fails)
    return await slow.settled()


async def _late(group: Group, fails: str, late: str) -> Any:
    with suppress(ValueError):
        await group.run(fails)
    return await group.run(late)


async def _raises(group: Group, name: str, words: str) -> Any:
    group.start(name)
    raise KeyError(words)


BODIES: Final[dict[str, Callable[..., Any]]] = {
    r"all of run\((\w+)\)(?:, run\((\w+)\))*": _both,
    r"all of runSettled\((\w+)\)(?:, runSettled\((\w+)\))*": _settled,
    r"s = runSettled\((\w+)\); run\((\w+)\) caught; return s": _caught,
    r"run\((\w+)\) caught; then run\((\w+)\)": _late,
    r"run\((\w+)\) not awaited; throw ([\w ]+)": _raises,
}
"""Bodies as the cases write them; each is called with the names in it, in their order."""


def _body(what: str) -> tuple[Callable[[Group], Any], list[str]]:
    for pattern, body in BODIES.items():
        found = re.fullmatch(pattern, what)
        if found:
            names = re.findall(r"[rR]un(?:Settled)?\((\w+)\)", what)
            more = [words for words in found.groups() if words and words not in names]
            return partial(_played, body, (*names, *more)), names
    raise UnknownShape(f"the body {what!r}")


async def _played(body: Callable[..., Any], words: tuple[str, ...], group: Group) -> Any:
    return await body(group, *words)


def _plain(told: Any) -> Any:
    if isinstance(told, list):
        return [_plain(item) for item in told]
    if not isinstance(told, Settled):
        return told
    return {"ok": True, "value": told.value} if told.ok else {"ok": False, "error": str(told.error)}

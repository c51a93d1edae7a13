"""Nodes, results and errors that the cases of delegation are made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_lab.conformance.shapes import UnknownShape
from harness_lab.delegation import DispatchNode, OuterPlan, RunJournal, delegate_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCHEMA: Final = {
    "type": "object",
    "properties": {"verdict": {"type": "string"}, "findings": {"type": "integer"}},
    "required": ["verdict", "findings"],
}
GOOD: Final = {"verdict": "clean", "findings": 0}
_PATH = "PurePosixPath('"


def result_named(words: str) -> dict[str, Any]:
    """Return the result that a case describes: ``valid``, or ``missing`` and the name of a field.

    Raises
    ------
    UnknownShape
        If it is described otherwise.
    """
    how, _, field = words.partition(" ")
    if words != "valid" and (how != "missing" or field not in GOOD):
        raise UnknownShape(f"the result {words!r}")
    return {name: value for name, value in GOOD.items() if name != field}


def a_node(name: str = "audit-0", **changes: Any) -> DispatchNode:
    """Return the node of the cases that only name theirs."""
    fields: dict[str, Any] = {
        "name": name,
        "target": "claude",
        "model": "claude-sonnet-4",
        "effort": "high",
        "prompt": "Audit module X for regressions.",
        "result_schema": SCHEMA,
        "tools": ("Read", "Grep"),
    }
    return DispatchNode(**{**fields, **changes})


def two_rows(folder: Path) -> RunJournal:
    """Write the journal of a run of two nodes."""
    journal = RunJournal("run-1", folder)
    results = {"audit-0": GOOD, "audit-1": {"verdict": "dirty", "findings": 3}}
    delegate_plan(OuterPlan((a_node(), a_node("audit-1"))), results, journal=journal)
    return journal


def raised(call: Callable[[], object]) -> dict[str, Any]:
    """Carry something out; return the classes, text and fields of its error, with no class if it had none."""
    try:
        call()
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"raises": kinds, "message": str(error), "fields": list(getattr(error, "fields", ()))}
    return {"raises": []}


def observed(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload in which a path that is written as one is a path."""
    return {name: _value(value) for name, value in payload.items()}


def _value(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_PATH):
        return Path(value.removeprefix(_PATH).removesuffix("')"))
    return value

"""What a behaviour case is, and when an answer is the same as the case's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness_lab.errors import HarnessLabError

Case = Mapping[str, Any]
"""A behaviour case: ``id``, ``area``, ``given``, ``when``, ``then``, and maybe ``runtimes`` or ``era``."""

Answer = Mapping[str, Any]
"""What was observed, in the words of a case's ``then``."""

Differences = dict[str, Any]
"""Where an answer is another than the case's: name → what came instead."""

NOTES = frozenset({"note", "why", "meaning", "error_class"})
"""Names in ``then`` that explain, or that only another language has; they are not compared."""

NO_ANSWER = "no such answer"


class UnknownShape(HarnessLabError):
    """A case asks for something that no mapping knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """The cases of one file and how they are carried out on the public API.

    Parameters
    ----------
    name : str
        The file's name without ``.json``.
    parts : frozenset of str
        What its cases call their ``area``.
    answer : callable
        Carries a case out and returns what was observed.
    compare : callable
        Returns where an answer differs from the case's ``then``.
    presets : callable
        Returns the compatibility presets to try in turn for a case; None is our own defaults.
    """

    name: str
    parts: frozenset[str]
    answer: Callable[[Case, str | None], Answer]
    presets: Callable[[Case], tuple[str | None, ...]]
    compare: Callable[[Case, Answer], Differences]


def ours_only(_case: Case) -> tuple[str | None, ...]:
    """Return our own defaults as the only thing to try."""
    return (None,)


def operation(case: Case) -> str:
    """Return the operation that a case names.

    Raises
    ------
    UnknownShape
        If it names none.
    """
    when = case["when"]
    name = when.get("op") if isinstance(when, Mapping) else None
    if not isinstance(name, str):
        raise UnknownShape("the case names no operation")
    return name


def dispatched(
    case: Case,
    by_field: Mapping[str, Callable[[Case], Answer]],
    by_operation: Mapping[str, Callable[[Case], Answer]],
) -> Answer:
    """Carry a case out by what its ``when`` has: a field that says it all, or an operation by name.

    Raises
    ------
    UnknownShape
        If it has neither.
    """
    for field, answer in by_field.items():
        if field in case["when"]:
            return answer(case)
    name = operation(case)
    if name not in by_operation:
        raise UnknownShape(f"the operation {name!r}")
    return by_operation[name](case)


def differences(case: Case, answer: Answer) -> Differences:
    """Return where an answer differs: every name in ``then`` must be answered, and alike.

    A name that ends in ``_contains`` (or ``_containing``) asks for a part of a text, ``_prefix`` for its beginning,
    ``_between`` for a number in a range, ``_approx`` for one that is near.
    """
    found: Differences = {}
    for name, wanted in case["then"].items():
        if name in NOTES:
            continue
        got = _answered(name, answer)
        if not _agrees(name, wanted, got):
            found[name] = got
    if answer.get("raises") and "raises" not in case["then"]:
        found["raises"] = answer["raises"]
    return found


def same(wanted: Any, got: Any) -> bool:
    """Whether two values are equal, truth values and numbers kept apart."""
    if isinstance(wanted, bool) or isinstance(got, bool):
        return wanted is got
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        return wanted.keys() == got.keys() and all(same(value, got[key]) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(got, list):
        return len(wanted) == len(got) and all(map(same, wanted, got))
    return bool(wanted == got)


_PARTS = ("_contains", "_containing", "_prefix", "_between", "_approx")
NEAR = 1e-4
"""How far a number may be from one that a case gives approximately, of its size."""


def _answered(name: str, answer: Answer) -> Any:
    if name in answer:
        return answer[name]
    for part in _PARTS:
        if name.endswith(part) and name.removesuffix(part) in answer:
            return answer[name.removesuffix(part)]
    return NO_ANSWER


def _agrees(name: str, wanted: Any, got: Any) -> bool:
    if got is NO_ANSWER:
        return False
    if name.endswith(("_contains", "_containing")):
        return isinstance(got, str) and str(wanted) in got
    if name.endswith("_prefix"):
        return isinstance(got, str) and got.startswith(str(wanted))
    if name.endswith("_between"):
        return isinstance(got, (int, float)) and bool(wanted[0] <= got <= wanted[1])
    if name.endswith("_approx"):
        return isinstance(got, (int, float)) and abs(got - wanted) <= NEAR * abs(wanted)
    return same(wanted, got)

"""Comparing answers with the cases of tangle, whose pool answers several operations one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.conformance.shapes import NOTES, differences, same

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.conformance.shapes import Answer, Case, Differences


def agreement(case: Case, answer: Answer) -> Differences:
    """Return where an answer differs: of the operations by their place, of a readout by its names."""
    then = {name: value for name, value in case["then"].items() if name not in NOTES}
    wanted, readout, throws = then.pop("op_results", []), then.pop("readout", {}), then.pop("throws", None)
    found = differences({"then": then}, {k: v for k, v in answer.items() if k not in ("op_results", "throws")})
    got = list(answer.get("op_results", []))
    for place, theirs in enumerate(wanted):
        ours = got[place] if place < len(got) else {"answer": "none"}
        if not _agrees(theirs, ours):
            found[f"op_results[{place}]"] = dict(ours)
    read = answer.get("readout", {})
    found |= {f"readout.{name}": read.get(name) for name, value in readout.items() if not same(value, read.get(name))}
    if throws is not None and throws not in str(answer.get("throws", "")):
        found["throws"] = answer.get("throws")
    elif throws is None and "throws" in answer:
        found["raises"] = answer["throws"]
    return found


def _agrees(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Whether one operation's answer is the same: an error by a part of its text, shortfalls in any order."""
    if "throws" in theirs:
        return theirs["throws"] in str(ours.get("throws", ""))
    if ours.keys() - {"shortfalls"} - theirs.keys():
        return False
    return all(_same(value, ours.get(name)) for name, value in theirs.items())


def _same(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(any(_within(one, other) for other in ours) for one in theirs)
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return all(_same(value, ours.get(name)) for name, value in theirs.items())
    return same(theirs, ours)


def _within(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    return all(same(value, ours.get(name)) for name, value in theirs.items())

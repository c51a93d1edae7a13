"""Comparing answers with the cases of tangle: named to the last part in which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness_lab.conformance.shapes import NOTES, differences, same

if TYPE_CHECKING:
    from harness_lab.conformance.shapes import Answer, Case, Differences

NESTED = ("readout", "journal", "spent", "before", "after", "during", "leak", "unknown_shape", "tokens", "childWork",
          "driverInference", "spentTotal")  # fmt: skip
"""Answers that have parts; a case names those that it asks for."""
TEXTS = ("throws", "raises", "raises_synchronously")
"""Errors, of whose text a case gives a part."""


def agreement(case: Case, answer: Answer) -> Differences:
    """Return where an answer differs: of operations by their place, of what has parts by their names."""
    then = {name: value for name, value in case["then"].items() if name not in NOTES}
    found: Differences = {}
    for name in [name for name in (*NESTED, *TEXTS, "budgetViolation") if name in then]:
        found |= apart(name, then.pop(name), answer.get(name))
    found |= _operations(then.pop("op_results", []), answer.get("op_results", []))
    found |= _texts(then, answer.get("texts", [""]))
    if answer.get("throws") and "throws" not in case["then"]:
        found["raises"] = answer["throws"]
    return found | differences(
        {"then": then}, {k: v for k, v in answer.items() if k != "raises" or k not in case["then"]}
    )


def _operations(wanted: list[Mapping[str, Any]], got: list[Mapping[str, Any]]) -> Differences:
    found: Differences = {}
    for place, theirs in enumerate(wanted):
        ours = got[place] if place < len(got) else {"answer": "none"}
        for name in theirs.keys() | (ours.keys() - {"shortfalls"}):
            if name not in theirs:
                found[f"op_results[{place}].{name}"] = ours[name]
            else:
                found |= apart(f"op_results[{place}].{name}", theirs[name], ours.get(name))
    return found


def _texts(then: dict[str, Any], texts: list[str]) -> Differences:
    """Return which demands on sentences are not met by each of them; they are taken out of `then`."""
    wanted, odd = then.pop("mentions", []), then.pop("must_not_mention", [])
    found: Differences = {
        "mentions": [text for text in texts if any(part not in text for part in wanted)],
        "must_not_mention": [text for text in texts if any(part in text for part in odd)],
    }
    for name in ("min_length", "reason_min_length"):
        least = then.pop(name, 0)
        found[name] = [text for text in texts if len(text) < least]
    return {name: missed for name, missed in found.items() if missed}


def apart(name: str, theirs: Any, ours: Any) -> Differences:
    """Return in which parts two values differ; a part that a case does not name is not asked for."""
    if name.rpartition(".")[2] in TEXTS and isinstance(theirs, str):
        return {} if isinstance(ours, str) and theirs in ours else {name: ours}
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        found: Differences = {}
        for part, value in theirs.items():
            found |= apart(f"{name}.{part}", value, ours.get(part))
        return found
    if isinstance(theirs, list) and isinstance(ours, list) and any(isinstance(one, Mapping) for one in theirs):
        alike = len(theirs) == len(ours) and all(any(not apart("", one, other) for other in ours) for one in theirs)
        return {} if alike else {name: ours}
    if isinstance(theirs, bool) and name.rpartition(".")[2] == "budgetViolation":
        return {} if theirs is bool(ours) else {name: ours}
    return {} if same(theirs, ours) else {name: ours}

"""In which switches policies differ: what a comparison of them is a comparison of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

ABSENT: Final = "none"
"""The value of a switch of a module that a policy does not have, and of a limit that is not set."""


def switches(specs: Mapping[str, Any], *, baseline: str) -> pd.DataFrame:
    """Return every switch in which a policy differs from the baseline.

    Parameters
    ----------
    specs : mapping of str to mapping
        Policies by name, as ``PolicySpec.to_dict()`` has them.
    baseline : str
        Name of the policy that the others are held against.

    Returns
    -------
    DataFrame
        ``policy, switch, baseline, value``; a switch is named ``module.parameter``, values are text.

    Examples
    --------
    >>> one = {"name": "a", "modules": [{"kind": "shared_ledger", "max_steps": 60}]}
    >>> two = {"name": "b", "modules": [{"kind": "shared_ledger", "max_steps": 40}]}
    >>> switches({"a": one, "b": two}, baseline="a").values.tolist()
    [['b', 'shared_ledger.max_steps', '60', '40']]
    """
    first = _flat(specs[baseline])
    rows = []
    for name, spec in specs.items():
        if name == baseline:
            continue
        mine = _flat(spec)
        for kind in dict.fromkeys((*first, *mine)):
            rows += [(name, *found) for found in _changed(kind, first.get(kind), mine.get(kind))]
        shared = (first.keys() & mine.keys()) - {"", "at_limit"}
        both = [[kind for kind in one if kind in shared] for one in (first, mine)]
        if both[0] != both[1]:
            rows.append((name, "order of modules", ", ".join(both[0]), ", ".join(both[1])))
    return pd.DataFrame(rows, columns=["policy", "switch", "baseline", "value"], dtype="string")


def _changed(kind: str, before: dict[str, str] | None, after: dict[str, str] | None) -> list[tuple[str, str, str]]:
    """Return the switches of one module that differ; a module that only one has is one switch."""
    if before is None or after is None:
        told = [ABSENT if one is None else ", ".join(f"{k}={v}" for k, v in one.items()) for one in (before, after)]
        return [(kind, told[0], told[1])]
    names = dict.fromkeys((*before, *after))
    pairs = [(name, before.get(name, ABSENT), after.get(name, ABSENT)) for name in names]
    return [(f"{kind}.{name}" if kind else name, old, new) for name, old, new in pairs if old != new]


def switches_text(found: pd.DataFrame, policies: list[str], *, baseline: str) -> list[str]:
    """Return one line for each policy but the baseline: what differs, and whether an effect can be told apart."""
    lines = []
    for name in policies:
        mine = found[found["policy"] == name]
        if name == baseline:
            continue
        if mine.empty:
            lines.append(f"{name} is the same policy as {baseline} under another name.")
            continue
        parts = ", ".join(f"{row.switch} {row.baseline} -> {row.value}" for row in mine.itertuples())
        many = "; which of them did it, this comparison cannot say" if len(mine) > 1 else ""
        lines.append(f"{name} differs from {baseline} in {len(mine)} switch(es): {parts}{many}.")
    return lines


def _flat(spec: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return a policy as module → parameter → value; a kind that comes again is numbered, the policy's own are ""."""
    flat: dict[str, dict[str, str]] = {}
    for module in spec.get("modules", ()):
        kind = str(module["kind"])
        number = sum(name.partition("#")[0] == kind for name in flat) + 1
        flat[kind if number == 1 else f"{kind}#{number}"] = {
            key: _word(value) for key, value in module.items() if key not in ("kind", "name") and not _empty(value)
        }
    if isinstance(spec.get("at_limit"), Mapping):
        flat["at_limit"] = {key: _word(value) for key, value in spec["at_limit"].items()}
    own = {key: value for key, value in spec.items() if key not in ("name", "modules", "at_limit")}
    flat[""] = {key: _word(value) for key, value in own.items() if value is not None}
    return flat


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple)) and not value)


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"{len(value)} entries" if value and isinstance(value[0], Mapping) else ", ".join(map(str, value))
    return str(value)

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
        for switch in dict.fromkeys((*first, *mine)):
            before, after = first.get(switch, ABSENT), mine.get(switch, ABSENT)
            if before != after:
                rows.append((name, switch, before, after))
    return pd.DataFrame(rows, columns=["policy", "switch", "baseline", "value"], dtype="string")


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


def _flat(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return a policy as switch → value; a module that comes more than once is numbered."""
    flat: dict[str, str] = {}
    seen: dict[str, int] = {}
    for module in spec.get("modules", ()):
        kind = str(module["kind"])
        seen[kind] = seen.get(kind, 0) + 1
        head = kind if seen[kind] == 1 else f"{kind}#{seen[kind]}"
        flat[head] = "there"
        flat |= {f"{head}.{key}": _word(value) for key, value in module.items() if key != "kind" and value is not None}
    order = [str(module["kind"]) for module in spec.get("modules", ())]
    flat["order of modules"] = ", ".join(order)
    for key, value in spec.items():
        if key == "at_limit" and isinstance(value, Mapping):
            flat |= {f"at_limit.{name}": _word(item) for name, item in value.items()}
        elif key not in ("name", "modules") and value is not None:
            flat[key] = _word(value)
    return flat


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"{len(value)} entries" if value and isinstance(value[0], Mapping) else ", ".join(map(str, value))
    return str(value)

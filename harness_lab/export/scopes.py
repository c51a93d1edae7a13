"""A value derived again for another scope: the same promise, from the same records, counted as the target counts."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import pandas as pd

from harness_lab.analyze.ceilings import ceiling
from harness_lab.analyze.frames import amount, nodes_of
from harness_lab.errors import InputError
from harness_lab.export.tuned import FACTORS, digest_of, evidence_of_choice
from harness_lab.export.values import SCOPES

if TYPE_CHECKING:
    from harness_lab.analyze.ceilings import CeilingChannel
    from harness_lab.analyze.frames import Data
    from harness_lab.export.carry import Derive
    from harness_lab.export.config import TunedConfig
    from harness_lab.export.document import Evidence
    from harness_lab.export.targets.base import Knob
    from harness_lab.export.values import Quantity, Scope, Value

CHANNELS: Final[dict[Quantity, CeilingChannel]] = {
    "calls": "calls", "cost": "cost", "input": "input", "tokens": "tokens", "time": "time",
}  # fmt: skip


_PER: Final[dict[Scope, str]] = {"tree": "run", "node": "agent", "root": "main agent", "child": "child"}
_MANY: Final = {"child": "children"}


def from_records(
    records: Data, config: TunedConfig, *, target: float | None = None, confidence: float = 0.95
) -> Derive:
    """Return what derives a value again where a target counts over another scope.

    Parameters
    ----------
    records : Settlements or DataFrame
        The nodes that values are derived from.
    config : TunedConfig
        Its evidence says which share was promised for a value.
    target : float, optional
        The share that shall complete, where the config's evidence states none.
    confidence : float, default 0.95
        Of the promise.

    Returns
    -------
    callable
        Takes a knob and a value; returns the value for the knob's scope and its evidence, or why there is none:
        nothing was promised, the records are too few, or the quantity or scope is not in them.

    Notes
    -----
    Counted over single agents, each node is taken as a run of its own, and the promise is about nodes: the share of
    agents that complete within the ceiling. Runs whose agents each keep their ceiling may still be many.
    """
    nodes = nodes_of(records)
    origin = {"data_sha256": digest_of(nodes), "harness_lab": version("harness-lab")}
    if target is not None and not 0 < target < 1:
        raise InputError("target", expected="a share between 0 and 1", got=target)

    def derive(knob: Knob, value: Value) -> tuple[Value, Evidence] | str:
        channel = CHANNELS.get(knob.quantity)
        scope = knob.bounds[0]
        if channel is None or scope == "parent" or value.scope == "period":
            return f"is counted over {SCOPES[value.scope or 'tree']}, and no record says it for {SCOPES[scope]}"
        known = config.evidence_of(value.name)
        share = target if target is not None else known.target_share if known is not None else None
        if share is None:
            return "cannot be derived again: its evidence promises no share of runs; state one (target=...)"
        choice = ceiling(counted_over(nodes, scope), channel, target=share, confidence=confidence)
        if choice.ceiling is None:
            return f"cannot be derived again for {SCOPES[scope]}: {choice.declined}"
        factor = FACTORS[channel]
        again = replace(value, amount=choice.ceiling / factor if factor != 1 else choice.ceiling, scope=scope)
        evidence = evidence_of_choice(choice, value.name, what=_PER[scope], of=_MANY.get(scope, f"{_PER[scope]}s"))
        shown = f"derived again for {SCOPES[scope]}, in place of {value} for {SCOPES[value.scope or 'tree']}"
        note = f"{shown}: {amount(choice.column, choice.ceiling)}"
        return again, evidence.model_copy(update=origin | {"note": "; ".join(x for x in (note, evidence.note) if x)})

    return derive


def counted_over(nodes: pd.DataFrame, scope: Scope) -> pd.DataFrame:
    """Return the rows as runs of a scope: whole trees, or single nodes that each stand for themselves."""
    if scope == "tree":
        return nodes
    root = nodes["parent"].isna() if "parent" in nodes.columns else pd.Series(data=True, index=nodes.index)
    kept = {"root": root, "child": ~root}.get(scope)
    chosen = nodes if kept is None else nodes[kept]
    alone = chosen.copy()
    alone["run"] = alone["run"].astype("string") + "\x1f" + alone["node"].astype("string")
    if "parent" in alone.columns:
        alone["parent"] = pd.Series(pd.NA, index=alone.index, dtype=alone["parent"].dtype)
    return alone

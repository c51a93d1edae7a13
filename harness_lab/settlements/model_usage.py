"""What each model used, of records that tell no calls but sums by model: the column ``model_usage``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from harness_lab.settlements.columns import MAX_TEXT
from harness_lab.settlements.context import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNTS: Final = ("input_fresh", "cache_read", "cache_write", "output", "cost_nusd")
"""What is told of each model; what a record does not tell is left out."""


def packed(models: Mapping[str, Mapping[str, int | None]]) -> str | None:
    """Return what each model used as the table holds it.

    Parameters
    ----------
    models : mapping
        Model → any of ``COUNTS`` → figure; None: unknown.

    Returns
    -------
    str or None
        Canonical JSON; None if nothing is told, or more than a field of the table takes.

    Examples
    --------
    >>> packed({"m": {"input_fresh": 5, "cache_read": None, "output": 2}})
    '{"m":{"input_fresh":5,"output":2}}'
    """
    told = {model: {key: value for key, value in one.items() if value is not None} for model, one in models.items()}
    text = canonical(told)
    return text if told and len(text) <= MAX_TEXT else None


def unpacked(nodes: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each node and model, with the figures of that model alone.

    Parameters
    ----------
    nodes : DataFrame
        Node rows.

    Returns
    -------
    DataFrame
        The columns of the nodes; nodes without ``model_usage`` are as they were.
    """
    told = nodes["model_usage"].notna()
    if not told.any():
        return nodes
    texts = nodes.loc[told, "model_usage"]
    rows = [(at, model, one) for at, text in texts.items() for model, one in _parsed(text).items()]
    split = nodes.loc[[at for at, _, _ in rows]].reset_index(drop=True)
    split["served_model"] = pd.array([model for _, model, _ in rows], dtype="string")
    for name in COUNTS:
        split[name] = pd.array([one.get(name) for _, _, one in rows], dtype="Int64")
    split["input_total"] = split["input_fresh"] + split["cache_read"] + split["cache_write"]
    split["cache_write_1h"] = pd.array([None] * len(split), dtype="Int64")
    return pd.concat([nodes[~told], split], ignore_index=True)


def models_of(text: str) -> tuple[str, ...] | None:
    """Return the models that a text of :func:`packed` tells of; None for a text that has anything else in it."""
    told = _parsed(text)
    return tuple(told) if canonical(told) == text else None


def _parsed(text: str) -> dict[str, dict[str, Any]]:
    """Return the figures of each model; of a text that somebody else wrote only what has their shape."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    models = told if isinstance(told, dict) else {}
    whole = {model: one for model, one in models.items() if isinstance(one, dict)}
    return {model: {key: one[key] for key in COUNTS if type(one.get(key)) is int} for model, one in whole.items()}

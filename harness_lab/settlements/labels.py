"""Labels: outcomes and groups that the records do not hold, joined by run id.

A labels file is a flat table with the column ``run`` and any of those in ``LABELS`` (``repository`` may stand for
``repo``), or what says whether the result was good in other words (``VERDICTS``: tests passed, merged, thumbs up): it
was delivered if all verdicts given are yes, and not if one is no. What judges the result goes to
the run's root, what groups runs goes to all its nodes. A label replaces what the record said; an empty one leaves it
alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
from pydantic import ValidationError

from harness_lab.errors import InputError, ReadError
from harness_lab.settlements.columns import NODE_COLUMNS
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE, find
from harness_lab.settlements.readers.tables import Bad, lines_of
from harness_lab.settlements.rows import NodeRow, why_not

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

JUDGEMENTS: Final = ("delivered", "score", "eligible", "eligible_reason")
GROUPS: Final = ("task_kind", "user", "team", "repo", "session")
VERDICTS: Final = ("tests_passed", "merged", "thumbs")
"""Columns that each say yes or no (thumbs: up or down) to ``delivered``."""
LABELS: Final = (*JUDGEMENTS, *GROUPS)
"""The columns that a labels file may have beside ``run``."""


def join_labels(
    nodes: pd.DataFrame, path: str | os.PathLike[str], *, digest: Callable[[str], str] | None = None
) -> tuple[pd.DataFrame, str]:
    """Return the nodes with the labels of the file at `path`, and a note on how many runs were labelled.

    With `digest`, a label also finds a run whose id has been hashed already.

    Raises
    ------
    ReadError
        If the file cannot be read.
    InputError
        If it has other columns, a value of the wrong type, or two labels for one run.
    """
    labels = _read(path)
    joined = nodes.copy()
    root = nodes["parent"].isna()
    for column in NODE_COLUMNS:
        if column.name not in LABELS:
            continue
        found = {
            name: row[column.name]
            for run, row in labels.items()
            if row[column.name] is not None
            for name in ((run,) if digest is None else (run, digest(run)))
        }
        values = pd.Series(nodes["run"].map(found), index=nodes.index).astype(column.dtype)
        wanted = values.notna() & (root if column.name in JUDGEMENTS else True)
        joined[column.name] = nodes[column.name].mask(wanted, values)
    known = set(nodes["run"])
    matched = sum(run in known or (digest is not None and digest(run) in known) for run in labels)
    return joined, f"labels: {matched:,} of {len(labels):,} label(s) found their run ({len(known):,} runs)"


def _read(path: str | os.PathLike[str]) -> dict[str, Mapping[str, Any]]:
    files = find([path]).files
    if len(files) != 1 or not files[0].named:
        raise ReadError(str(path), expected="one labels file", got="a folder")
    labels: dict[str, Mapping[str, Any]] = {}
    try:
        for line in lines_of(files[0].path, files[0].head):
            if isinstance(line, Bad):
                raise InputError(f"{path}:{line.number}", expected="a row of labels", got=line.reason)
            row = _label(line.values, f"{path}:{line.number}")
            if row["run"] in labels:
                raise InputError(f"{path}:{line.number}", expected="one label for each run", got=row["run"])
            labels[row["run"]] = row
    except (Unfit, pa.ArrowException, *UNREADABLE) as error:
        raise ReadError(str(path), expected="a CSV, JSON lines or Parquet table of labels", got=str(error)) from None
    return labels


def _label(values: Mapping[str, object], where: str) -> Mapping[str, Any]:
    extra = sorted(set(values) - {"run", "repository", *LABELS, *VERDICTS})
    if extra or "run" not in values:
        wanted = ", ".join((*LABELS, *VERDICTS))
        raise InputError(where, expected=f"the columns run and any of {wanted}", got=sorted(values))
    given = {name: value for name, value in values.items() if value not in (None, "")}
    if "repository" in given:
        given.setdefault("repo", given.pop("repository"))
    try:
        verdicts = [_verdict(given.pop(name)) for name in VERDICTS if name in given]
        if verdicts and "delivered" not in given:
            given["delivered"] = None if None in verdicts and False not in verdicts else all(verdicts)
        return NodeRow.model_validate({"node": "0", **given}).__dict__
    except ValidationError as error:
        raise InputError(where, expected="labels of the right type", got=why_not(error)) from None


def _verdict(value: object) -> bool | None:
    """Return a verdict, read as ``delivered`` is; None: it says that nobody knows."""
    words = {"up": True, "down": False, "+1": True, "-1": False}
    known = words.get(str(value).strip().lower(), value)
    said: bool | None = NodeRow.model_validate({"run": "r", "node": "0", "delivered": known}).__dict__["delivered"]
    return said

"""The schema of the settlement table: its version, empty tables, and bringing a frame into its shape.

A frame that went through :func:`conform_nodes` or :func:`conform_calls` has exactly the columns of
:mod:`harness_lab.settlements.columns`, in that order, with nullable dtypes, and keeps the table's invariants:

- nothing is negative (times before 1970 and scores excepted);
- where all parts of ``input_total`` are known, it is their sum (and is filled in where it was missing);
- ``reasoning`` is at most ``output`` and ``cache_write_1h`` at most ``cache_write``;
- ``outcome`` is a known word (missing becomes ``unknown``), and so is ``cause`` where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from harness_lab.errors import InputError, ReadError
from harness_lab.outcome import Cause, Outcome
from harness_lab.settlements.columns import (
    CALL_COLUMNS,
    NODE_COLUMNS,
    PARTS,
    SIGNED,
    SUBSETS,
    Column,
)

SCHEMA_VERSION: Final = 3
"""The version that this program writes; it reads this one and all older ones.

=======  ===============================================================================================
version  what is new
=======  ===============================================================================================
1        the first
2        ``placeholder_calls`` (nodes), ``output_placeholder`` and ``output_chars`` (calls): output counts that
         are known to be too low, and what they can be estimated from
3        ``policy`` and ``scenario`` (calls): runs of one name under several policies; ``model_usage`` (nodes): what
         each model used where no calls are recorded
=======  ===============================================================================================
"""

Migration = Callable[[pd.DataFrame], pd.DataFrame]


def _marked(version: int) -> Migration:
    """Return the step to `version` for a change that only adds columns: older rows do not know them (NA)."""

    def step(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(schema_version=version) if "schema_version" in frame.columns else frame

    return step


MIGRATIONS: Final[Mapping[int, Migration]] = {1: _marked(2), 2: _marked(3)}
"""From a version to the step that makes the next one of it; each is tested with a stored file of that version."""

Columns = Mapping[str, Any]
"""Column name → values (array, sequence) or one scalar for all rows."""


def empty_nodes() -> pd.DataFrame:
    """Return a nodes table without rows."""
    return conform_nodes({})


def empty_calls() -> pd.DataFrame:
    """Return a calls table without rows."""
    return conform_calls({})


def conform_nodes(data: pd.DataFrame | Columns) -> pd.DataFrame:
    """Bring node rows into the schema's shape.

    Parameters
    ----------
    data : DataFrame or mapping
        Some or all of the columns of ``NODE_COLUMNS``; a mapping may hold scalars, which apply to every row.

    Returns
    -------
    DataFrame
        All columns in order, missing ones NA, index 0 … n-1.

    Raises
    ------
    InputError
        If there is a column that the schema does not know, a value of the wrong type, or an invariant does not hold;
        the message names the column and the first row concerned.
    """
    frame = _shape(data, NODE_COLUMNS, "nodes")
    _check_present(frame, ("run", "node"), "nodes")
    frame["schema_version"] = frame["schema_version"].fillna(SCHEMA_VERSION)
    frame["outcome"] = frame["outcome"].fillna(Outcome.UNKNOWN.value)
    _check_words(frame, "outcome", [member.value for member in Outcome])
    _check_words(frame, "cause", [member.value for member in Cause])
    _check_version(frame)
    return _check_counts(frame, NODE_COLUMNS, "nodes", given=_names(data))


def conform_calls(data: pd.DataFrame | Columns) -> pd.DataFrame:
    """Bring call rows into the schema's shape; like :func:`conform_nodes`, for ``CALL_COLUMNS``."""
    frame = _shape(data, CALL_COLUMNS, "calls")
    _check_present(frame, ("run", "node"), "calls")
    return _check_counts(frame, CALL_COLUMNS, "calls", given=_names(data))


def migrate(
    frame: pd.DataFrame, *, version: int, migrations: Mapping[int, Migration] = MIGRATIONS, target: int = SCHEMA_VERSION
) -> pd.DataFrame:
    """Bring a stored frame of an older schema version up to `target`, one step at a time.

    Raises
    ------
    ReadError
        If `version` is newer than `target`, or no step leads on from it.
    """
    if version > target:
        hint = "read it with a newer harness_lab"
        raise ReadError("schema_version", expected=f"at most {target}", got=version, hint=hint)
    for step in range(version, target):
        if step not in migrations:
            raise ReadError("schema_version", expected=f"a version that can be brought to {target}", got=version)
        frame = migrations[step](frame)
    return frame


def _shape(data: pd.DataFrame | Columns, columns: Sequence[Column], table: str) -> pd.DataFrame:
    """Return a frame with exactly `columns`, typed; unknown names are refused."""
    known = [column.name for column in columns]
    extra = [str(name) for name in data if name not in known]
    if extra:
        hint = f"unknown: {', '.join(sorted(extra)[:8])}"
        raise InputError(f"{table} columns", expected="only columns of the schema", got=extra, hint=hint)
    rows = _row_count(data, table)
    typed = {column.name: _typed(data, column, rows, table) for column in columns}
    return pd.DataFrame(typed, index=pd.RangeIndex(rows), copy=False)


def _names(data: pd.DataFrame | Columns) -> set[str]:
    return {str(name) for name in data}


def _row_count(data: pd.DataFrame | Columns, table: str) -> int:
    if isinstance(data, pd.DataFrame):
        return len(data)
    lengths = {name: len(values) for name, values in data.items() if not _is_scalar(values)}
    if len(set(lengths.values())) > 1:
        raise InputError(f"{table} columns", expected="the same length for all", got=lengths)
    return next(iter(lengths.values()), 1 if data else 0)


def _is_scalar(values: object) -> bool:
    return values is None or pd.api.types.is_scalar(values)


def _typed(data: pd.DataFrame | Columns, column: Column, rows: int, table: str) -> Any:
    """Return one column as an array of its dtype; a missing one is all NA, a scalar is repeated."""
    values = data.get(column.name)
    try:
        if _is_scalar(values):
            missing = values is None or values is pd.NA
            one = pd.array([], dtype=column.dtype) if missing else _cast([values], column)
            return one.take(np.full(rows, -1 if missing else 0), allow_fill=missing)
        return _cast(values, column)
    except (TypeError, ValueError, OverflowError):
        raise _type_error(values, column, table) from None


def _cast(values: Any, column: Column) -> Any:
    array: Any = values.array if isinstance(values, pd.Series) else values
    dtype = getattr(array, "dtype", None)
    if dtype == column.dtype:
        return array
    if column.dtype == "Int64" and dtype is not None and pd.api.types.is_bool_dtype(dtype):
        raise TypeError("booleans are no counts")
    if column.dtype == "Int64" and _has_bool_or_text(array, dtype):
        raise TypeError("booleans and text are no counts")
    made: Any = pd.array(array, dtype=column.dtype)
    return made


def _has_bool_or_text(array: Any, dtype: Any) -> bool:
    """Whether an untyped column holds what pandas would turn into numbers without a word."""
    if dtype is not None and not (pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)):
        return False
    return any(isinstance(value, (bool, np.bool_, str, bytes)) for value in array)


def _type_error(values: Any, column: Column, table: str) -> InputError:
    for row, value in enumerate([values] if _is_scalar(values) else values):
        try:
            _cast([value], column)
        except (TypeError, ValueError, OverflowError):
            expected = {"Int64": "whole numbers or NA", "string": "text or NA", "boolean": "true, false or NA"}
            wanted = expected.get(column.dtype, "numbers or NA")
            return InputError(f"{table}.{column.name}", expected=wanted, got=value, hint=f"row {row}")
    return InputError(f"{table}.{column.name}", expected=f"values of dtype {column.dtype}", got=type(values).__name__)


def _refuse(frame: pd.DataFrame, bad: pd.Series, what: str, expected: str) -> None:
    """Raise for the first row in which `bad` is true; NA counts as fine."""
    rows = np.flatnonzero(bad.fillna(value=False).to_numpy(dtype=bool))
    if rows.size:
        row = int(rows[0])
        name = what.rpartition(".")[2]
        more = f" and {rows.size - 1} more" if rows.size > 1 else ""
        hint = f"row {row} (run {frame['run'].iloc[row]}){more}"
        value: Any = frame[name].iloc[row]
        got = value.item() if isinstance(value, np.generic) else value  # "5", not "np.int64(5)"
        raise InputError(what, expected=expected, got=got, hint=hint)


def _check_present(frame: pd.DataFrame, names: Sequence[str], table: str) -> None:
    for name in names:
        _refuse(frame, frame[name].isna(), f"{table}.{name}", "a value in every row")


def _check_words(frame: pd.DataFrame, name: str, words: Sequence[str]) -> None:
    bad = frame[name].notna() & ~frame[name].isin(words)
    _refuse(frame, bad, f"nodes.{name}", f"one of {', '.join(words)}")


def _check_version(frame: pd.DataFrame) -> None:
    hint = f"version {SCHEMA_VERSION}; older tables go through migrate first"
    _refuse(frame, frame["schema_version"] != SCHEMA_VERSION, "nodes.schema_version", hint)


def _check_counts(frame: pd.DataFrame, columns: Sequence[Column], table: str, *, given: set[str]) -> pd.DataFrame:
    """Check signs, sums and subsets, and fill in an ``input_total`` that its parts give."""
    for column in columns:
        if column.name in given and column.dtype == "Int64" and column.name not in SIGNED:
            _refuse(frame, frame[column.name] < 0, f"{table}.{column.name}", "at least 0")
    total = frame[PARTS[0]] + frame[PARTS[1]] + frame[PARTS[2]]
    frame["input_total"] = frame["input_total"].fillna(total)
    expected = f"the sum of {', '.join(PARTS)}"
    _refuse(frame, frame["input_total"] != total, f"{table}.input_total", expected)
    for part, whole in SUBSETS:
        _refuse(frame, frame[part] > frame[whole], f"{table}.{part}", f"at most {whole}")
    return frame

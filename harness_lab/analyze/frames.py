"""Taking in settlements: the object or its frames, columns that may be missing, groups, units for display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness_lab.errors import InputError
from harness_lab.stats.estimates import with_unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

GROUPS: Final = (
    "agent", "backend", "model", "served_model", "context", "task_kind", "user", "team", "repo", "session",
    "client_version",
)  # fmt: skip
"""Columns by which rows can be told apart."""

_DISPLAY: Final = {
    "cost_nusd": ("$", 1e-9), "wasted_nusd": ("$", 1e-9), "duration_ns": ("s", 1e-9), "max_depth": ("levels", 1.0),
    "starts": ("starts", 1.0), "at_once": ("at once", 1.0),
}  # fmt: skip

_TOKENS: Final = frozenset(("tokens", "input_total", "input_fresh", "cache_read", "cache_write", "output", "reasoning"))

_COUNTS: Final = frozenset(
    ("calls", "attempts", "tool_calls", "starts", "iterations", "depth", "input_total", "input_fresh", "cache_read",
     "cache_write", "cache_write_1h",
     "output", "reasoning", "cost_nusd", "billed_nusd", "start_ns", "duration_ns", "wait_ns",
     "call", "attempt")
)  # fmt: skip
COUNTED: Final = frozenset(("calls", "attempts", "tool_calls", "starts", "iterations", "duration_ns", "wait_ns"))
"""Quantities that are whole even where a call did not report its usage."""

_SIGNED: Final = frozenset(("score", "start_ns"))
_FLAGS: Final = frozenset(("overspent", "delivered", "eligible", "usage_known"))


class HasTables(Protocol):
    """Anything with a nodes table and perhaps a calls table: :class:`harness_lab.settlements.Settlements`."""

    @property
    def nodes(self) -> pd.DataFrame:
        """One row per node."""
        ...

    @property
    def calls(self) -> pd.DataFrame | None:
        """One row per model call, None if none were recorded."""
        ...


Data = HasTables | pd.DataFrame
"""Settlements, or their nodes frame."""


def nodes_of(data: Data) -> pd.DataFrame:
    """Return the nodes table, index 0 ... n-1.

    Raises
    ------
    InputError
        If `data` is neither settlements nor a frame with the columns ``run`` and ``outcome``, or its rows stand for
        different things (``record_unit``): a user turn and a session must not be averaged.
    """
    frame = data if isinstance(data, pd.DataFrame) else getattr(data, "nodes", None)
    if not isinstance(frame, pd.DataFrame):
        raise InputError("settlements", expected="Settlements or their nodes frame", got=type(data).__name__)
    missing = [name for name in ("run", "outcome") if name not in frame.columns]
    if missing:
        raise InputError("settlements", expected="at least the columns run and outcome", got=f"no {missing}")
    _refuse_mixed_units(frame)
    return frame.reset_index(drop=True)


def _refuse_mixed_units(frame: pd.DataFrame) -> None:
    """Raise if rows of several units are mixed; rows that do not name their unit are taken to be of the others'."""
    counts = column(frame, "record_unit").value_counts()
    counts = counts[counts > 0]
    if len(counts) > 1:
        found = ", ".join(f"{unit} ({rows:,})" for unit, rows in counts.items())
        hint = f"keep one: settlements.where(record_unit={str(counts.index[0])!r})"
        raise InputError("record_unit", expected="rows that all stand for the same thing", got=found, hint=hint)


def calls_of(data: Data) -> pd.DataFrame | None:
    """Return the calls table, None if there is none."""
    return None if isinstance(data, pd.DataFrame) else data.calls


def column(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    """Return a column; all NA, in its dtype, where the frame does not have it."""
    if name in frame.columns:
        return frame[name]
    dtype = "Int64" if name in _COUNTS else "boolean" if name in _FLAGS else "string"
    return pd.Series(pd.NA, index=frame.index, dtype=dtype, name=name)


def known(frame: pd.DataFrame, name: str) -> bool:
    """Whether any row says something in a column."""
    return name in frame.columns and bool(frame[name].notna().any())


def numbers(frame: pd.DataFrame, name: str) -> Floats:
    """Return a numeric column as float64, unknown as NaN.

    Raises
    ------
    InputError
        If the column holds no numbers.
    """
    series = column(frame, name)
    if not pd.api.types.is_numeric_dtype(series.dtype):
        raise InputError(name, expected="a column of numbers", got=str(series.dtype))
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def amounts(frame: pd.DataFrame, name: str) -> Floats:
    """Return a column of something used: numbers of at least 0, unknown as NaN.

    Raises
    ------
    InputError
        If the column holds no numbers, or a number below 0 (a score or an instant may be below).
    """
    values = numbers(frame, name)
    below = values < 0
    if name not in _SIGNED and below.any():
        raise InputError(name, expected="amounts of at least 0", got=float(values[below].min()))
    return values


def whole_numbers(frame: pd.DataFrame, name: str) -> pd.Series[Any]:
    """Return a count or an amount of money as nullable Int64.

    Raises
    ------
    InputError
        If a value is no whole number.
    """
    try:
        return column(frame, name).astype("Int64")
    except (TypeError, ValueError):
        raise InputError(name, expected="whole numbers or NA", got=str(frame[name].dtype)) from None


def is_true(frame: pd.DataFrame, name: str) -> Bools:
    """Return where a three-valued column is yes (unknown counts as not)."""
    return column(frame, name).astype("boolean").fillna(value=False).to_numpy(dtype=bool)


def is_false(frame: pd.DataFrame, name: str) -> Bools:
    """Return where a three-valued column is no (unknown counts as not)."""
    return (~column(frame, name).astype("boolean")).fillna(value=False).to_numpy(dtype=bool)


def text(frame: pd.DataFrame, name: str) -> npt.NDArray[Any]:
    """Return a text column as an object array, unknown as ``""``."""
    return column(frame, name).astype("string").fillna("").to_numpy(dtype=object)


def text_codes(frame: pd.DataFrame, name: str) -> tuple[Ints, list[str]]:
    """Return the word of each row as a number, and the words by number; unknown is ``""``."""
    codes, words = pd.factorize(column(frame, name), use_na_sentinel=False)
    return np.asarray(codes, dtype=np.int64), ["" if pd.isna(word) else str(word) for word in words]


def row_codes(frame: pd.DataFrame, by: Sequence[str]) -> Ints:
    """Return the group of each row, in order of appearance; unknown is a group of its own."""
    mixed = np.zeros(len(frame), dtype=np.int64)
    several = False
    for name in by:
        if not known(frame, name):
            continue
        part = np.asarray(pd.factorize(column(frame, name), use_na_sentinel=False)[0], dtype=np.int64)
        if not part.any():  # one value: it tells nothing apart
            continue
        mixed = part if not several else np.asarray(pd.factorize(mixed * (int(part.max()) + 1) + part)[0], np.int64)
        several = True
    return mixed


def group_codes(frame: pd.DataFrame, by: Sequence[str]) -> tuple[Ints, list[tuple[Any, ...]]]:
    """Return the group of each row and the groups' keys, in order of appearance; unknown is a key of its own (None)."""
    missing = [name for name in by if name not in frame.columns]
    if missing:
        raise InputError("by", expected=f"columns of the table, such as {', '.join(GROUPS[:5])}", got=missing)
    if not by:
        return np.zeros(len(frame), dtype=np.int64), [()]
    codes = row_codes(frame, by)
    first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.intp)
    first[codes[::-1]] = np.arange(codes.size)[::-1]  # the last to be written stays, which is the first of each group
    keys = frame[list(by)].iloc[first].itertuples(index=False, name=None)
    return codes, [tuple(None if pd.isna(part) else part for part in key) for key in keys]


def parts_by(
    frame: pd.DataFrame, by: Sequence[str], *, first: Bools | None = None
) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield (key, rows) for each group, in order of appearance; the rows of `first`, if given, lead in their group."""
    codes, keys = group_codes(frame, by)
    if len(keys) == 1:
        yield keys[0], frame.reset_index(drop=True)
        return
    order = np.argsort(codes if first is None else 2 * codes + ~first, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(keys) + 1))
    together = frame.take(order)  # moved once, so that each group is a slice
    for number, key in enumerate(keys):
        yield key, together.iloc[bounds[number] : bounds[number + 1]].reset_index(drop=True)


def as_names(by: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return `by` as a tuple of column names."""
    return () if by is None else (by,) if isinstance(by, str) else tuple(by)


def display(name: str) -> tuple[str, float]:
    """Return the unit in which a column is shown to a person, and the factor to it."""
    return _DISPLAY.get(name, ("calls" if name == "calls" else "tokens" if name in _TOKENS else "", 1.0))


def stored_unit(name: str) -> str:
    """Return the unit in which a column's values stand in the tables.

    Examples
    --------
    >>> stored_unit("cost_nusd"), stored_unit("duration_ns"), stored_unit("calls")
    ('nano-dollars', 'nanoseconds', 'calls')
    """
    if name.endswith(("_nusd", "_ns")):
        return "nano-dollars" if name.endswith("_nusd") else "nanoseconds"
    return display(name)[0]


def amount(name: str, value: float) -> str:
    """Write a value of a column for a person, with its unit.

    Examples
    --------
    >>> amount("cost_nusd", 368_498_200), amount("duration_ns", 12_500_000_000), amount("input_total", 31_211)
    ('$0.3685', '12.5 s', '31,211 tokens')
    """
    unit, factor = display(name)
    return with_unit(value * factor, unit)


def label(key: tuple[Any, ...]) -> str:
    """Write a group's key for a person; unknown parts are said."""
    return " / ".join("unknown" if part is None else str(part) for part in key) if key else "all"

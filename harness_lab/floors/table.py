"""The floor table: what each path was seen to cost at least, with the evidence behind it.

Source: the runtime floors of tangle-network/agent-runtime: the smallest settlement of an execution path (backend and
model), a lower bound of what was seen and no promise; agent, context and unit are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from harness_lab.clock import instant
from harness_lab.errors import InputError
from harness_lab.outcome import UNITS, Unit
from harness_lab.usage import count, optional_count

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorKey:
    """What a floor belongs to; two runs that differ in any part are never merged.

    Parameters
    ----------
    backend, model : str
        The execution path and the model as requested.
    agent : str or None
        Role or profile; None means "any" when asking and "not recorded" in a row.
    context : str or None
        Digest of the starting context. None is a key of its own, printed ``unknown``.
    unit : {"input-total", "total", "newly-presented"}
        What is counted.

    Raises
    ------
    InputError
        If the unit is none of these, or a name is no text.
    """

    backend: str
    model: str
    agent: str | None = None
    context: str | None = None
    unit: Unit = "input-total"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InputError("unit", expected=f"one of {', '.join(UNITS)}", got=self.unit)
        for name in ("backend", "model", "agent", "context"):
            value = getattr(self, name)
            if not isinstance(value, str) and (value is not None or name in ("backend", "model")):
                raise InputError(name, expected="text", got=value)

    def __str__(self) -> str:
        agent = f"{self.agent} on " if self.agent else ""
        return f"{agent}{self.backend} / {self.model} (context {self.context or 'unknown'}, {self.unit})"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorRow:
    """One path's floor and its evidence.

    Parameters
    ----------
    key : FloorKey
        The path, with the model as requested.
    floor : int or None
        Smallest eligible settlement, tokens in the key's unit. None: unmeasured, hence not enforced; never zero.
    n : int
        Eligible settlements behind it.
    second_lowest : int or None
        The next settlement up.
    startup_cost : int or None
        Smallest prompt of a first call, tokens; None without call records.
    served_model : str or None
        The model that answered; None when unknown.
    measured_ns : int or None
        When the newest row was recorded, epoch nanoseconds.
    stale_after_ns : int or None
        When the evidence stops to count as fresh, epoch nanoseconds; None: never.
    evidence_id : str
        Digest of the rows.
    sources : tuple of str
        Where the rows came from.
    note : str
        What a reader has to know.
    context_fields : mapping of str to object
        What the starting context was made of (client, tools, instructions ...), so that a change can be named; empty:
        not recorded.
    retired : str
        Why this row no longer counts; empty: it does. A retired row is kept and never looked up.
    """

    key: FloorKey
    floor: int | None
    n: int = 0
    second_lowest: int | None = None
    startup_cost: int | None = None
    served_model: str | None = None
    measured_ns: int | None = None
    stale_after_ns: int | None = None
    evidence_id: str = ""
    sources: tuple[str, ...] = ()
    note: str = ""
    context_fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    retired: str = ""

    def __post_init__(self) -> None:
        for name in ("floor", "second_lowest", "startup_cost"):
            object.__setattr__(self, name, optional_count(name, getattr(self, name)))
        object.__setattr__(self, "n", count("n", self.n))
        for name in ("measured_ns", "stale_after_ns"):
            when = getattr(self, name)
            object.__setattr__(self, name, None if when is None else instant(name, when))

    def age_ns(self, now_ns: int) -> int | None:
        """Nanoseconds since the newest row; None when its time is not recorded."""
        return None if self.measured_ns is None else max(0, now_ns - self.measured_ns)

    def is_stale(self, now_ns: int) -> bool | None:
        """Whether the evidence is past its date; None when it has none."""
        return None if self.stale_after_ns is None else now_ns > self.stale_after_ns


@dataclass(frozen=True, slots=True)
class FloorTable:
    """Floors of many paths.

    Parameters
    ----------
    rows : tuple of FloorRow
        At most one row per key and served model that is not retired.

    Raises
    ------
    InputError
        If a path has two rows that are not retired.
    """

    rows: tuple[FloorRow, ...] = ()

    def __post_init__(self) -> None:
        seen: set[tuple[FloorKey, str | None]] = set()
        for row in self.rows:
            if row.retired:
                continue
            mark = (row.key, row.served_model)
            if mark in seen:
                raise InputError("floor table", expected="one row per path", got=str(row.key))
            seen.add(mark)

    def __iter__(self) -> Iterator[FloorRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def matching(self, key: FloorKey) -> tuple[FloorRow, ...]:
        """Rows of a path; a key without an agent matches every agent's rows, the rest must be equal."""
        return tuple(row for row in self.rows if not row.retired and _matches(row.key, key))

    def before_change(self, key: FloorKey) -> FloorRow | None:
        """Return the newest floor of a path that was measured under another starting context; None without one.

        A key that names no context has none to compare.
        """
        if key.context is None:
            return None
        rows = [row for row in self.rows if not row.retired and row.floor is not None and row.key.context is not None]
        other = [row for row in rows if _matches(replace(row.key, context=key.context), key)]
        return max(other, key=lambda row: (row.measured_ns or 0, -(row.floor or 0)), default=None)

    def with_row(self, row: FloorRow, *, why: str = "measured again") -> FloorTable:
        """Return a table with a new row; the one that it supersedes is retired, not overwritten."""
        same = (row.key, row.served_model)
        return FloorTable((*(_retired(old, why) if (old.key, old.served_model) == same else old for old in self), row))

    def retire(self, key: FloorKey, *, why: str) -> FloorTable:
        """Return a table in which the rows of a path no longer count.

        Raises
        ------
        InputError
            If there is no such row, or no reason.
        """
        if not why or not self.matching(key):
            raise InputError("retirement", expected="a measured path and a reason", got=(str(key), why))
        return FloorTable(tuple(_retired(row, why) if _matches(row.key, key) else row for row in self))

    def units(self, key: FloorKey) -> tuple[Unit, ...]:
        """Return the units in which a path was measured, whatever the key's own."""
        return tuple(unit for unit in UNITS if self.lookup(replace(key, unit=unit)) is not None)

    def lookup(self, key: FloorKey) -> FloorRow | None:
        """Return the row that applies to a path, None when nothing was measured.

        Where several served models answered one requested model, the lowest floor applies (it refuses nothing that any
        of them could do) and the row's note says so.
        """
        measured = [row for row in self.matching(key) if row.floor is not None]
        if not measured:
            return None
        lowest = min(measured, key=lambda row: row.floor or 0)
        if len(measured) == 1:
            return lowest
        others = ", ".join(f"{row.served_model or row.key.agent or 'unknown'}: {row.floor:,}" for row in measured)
        return _with_note(lowest, f"lowest of {len(measured)} floors ({others})")

    def met_by(self, asked: int, *, unit: Unit) -> tuple[FloorRow, ...]:
        """Measured paths whose floor an ask of `asked` tokens would meet, cheapest first."""
        rows = [row for row in self.rows if not row.retired]
        fits = [row for row in rows if row.floor is not None and row.key.unit == unit and row.floor <= asked]
        return tuple(sorted(fits, key=lambda row: (row.floor or 0, str(row.key))))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return plain rows for JSON, keys flattened; :meth:`from_dicts` reads them back."""
        return [asdict(row.key) | _plain(row) for row in self.rows]

    @classmethod
    def from_dicts(cls, rows: Iterable[Mapping[str, Any]]) -> FloorTable:
        """Read rows written by :meth:`to_dicts`.

        Raises
        ------
        InputError
            If a row has an unknown field or misses one.
        """
        if isinstance(rows, (str, Mapping)) or not isinstance(rows, Iterable):
            raise InputError("floor table", expected="a list of rows", got=rows)
        return cls(tuple(_row(row) for row in rows))


_KEY_FIELDS = tuple(f.name for f in fields(FloorKey))
_ROW_FIELDS = tuple(f.name for f in fields(FloorRow) if f.name != "key")


def _matches(row: FloorKey, asked: FloorKey) -> bool:
    same_path = (row.backend, row.model, row.context, row.unit) == (
        asked.backend,
        asked.model,
        asked.context,
        asked.unit,
    )
    return same_path and (asked.agent is None or row.agent in (None, asked.agent))


def _plain(row: FloorRow) -> dict[str, Any]:
    return {k: v for k, v in asdict(row).items() if k != "key" and (v or k not in ("context_fields", "retired"))}


def _retired(row: FloorRow, why: str) -> FloorRow:
    return row if row.retired else replace(row, retired=why)


def _with_note(row: FloorRow, note: str) -> FloorRow:
    return replace(row, note="; ".join(filter(None, (row.note, note))))


def _row(row: Mapping[str, Any]) -> FloorRow:
    if not isinstance(row, Mapping):
        raise InputError("floor row", expected="a table of fields", got=row)
    unknown = sorted(set(row) - set(_KEY_FIELDS) - set(_ROW_FIELDS))
    missing = sorted({"backend", "model"} - set(row))
    if unknown or missing:
        expected = f"the fields {', '.join(_KEY_FIELDS + _ROW_FIELDS)}"
        raise InputError("floor row", expected=expected, got=f"unknown {unknown}, missing {missing}")
    key = FloorKey(**{name: row[name] for name in _KEY_FIELDS if name in row})
    rest = {"floor": None} | {name: row[name] for name in _ROW_FIELDS if name in row}
    return FloorRow(key=key, **(rest | {"sources": tuple(rest.get("sources", ()))}))

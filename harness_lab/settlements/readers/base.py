"""What a reader is, and what it hands back.

A reader knows one record format. It is given all files of its format at once, because some formats say the same thing
in several files, and it adds rows to a :class:`ReaderOutput`; what it cannot take it sets aside with file, line and
reason. It never raises for a bad record, only for a request that cannot be met (a column that does not exist).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import pandas as pd
from pydantic import ValidationError

from harness_lab.settlements.columns import CALL_NAMES, NODE_NAMES
from harness_lab.settlements.report import SetAside
from harness_lab.settlements.rows import CallRow, NodeRow, Row, why_not
from harness_lab.settlements.schema import Columns, conform_calls, conform_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

Record = dict[str, Any]
"""One row as field → value; fields left out are unknown."""

Unit = Literal["session", "turn"]
"""What a run can be where a format leaves it open: a whole session, or what lies between one prompt and the next."""

Placeholders = Literal["recorded", "unknown", "estimated"]
"""What to do with output counts that are placeholders."""

_CHUNK: Final = 50_000
_DERIVED: Final = ("outcome", "input_total", "input_fresh")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a user can choose about reading.

    Parameters
    ----------
    columns : mapping or None
        For flat tables: field → column, or ``"=value"`` for a constant.
    values : mapping or None
        For flat tables: field → word of the source → word of the table.
    unit : {"session", "turn"} or None
        For formats in which a run can be either: which it is. None: a session.
    placeholders : {"recorded", "unknown", "estimated"}
        For formats whose output counts can be placeholders: keep them, make them unknown, or estimate them from the
        length of the answers; they are flagged whatever is chosen.
    """

    columns: Mapping[str, str] | None = None
    values: Mapping[str, Mapping[str, str]] | None = None
    unit: Unit | None = None
    placeholders: Placeholders = "recorded"


class Reader(Protocol):
    """One record format.

    Attributes
    ----------
    name : str
        The format's name, as in ``read(..., format=name)``.
    expects : str
        What a file of this format looks like, for error messages.
    """

    name: str
    expects: str

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether a file with this path and these first bytes is of this format."""
        ...

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read all files of this format."""
        ...


class Rows:
    """Rows that become columns every now and then, so that memory follows the table and not Python's objects."""

    __slots__ = ("_conform", "_frames", "_names", "_rows")

    def __init__(self, names: Sequence[str], conform: Callable[[pd.DataFrame | Columns], pd.DataFrame]) -> None:
        self._names, self._conform = names, conform
        self._rows: list[Record] = []
        self._frames: list[pd.DataFrame] = []

    def add(self, row: Record) -> None:
        """Add one row that has been checked."""
        self._rows.append(row)
        if len(self._rows) >= _CHUNK:
            self._flush()

    def add_frame(self, frame: pd.DataFrame) -> None:
        """Add a frame that conforms already."""
        self._flush()
        self._frames.append(frame)

    def frame(self) -> pd.DataFrame:
        """Return all rows so far."""
        self._flush()
        return pd.concat(self._frames, ignore_index=True) if self._frames else self._conform({})

    @classmethod
    def join(cls, parts: Iterable[Rows]) -> pd.DataFrame:
        """Return the rows of several, in order, as one frame."""
        listed = list(parts)
        frames = [part.frame() for part in listed if part._rows or part._frames]
        return pd.concat(frames, ignore_index=True) if frames else listed[0].frame()

    def _flush(self) -> None:
        if self._rows:
            given: set[str] = set().union(*self._rows)
            columns = {name: [row.get(name) for row in self._rows] for name in self._names if name in given}
            self._frames.append(self._conform(columns))
            self._rows = []


@dataclass(slots=True)
class ReaderOutput:
    """What a reader hands back: rows, what was set aside, and notes.

    ``read`` counts the records met, good or bad. ``calls`` stays empty for formats that record none.
    """

    nodes: Rows = field(default_factory=lambda: Rows(NODE_NAMES, conform_nodes))
    calls: Rows = field(default_factory=lambda: Rows(CALL_NAMES, conform_calls))
    read: int = 0
    set_aside: list[SetAside] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def reject(self, file: str, line: int | None, reason: str) -> None:
        """Set a record aside (it counts as read)."""
        self.read += 1
        self.set_aside.append(SetAside(file, line, reason))

    def node(self, record: Record, calls: Sequence[Record] = ()) -> bool:
        """Check a node and its calls and add them; if any does not pass, set the whole record aside.

        Returns
        -------
        bool
            Whether it was taken.
        """
        try:
            node = _checked(NodeRow, record)
            rows = [_checked(CallRow, call) for call in calls]
        except ValidationError as error:
            self.reject(str(record.get("source")), record.get("line"), why_not(error))
            return False
        self.read += 1
        self.nodes.add(node)
        for row in rows:
            self.calls.add(row)
        return True


def unit_of(reader: Reader, options: ReadOptions, output: ReaderOutput) -> str:
    """Return what a run is for a reader whose `units` says what it can be; note where the choice does not apply."""
    units: tuple[str, ...] = getattr(reader, "units", ())
    if options.unit is None or options.unit in units:
        return options.unit or units[0]
    output.notes.append(f"{reader.name}: a run is a {units[0]} here; {options.unit!r} does not apply")
    return units[0]


def _checked(model: type[Row], record: Record) -> Record:
    """Return the record's fields as the model has them, with those that follow from them."""
    row = model.model_validate(record).__dict__
    return {name: row[name] for name in {*record, *_DERIVED} if row.get(name) is not None}

"""``read``: from files and folders of records, whatever their format, to one table."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args

from harness_lab.errors import InputError, ReadError
from harness_lab.settlements.files import Found, RecordFile, find, is_binary
from harness_lab.settlements.labels import join_labels
from harness_lab.settlements.merge import merge
from harness_lab.settlements.privacy import Ids, Key, check_ids, load_key, passing_key, private, settle
from harness_lab.settlements.readers import PRESETS, READERS
from harness_lab.settlements.readers.base import Placeholders, Reader, ReaderOutput, ReadOptions, Rows, Unit
from harness_lab.settlements.readers.flat import FlatReader, check_map
from harness_lab.settlements.readers.tables import header
from harness_lab.settlements.report import ReadReport, SetAside
from harness_lab.settlements.settlements import Settlements

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Path = str | os.PathLike[str]

_MOST_COLUMNS = 12

DEFAULT_IDS: Ids = "hashed"
"""What becomes of ids if nothing is said."""


def formats() -> dict[str, str]:
    """Return the formats that can be read: name → what a file of it looks like."""
    return {reader.name: reader.expects for reader in READERS}


def read(
    paths: Path | Sequence[Path],
    *,
    format: str = "auto",
    columns: Mapping[str, str] | str | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
    labels: Path | None = None,
    unit: Unit | None = None,
    placeholders: Placeholders = "recorded",
    ids: Ids | None = None,
    id_key: Path | None = None,
) -> Settlements:
    """Read records into a settlement table.

    A record that cannot be taken is set aside with file, line and reason (``result.report``); files of other kinds in a
    folder are left alone and counted in a note. Texts of prompts and answers are never taken.

    Parameters
    ----------
    paths : path or sequence of paths
        Files and folders, also mixed; folders are searched to the bottom, without following links to folders.
    format : str, default "auto"
        Name of a format (:func:`formats`); "auto" tells by content.
    columns : mapping or str, optional
        For flat tables: field → column of the file (``{"cost_usd": "spend"}``), ``"=value"`` for a constant,
        ``"a.b"`` for nested JSON; or the name of a preset. All files are then flat tables.
    values : mapping, optional
        For flat tables: field → word of the file → what it means (``{"outcome": {"user abort": "cancelled"}}``).
        Rows whose outcome is not understood are kept as ``unknown``, and a note says how many.
    labels : path, optional
        A flat table with the column ``run`` and any of ``delivered, score, eligible, eligible_reason, task_kind,
        user, team, repo, session``, joined by run.
    unit : {"session", "turn"}, optional
        What a run is, for formats in which it can be either: a whole session (the default), or what lies between one
        prompt of the user and the next.
    placeholders : {"recorded", "unknown", "estimated"}, default "recorded"
        What to do with output counts that are placeholders (some versions of Claude Code): keep them (the columns
        ``placeholder_calls`` and ``output_placeholder`` flag them), make them unknown, or estimate them from the length
        of the answers.

    ids : {"hashed", "kept"}, optional
        What becomes of the ids (runs, nodes, users, teams, repositories, sessions, names of files): replaced by keyed
        digests (None: so), or kept as they are. Labels are joined before; simulated rows stay.
    id_key : path, optional
        The key file; made, for its owner only, where there is none. Records of several machines that are read with
        one key can be joined and count once. None: the user's own key file (``~/.config/harness_lab/ids.key``).

    Returns
    -------
    Settlements
        All rows; what was read twice counts once.

    Raises
    ------
    ReadError
        If a path does not exist, a named file is of no known format or empty, or nothing at all can be read.
    InputError
        If the format, the preset, a field or a column does not exist.
    """
    listed: Sequence[Path] = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    choices = (("unit", unit, (None, *get_args(Unit))), ("placeholders", placeholders, get_args(Placeholders)))
    for what, value, known in choices:
        if value not in known:
            raise InputError(what, expected=f"one of {', '.join(filter(None, known))}", got=value)
    check_ids(ids or DEFAULT_IDS, id_key)
    options = ReadOptions(columns=_columns(columns), values=values, unit=unit, placeholders=placeholders)
    found = find(listed)
    sorted_out = _sort_out(found, _readers(format, options), options)
    outputs = [reader.read(files, options) for reader, files in sorted_out.by_reader if files]
    for name, reason in found.unreadable:
        sorted_out.output.reject(name, None, reason)
    outputs.append(sorted_out.output)
    if not any(output.read for output in outputs):
        wanted = "; ".join(formats().values())
        raise ReadError(", ".join(map(str, listed)), expected=f"records: {wanted}", got="no records")
    files = [file.name for _, files in sorted_out.by_reader for file in files]
    privacy = _Privacy(ids or DEFAULT_IDS, id_key, [file.name for file in found.files])
    return _table(outputs, files=len(files), labels=labels, privacy=privacy)


def _columns(columns: Mapping[str, str] | str | None) -> Mapping[str, str] | None:
    if not isinstance(columns, str):
        check_map(columns)
        return columns
    if columns not in PRESETS:
        raise InputError("columns", expected=f"a column map or one of {', '.join(sorted(PRESETS))}", got=columns)
    return PRESETS[columns]


def _readers(name: str, options: ReadOptions) -> tuple[Reader, ...]:
    by_name = {reader.name: reader for reader in READERS}
    if name != "auto" and name not in by_name:
        raise InputError("format", expected=f"auto or one of {', '.join(by_name)}", got=name)
    if options.columns is not None and name not in {"auto", FlatReader.name}:
        raise InputError("columns", expected="no column map: only flat tables have columns to map", got=name)
    if options.values is not None and name not in {"auto", FlatReader.name}:
        raise InputError("values", expected="no map of values: only flat tables have one", got=name)
    if options.columns is not None or options.values is not None:
        return (by_name[FlatReader.name],)
    return READERS if name == "auto" else (by_name[name],)


@dataclass(slots=True)
class _SortedOut:
    by_reader: list[tuple[Reader, list[RecordFile]]]
    output: ReaderOutput = field(default_factory=ReaderOutput)


def _sort_out(found: Found, readers: tuple[Reader, ...], options: ReadOptions) -> _SortedOut:
    """Give each file to the first reader that knows it; complain about a named file that nobody knows."""
    result = _SortedOut([(reader, []) for reader in readers])
    alone: list[str] = []
    for file in found.files:
        head = file.head
        if file.named and not head:
            raise ReadError(file.name, expected=_expected(readers), got="an empty file")
        taker = next((files for reader, files in result.by_reader if _takes(reader, file, head, options)), None)
        if taker is None and file.named:
            if len(readers) > 1:
                _suggest_a_map(file, head)
                raise ReadError(file.name, expected=_expected(readers), got=_looks_like(file))
            taker = result.by_reader[0][1]  # the user said which format it is
        if taker is not None:
            taker.append(file)
        elif not file.name.endswith(".calls.parquet"):  # those are read with the nodes beside them
            alone.append(file.name)
    if alone:
        shown = ", ".join(alone[:5]) + (", ..." if len(alone) > 5 else "")
        result.output.notes.append(f"{len(alone):,} file(s) of other kinds were left alone: {shown}")
    return result


def _takes(reader: Reader, file: RecordFile, head: bytes, options: ReadOptions) -> bool:
    if options.columns is not None and isinstance(reader, FlatReader):
        return reader.takes(file.path)
    return reader.sniff(file.path, head)


def _expected(readers: tuple[Reader, ...]) -> str:
    return "; or ".join(reader.expects for reader in readers)


def _suggest_a_map(file: RecordFile, head: bytes) -> None:
    """Raise for a flat table with columns of its own: say which they are, and how they are mapped."""
    names = header(file.path, head) if FlatReader().takes(file.path) else []
    if len(names) < 2:
        return
    shown = ", ".join(names[:_MOST_COLUMNS]) + (", ..." if len(names) > _MOST_COLUMNS else "")
    hint = f"Say which is which: --map run={names[0]} --map cost_usd=COLUMN (columns={{field: column}} in Python)"
    raise ReadError(file.name, expected="a column map for a table with other columns", got=shown, hint=hint)


def _looks_like(file: RecordFile) -> str:
    return "binary content" if is_binary(file.head) else "text of no known format"


@dataclass(slots=True)
class _Privacy:
    """What is to become of ids, and the names of all files that were met."""

    ids: Ids
    key_file: Path | None
    names: list[str]
    key: Key = field(init=False)

    def __post_init__(self) -> None:
        self.key = load_key(self.key_file) if self.ids == "hashed" else passing_key()

    @property
    def hashed(self) -> bool:
        return self.ids == "hashed"


def _table(outputs: Sequence[ReaderOutput], *, files: int, labels: Path | None, privacy: _Privacy) -> Settlements:
    """Put the outputs together, once each, join the labels, and hash the ids."""
    nodes, calls = Rows.join(output.nodes for output in outputs), Rows.join(output.calls for output in outputs)
    merged = merge(nodes, calls)
    set_aside: list[SetAside] = [item for output in outputs for item in output.set_aside]
    notes = [note for output in outputs for note in output.notes] + merged.notes
    nodes = merged.nodes
    if labels is not None:
        nodes, note = join_labels(nodes, labels, digest=privacy.key.digest if privacy.hashed else None)
        notes.append(note)
    nodes, calls, more = settle(nodes, merged.calls, ids=privacy.ids, key=privacy.key)
    report = ReadReport(
        files=files,
        read=sum(output.read for output in outputs),
        kept=len(nodes),
        set_aside=(*set_aside, *merged.set_aside),
        duplicates=merged.duplicates,
        notes=(*notes, *more),
    )
    if privacy.hashed:
        report = private(report, privacy.names, privacy.key)
    return Settlements(nodes=nodes, calls=None if calls.empty else calls, report=report)

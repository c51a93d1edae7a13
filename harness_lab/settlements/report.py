"""What happened while records were read: how many, how many kept, which were set aside and why."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FIGURE = re.compile(r"(?<![\w.])(?!0\b)\d[\d,]*\b")


@dataclass(frozen=True, slots=True)
class SetAside:
    """One record that was not taken into the table.

    Parameters
    ----------
    file : str
        The file, as named from where reading began.
    line : int or None
        Line or row, from 1; None where the whole file is one record.
    reason : str
        Why, in one line.
    """

    file: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.file}{'' if self.line is None else f':{self.line}'}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReport:
    """How reading went. ``read == kept + duplicates + len(set_aside)`` always holds.

    Parameters
    ----------
    files : int
        Files that were opened as records.
    read, kept : int
        Records met, and records that are in the table.
    set_aside : tuple of SetAside
        Records that are not, each with file, line and reason.
    duplicates : int
        Records that said again what another one had said; counted once in the table.
    notes : tuple of str
        What a reader of the table should know: files left alone, times without a zone.
    digests : mapping of str to str
        File name → what is written in its place where the report is stored; empty where ids are kept.
    """

    files: int = 0
    read: int = 0
    kept: int = 0
    set_aside: tuple[SetAside, ...] = ()
    duplicates: int = 0
    notes: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def reasons(self) -> dict[str, int]:
        """Return how many records were set aside for each kind of reason, most frequent first.

        What came and other figures are taken out, so that "got -5" and "got -7" are one kind.
        """
        kinds = Counter(_FIGURE.sub("N", item.reason.partition(", got ")[0]) for item in self.set_aside)
        return dict(kinds.most_common())

    def summary(self, *, examples: int = 5) -> str:
        """Return a few lines of plain text: the counts, the reasons, and the first `examples` of them in full."""
        files = f"{self.files:,} file(s); " if self.files else ""
        lines = [
            f"{files}{self.read:,} record(s) read, {self.kept:,} kept, "
            f"{len(self.set_aside):,} set aside, {self.duplicates:,} duplicate(s)"
        ]
        lines += [f"  set aside {count:,} x {kind}" for kind, count in self.reasons().items()]
        lines += [f"    {item}" for item in self.set_aside[:examples]]
        if len(self.set_aside) > examples:
            lines.append(f"    ... and {len(self.set_aside) - examples:,} more, in report.set_aside")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON; file names as their digests where ids are hashed."""
        aside = [[self.digests.get(item.file, item.file), item.line, item.reason] for item in self.set_aside]
        counts = {"files": self.files, "read": self.read, "kept": self.kept, "duplicates": self.duplicates}
        return {**counts, "set_aside": aside, "notes": [self._stored(note) for note in self.notes]}

    def _stored(self, note: str) -> str:
        for name in sorted(self.digests, key=len, reverse=True):
            note = note.replace(name, self.digests[name])
        return note

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ReadReport:
        """Return the report that :meth:`to_dict` wrote."""
        aside = tuple(SetAside(str(file), line, str(reason)) for file, line, reason in data.get("set_aside", ()))
        files, read, kept, duplicates = (int(data.get(name, 0)) for name in ("files", "read", "kept", "duplicates"))
        notes = tuple(map(str, data.get("notes", ())))
        return cls(files=files, read=read, kept=kept, set_aside=aside, duplicates=duplicates, notes=notes)

    @classmethod
    def merge(cls, reports: Iterable[ReadReport]) -> ReadReport:
        """Return the sum of several reports, in order."""
        parts = tuple(reports)
        return cls(
            files=sum(part.files for part in parts),
            read=sum(part.read for part in parts),
            kept=sum(part.kept for part in parts),
            set_aside=tuple(item for part in parts for item in part.set_aside),
            duplicates=sum(part.duplicates for part in parts),
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
            digests={name: digest for part in parts for name, digest in part.digests.items()},
        )

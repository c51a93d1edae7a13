"""The manifest of a settlement store: which files are in force. Replacing it is the commit."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from harness_lab.errors import ReadError
from harness_lab.settlements.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

NAME: Final = "store.json"
KIND: Final = "harness_lab settlement store"
PREVIOUS: Final = ".previous.json"
_LOCK: Final = ".lock"
_OURS: Final = (_LOCK, PREVIOUS, f".{NAME}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is in force.

    Parameters
    ----------
    generation : int
        How often the store was changed; names of new files begin with it.
    schema_version : int
        Newest schema version among the files; older files are brought up as they are read.
    nodes, calls : mapping of str to int
        File, relative to the store → its rows.
    """

    generation: int = 0
    schema_version: int = SCHEMA_VERSION
    nodes: Mapping[str, int]
    calls: Mapping[str, int]

    @staticmethod
    def exists(folder: Path) -> bool:
        """Whether there is a store in `folder`."""
        return (folder / NAME).is_file()

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Return the manifest in `folder`, an empty one if there is nothing at all.

        Raises
        ------
        ReadError
            If the folder holds something else, the manifest is damaged, or its schema is newer than this program's.
        """
        expected = "a settlement store, or an empty folder to make one in"
        try:
            text = (folder / NAME).read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls._none(folder, expected)
        except OSError as error:
            raise ReadError(str(folder), expected=expected, got=error.strerror) from None
        try:
            data = json.loads(text)
            found = cls(
                generation=int(data["generation"]),
                schema_version=int(data["schema_version"]),
                nodes=_files(data["nodes"]),
                calls=_files(data["calls"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ReadError(str(folder / NAME), expected=expected, got="a damaged manifest") from None
        if data.get("kind") != KIND:
            raise ReadError(str(folder / NAME), expected=expected, got="a file of something else")
        if found.schema_version > SCHEMA_VERSION:
            hint = "read it with a newer harness_lab"
            got = found.schema_version
            raise ReadError("schema_version", expected=f"at most {SCHEMA_VERSION}", got=got, hint=hint)
        return found

    @classmethod
    def _none(cls, folder: Path, expected: str) -> Manifest:
        names = sorted(entry.name for entry in os.scandir(folder))[:5] if folder.is_dir() else []
        if any(name not in {"nodes", "calls"} and not name.startswith(_OURS) for name in names):
            raise ReadError(str(folder), expected=expected, got=f"a folder with {', '.join(names)}")
        return cls(nodes={}, calls={})

    def rows(self, table: str) -> int:
        """Return how many rows a table has."""
        return sum(self.files(table).values())

    def files(self, table: str) -> Mapping[str, int]:
        """Return a table's files and their rows."""
        return self.nodes if table == "nodes" else self.calls

    def with_files(self, table: str, files: Mapping[str, int]) -> Manifest:
        """Return a manifest with other files for one table."""
        return replace(self, nodes=files) if table == "nodes" else replace(self, calls=files)

    def commit(self, folder: Path) -> None:
        """Put this manifest in force: written beside, made durable, moved into place in one step."""
        data: dict[str, Any] = {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "generation": self.generation,
            "nodes": dict(self.nodes),
            "calls": dict(self.calls),
        }
        beside = folder / f".{NAME}.{os.getpid()}.tmp"
        with beside.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(folder / NAME)
        sync_folder(folder)


def _files(data: Mapping[str, object]) -> dict[str, int]:
    found = {str(name): int(rows) for name, rows in data.items()}  # type: ignore[call-overload]
    for name in found:
        folder, _, file = name.partition("/")
        if folder not in {"nodes", "calls"} or not file or "/" in file or "\\" in file or file.startswith("."):
            raise ValueError(f"{name} lies outside the store")
    return found


def sync_folder(folder: Path) -> None:
    """Make what happened in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the store's lock: one append at a time; a killed process lets go of it.

    Systems without ``fcntl`` (Windows) have no lock; there, append from one process at a time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    Manifest.read(folder)  # refuse a folder of something else before anything is put into it
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (folder / _LOCK).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

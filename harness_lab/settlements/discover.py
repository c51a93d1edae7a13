"""Looking for agent records on this computer: counts only, no file is opened."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness_lab.settlements.readers import READERS

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH: Final = 8
"""Folders below a tool's place that are looked into."""

MAX_ENTRIES: Final = 100_000
"""Directory entries that are looked at for each place; then the count is marked as incomplete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Records of one tool in one place.

    Parameters
    ----------
    tool : str
        The tool's name.
    path : Path
        The folder that was looked into.
    files : int
        Record files in it (by name; nothing was opened).
    complete : bool
        False: there are more, counting stopped at ``MAX_ENTRIES``.
    newest : datetime or None
        When the newest of them was last written, UTC; None: none.
    answers : str
        Which questions such records can answer.
    readable : bool
        Whether this version has a reader for the format.
    command : str
        The command that reads them; without a reader it says "reader planned".
    """

    tool: str
    path: Path
    files: int
    complete: bool
    newest: datetime | None
    answers: str
    readable: bool
    command: str

    def __str__(self) -> str:
        more = "" if self.complete else " or more"
        newest = "" if self.newest is None else f", newest {self.newest:%Y-%m-%d}"
        return f"{self.tool}: {self.files:,}{more} file(s) in {self.path}{newest}. {self.answers} {self.command}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    """Where a tool keeps its records, and what they are good for."""

    name: str
    reader: str
    places: tuple[str, ...]
    variable: str = ""
    inside: tuple[str, ...] = ()
    suffixes: tuple[str, ...]
    answers: str
    here: bool = False


_TOOLS: Final = (
    _Tool(
        name="Claude Code",
        reader="claude-code",
        places=(".claude/projects", ".config/claude/projects"),
        variable="CLAUDE_CONFIG_DIR",
        inside=("projects",),
        suffixes=(".jsonl",),
        answers="Tokens of every call: start-up cost, growth of the context, size of runs, how turns ended; no cost.",
    ),
    _Tool(
        name="Codex CLI",
        reader="codex",
        places=(".codex/sessions", ".codex/archived_sessions"),
        variable="CODEX_HOME",
        inside=("sessions", "archived_sessions"),
        suffixes=(".jsonl",),
        answers="Tokens of every call: start-up cost, growth of the context, size of runs; no cost.",
    ),
    _Tool(
        name="pi",
        reader="pi",
        places=(".pi/agent/sessions",),
        variable="PI_AGENT_DIR",
        inside=("sessions",),
        suffixes=(".jsonl",),
        answers="Tokens and cost of every call, stop reasons: floors, ceilings and prices.",
    ),
    _Tool(
        name="Gemini CLI",
        reader="gemini-cli",
        places=(".gemini/tmp",),
        suffixes=(".json", ".jsonl"),
        answers="Tokens of every message: start-up cost and size of runs; no cost.",
    ),
    _Tool(
        name="mini-SWE-agent",
        reader="mini-swe-agent",
        places=(".",),
        suffixes=(".traj.json",),
        answers="Cost, calls, limits and how runs ended: floors, ceilings for a target, which limit was binding.",
        here=True,
    ),
    _Tool(
        name="SWE-agent",
        reader="swe-agent",
        places=(".",),
        suffixes=(".traj",),
        answers="Cost, calls and how runs ended: floors and ceilings per run.",
        here=True,
    ),
)


def discover(home: Path | None = None, *, cwd: Path | None = None) -> list[Found]:
    """Look where agent tools keep their records and count the files.

    No file is opened; links to folders are not followed; depth and number of entries are bounded.

    Parameters
    ----------
    home : Path, optional
        The home directory to look in; None: the user's own, and the places that the tools' environment variables name.
    cwd : Path, optional
        Where to look for records that lie beside the work; None: the current directory.

    Returns
    -------
    list of Found
        One entry for each place with at least one record file.
    """
    readers = {reader.name for reader in READERS}
    found = []
    for tool in _TOOLS:
        for place in _places(tool, home, cwd or Path.cwd()):
            one = _count(tool, place, readable=tool.reader in readers)
            if one is not None:
                found.append(one)
    return found


def _places(tool: _Tool, home: Path | None, cwd: Path) -> Iterator[Path]:
    if tool.here:
        yield from (cwd / place for place in tool.places)
        return
    named = os.environ.get(tool.variable, "") if home is None and tool.variable else ""
    if named:
        roots = [Path(part.strip()).expanduser() for part in named.split(",") if part.strip()]
        yield from (root / inside for root in roots for inside in tool.inside)
        return
    yield from ((home or Path.home()) / place for place in tool.places)


def _count(tool: _Tool, place: Path, *, readable: bool) -> Found | None:
    files, newest, entries = 0, 0.0, 0
    for folder, folders, names in os.walk(place, followlinks=False):
        depth = len(Path(folder).relative_to(place).parts)
        folders[:] = sorted(name for name in folders if _worth(name, tool)) if depth < MAX_DEPTH else []
        entries += len(names) + len(folders)
        matching = [name for name in names if name.endswith(tool.suffixes)]
        files += len(matching)
        newest = max([newest, *(_written(Path(folder, name)) for name in matching)])
        if entries > MAX_ENTRIES:
            break
    if not files:
        return None
    return Found(
        tool=tool.name,
        path=place,
        files=files,
        complete=entries <= MAX_ENTRIES,
        newest=datetime.fromtimestamp(newest, UTC) if newest else None,
        answers=tool.answers,
        readable=readable,
        command=f"harness-lab read {place} --out settlements.parquet" if readable else "(reader planned)",
    )


def _worth(name: str, tool: _Tool) -> bool:
    """Whether a folder is looked into: beside the work, hidden and dependency folders are not."""
    return not tool.here or not (name.startswith(".") or name in {"node_modules", "__pycache__"})


def _written(path: Path) -> float:
    try:
        return path.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0

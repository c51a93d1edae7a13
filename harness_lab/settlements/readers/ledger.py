"""The calls of transcripts, column by column, and what is known of the threads that made them.

A transcript has many calls and few threads (the main conversation and its subagents). Calls are kept as machine
integers, about 150 bytes each, so that a gigabyte of transcripts is a few megabytes here; what becomes of them is in
:mod:`harness_lab.settlements.readers.rollup`.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, Final

from harness_lab.settlements.convert import Unfit

NONE: Final = -1
"""A count or an index that is unknown."""

NO_TIME: Final = -(2**63)
"""A time that is unknown."""

MAX_CALL_NUSD: Final = 4 * 10**15
"""What a call can cost at most: four kinds of tokens, the most of each, at the highest price that is taken."""


@dataclass(slots=True, kw_only=True)
class Thread:
    """One agent's conversation: the main thread of a run, or a subagent.

    Parameters
    ----------
    run, node : str
        Its place; the root of a run is "0".
    parent : str or None
        The node that started it; None for a root.
    source : str
        The file in which it was first met.
    fields : dict
        Columns of the nodes table that hold for every row made of it (agent, repo, client_version ...).
    context : dict
        What its context digest is made of; the size class of the first prompt is added to it.
    hidden : bool
        The record hides what is sent before the task, so the digest is a fingerprint.
    retries : int
        Calls that were tried again.
    """

    run: str
    node: str = "0"
    parent: str | None = None
    source: str
    fields: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    hidden: bool = True
    retries: int = 0


class Names:
    """Texts as small numbers; each is kept once."""

    __slots__ = ("index", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.index: dict[str, int] = {}

    def __call__(self, text: str | None) -> int:
        """Return the number of a text, ``NONE`` for None."""
        if text is None:
            return NONE
        known = self.index.get(text)
        if known is None:
            known = self.index[text] = len(self.texts)
            self.texts.append(text)
        return known


COUNTS: Final = ("fresh", "read", "write", "write_1h", "total", "output", "reasoning", "cost")
PLACES: Final = (
    "thread",
    "start",
    "end",
    "line",
    "served",
    "source",
    "word",
    "tools",
    "lacking",
    "chars",
    "placeholder",
)


class Ledger:
    """Calls, threads, prompts and ends of all files of one format.

    Attributes
    ----------
    fresh, read, write, write_1h, total, output, reasoning, cost : array of int64
        Token counts and nano-dollars of each call, ``NONE`` where unknown.
    thread, start, end, line, served, source, word, tools, lacking, chars, placeholder : array of int64
        Thread, times (nanoseconds, ``NO_TIME`` where unknown), line, names by number, tool calls, whether its usage is
        missing (0 or 1), the length of its answer in characters and whether its output count is a placeholder (both
        ``NONE`` where unknown).
    prompts : dict of str to array
        For each run the times at which a turn began.
    """

    __slots__ = (*COUNTS, *PLACES, "_add_counts", "_add_places", "ends", "names", "prompts", "threads")

    def __init__(self) -> None:
        for column in (*COUNTS, *PLACES):
            setattr(self, column, array("q"))
        self._add_counts = tuple(getattr(self, column).append for column in COUNTS)
        self._add_places = tuple(getattr(self, column).append for column in PLACES)
        self.threads: list[Thread] = []
        self.names = Names()
        self.prompts: dict[str, array[int]] = {}
        self.ends = (array("q"), array("q"), array("q"))

    fresh: array[int]
    read: array[int]
    write: array[int]
    write_1h: array[int]
    total: array[int]
    output: array[int]
    reasoning: array[int]
    cost: array[int]
    thread: array[int]
    start: array[int]
    end: array[int]
    line: array[int]
    served: array[int]
    source: array[int]
    word: array[int]
    tools: array[int]
    lacking: array[int]
    chars: array[int]
    placeholder: array[int]

    def __len__(self) -> int:
        return len(self.thread)

    def open(self, thread: Thread) -> int:
        """Add a thread and return its number."""
        self.threads.append(thread)
        return len(self.threads) - 1

    def call(
        self,
        thread: int,
        *,
        fresh: int | None,
        read: int | None,
        write: int | None,
        output: int | None,
        total: int | None = None,
        write_1h: int | None = None,
        reasoning: int | None = None,
        cost: int | None = None,
        at: int | None = None,
        line: int = 0,
        served: str | None = None,
        source: str | None = None,
        word: str | None = None,
        tools: int = 0,
        chars: int = NONE,
    ) -> int:
        """Add a call and return its number. None is unknown; `total` follows from the parts where they are known.

        Raises
        ------
        Unfit
            If a part is larger than its whole.
        """
        if fresh is not None and read is not None and write is not None:
            total = fresh + read + write
        elif total is None:
            fresh = read = write = write_1h = None
        if write_1h is not None and (write is None or write_1h > write):
            raise Unfit(f"cache writes of one hour {write_1h} exceed all cache writes {write}")
        if reasoning is not None and (output is None or reasoning > output):
            raise Unfit(f"reasoning {reasoning} exceeds output {output}")
        number = len(self.thread)
        counts = (fresh, read, write, write_1h, total, output, reasoning, cost)
        for add, value in zip(self._add_counts, counts, strict=True):
            add(NONE if value is None else value)
        when = NO_TIME if at is None else at
        names = self.names
        missing = total is None or output is None
        places = (thread, when, when, line, names(served), names(source), names(word), tools, missing, chars, NONE)
        for add, value in zip(self._add_places, places, strict=True):
            add(value)
        return number

    def prompt(self, run: str, at: int | None) -> None:
        """Note that a turn began."""
        if at is not None:
            self.prompts.setdefault(run, array("q")).append(at)

    def ended(self, thread: int, at: int | None, word: str) -> None:
        """Note something that ends a turn, or opens one again (``prompt``)."""
        threads, times, words = self.ends
        threads.append(thread)
        times.append(NO_TIME if at is None else at)
        words.append(self.names(word))

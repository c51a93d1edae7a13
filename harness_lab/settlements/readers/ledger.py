"""The calls of transcripts, column by column, and what is known of the threads that made them.

A transcript has many calls and few threads (the main conversation and its subagents). Calls are kept as machine
integers, about 150 bytes each, so that a gigabyte of transcripts is a few megabytes here; what becomes of them is in
:mod:`harness_lab.settlements.readers.rollup`.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.readers.values import short_name

if TYPE_CHECKING:
    import numpy.typing as npt

NONE: Final = -1
"""A count or an index that is unknown."""

NO_TIME: Final = -(2**63)
"""A time that is unknown."""

_MOST_NAMED: Final = 10_000

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


class Names(dict[str, int]):
    """Texts as small numbers; each is kept once.

    Attributes
    ----------
    texts : list of str
        The texts; each is known by its place.
    """

    __slots__ = ("_named", "texts")

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._named = _Named(self)

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self.texts)
        self.texts.append(text)
        return number

    def __call__(self, text: str | None) -> int:
        """Return the number of a text, ``NONE`` for None."""
        return NONE if text is None else self[text]

    def named(self, value: str | None) -> int:
        """Return the number of a name that comes from a record (see :func:`name`), ``NONE`` for what is none."""
        return NONE if value is None else self._named[value]


class _Named(dict[str, int]):
    """Texts of records as the numbers of the names that they are."""

    __slots__ = ("_names",)

    def __init__(self, names: Names) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, value: str) -> int:
        number = self._names(short_name(value))
        if len(self) < _MOST_NAMED:
            self[value] = number
        return number


(
    FRESH, READ, WRITE, WRITE_1H, TOTAL, OUTPUT, REASONING, COST,
    THREAD, START, END, LINE, SERVED, SOURCE, WORD, TOOLS, LACKING, CHARS, PLACEHOLDER, FINAL, SIDE, VERSION,
) = range(22)  # fmt: skip
"""Places of a call's figures in its row.

==========================  =====================================================================================
FRESH ... REASONING, COST   token counts and nano-dollars, ``NONE`` where unknown
THREAD                      number of the thread
START, END                  nanoseconds since 1970, ``NO_TIME`` where unknown
LINE                        line in its file, 0 where the file is one document
SERVED, SOURCE, WORD        numbers of names: model, file, what ended it; ``NONE`` where unknown
TOOLS                       tool calls that it asked for
LACKING                     1 if its usage is unknown
CHARS, PLACEHOLDER          length of the answer; 1 if its output count is a placeholder; ``NONE`` where unknown
FINAL, SIDE, VERSION        for one reader's own use
==========================  =====================================================================================
"""

WIDTH: Final = 22


class Ledger:
    """Calls, threads, prompts and ends of all files of one format.

    Attributes
    ----------
    rows : array of int64
        The calls, one after the other, ``WIDTH`` figures each; a call is known by the place of its first one.
    prompts : dict of str to array
        For each run the times at which a turn began.
    """

    __slots__ = ("ends", "names", "prompts", "rows", "threads")

    def __init__(self) -> None:
        self.rows: array[int] = array("q")
        self.threads: list[Thread] = []
        self.names = Names()
        self.prompts: dict[str, array[int]] = {}
        self.ends: tuple[array[int], array[int], array[int]] = (array("q"), array("q"), array("q"))

    def __len__(self) -> int:
        return len(self.rows) // WIDTH

    def column(self, at: int) -> npt.NDArray[np.int64]:
        """Return one figure of all calls, as a view: no call can be added while it is in use."""
        if not self.rows:
            return np.empty(0, dtype=np.int64)
        return np.frombuffer(self.rows, dtype=np.int64).reshape(-1, WIDTH)[:, at]

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
    ) -> int:
        """Add a call and return its place. None is unknown; `total` follows from the parts where they are known.

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
        place, names = len(self.rows), self.names
        when = NO_TIME if at is None else at
        counts = (fresh, read, write, write_1h, total, output, reasoning, cost)
        self.rows.extend([NONE if value is None else value for value in counts])
        missing = total is None or output is None
        self.rows.extend(
            (
                thread,
                when,
                when,
                line,
                names(served),
                names(source),
                names(word),
                tools,
                missing,
                NONE,
                NONE,
                0,
                0,
                NONE,
            )
        )
        return place

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

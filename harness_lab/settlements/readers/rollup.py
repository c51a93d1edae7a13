"""From calls and threads to rows: one node per thread, or per thread and user turn, and one row per call.

Sums follow the rule of all readers (:func:`harness_lab.settlements.readers.values.totals`): they are over the calls
whose usage is known; where one is not, ``usage_known`` is false and the sums are lower bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness_lab.outcome import Outcome
from harness_lab.settlements.context import canonical, context_digest
from harness_lab.settlements.readers.ends import OPEN, USAGE_LIMIT, End
from harness_lab.settlements.readers.ledger import (
    CHARS,
    COST,
    END,
    FRESH,
    LACKING,
    LINE,
    NO_TIME,
    NONE,
    OUTPUT,
    PLACEHOLDER,
    READ,
    REASONING,
    SERVED,
    SOURCE,
    START,
    THREAD,
    TOOLS,
    TOTAL,
    WORD,
    WRITE,
    WRITE_1H,
    Ledger,
    Thread,
)  # fmt: skip
from harness_lab.settlements.schema import conform_calls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness_lab.settlements.readers.base import ReaderOutput, Record

Ints = npt.NDArray[np.int64]

_COLUMNS: Final = {
    "input_total": TOTAL,
    "input_fresh": FRESH,
    "cache_read": READ,
    "cache_write": WRITE,
    "cache_write_1h": WRITE_1H,
    "output": OUTPUT,
    "reasoning": REASONING,
    "cost_nusd": COST,
}
_CHUNK: Final = 100_000
_STATUS: Final = ["completed", "abandoned", "failed"]


@dataclass(slots=True)
class _Sorted:
    """Every call's and every end's node, by number; nodes are (thread, turn) pairs."""

    thread: Ints
    turn: Ints
    of_call: Ints
    of_end: Ints


def roll_up(
    ledger: Ledger, output: ReaderOutput, *, unit: str, ends: Mapping[str, End], model: str = "served_model"
) -> None:
    """Add the rows of a ledger to a reader's output.

    Parameters
    ----------
    ledger : Ledger
        What was read.
    output : ReaderOutput
        Where the rows go; a node that does not pass the schema is set aside with its calls.
    unit : {"session", "turn"}
        A run is a whole session, or what lies between one prompt and the next.
    ends : mapping of str to End
        What the ledger's words mean; an unknown word leaves the outcome unknown.
    model : {"served_model", "model"}
        Whether the source names the model that answered or the one that was asked for.
    """
    if not len(ledger) and not len(ledger.ends[0]):
        return
    nodes = _nodes(ledger, unit)
    rows = _node_rows(ledger, nodes, unit=unit, ends=ends)
    for row in rows:
        row[model] = row.pop("models")
    taken = np.array([output.node(row) for row in rows], dtype=np.bool_)
    runs = [row["run"] for row in rows]
    names = [row["node"] for row in rows]
    kept = np.flatnonzero(taken[nodes.of_call]) if len(ledger) else np.empty(0, dtype=np.int64)
    number = _numbers(nodes.of_call[kept])
    for at in range(0, len(kept), _CHUNK):
        chosen = kept[at : at + _CHUNK]
        of = nodes.of_call[chosen]
        frame = _call_columns(ledger, chosen, ends)
        frame[model] = _take(ledger.names.texts, ledger.column(SERVED)[chosen])
        frame |= {"run": _take(runs, of), "node": _take(names, of), "call": number[at : at + _CHUNK]}
        frame["kind"] = "model"
        output.calls.add_frame(conform_calls(frame))


def _array(values: Any) -> Ints:
    return np.frombuffer(values, dtype=np.int64) if len(values) else np.empty(0, dtype=np.int64)


def _nodes(ledger: Ledger, unit: str) -> _Sorted:
    """Give every call and every end its node; nodes without a call are kept only if something ended them."""
    thread = np.concatenate([ledger.column(THREAD), _array(ledger.ends[0])])
    times = np.concatenate([ledger.column(START), _array(ledger.ends[1])])
    turn = _turns(ledger, thread, times) if unit == "turn" else np.zeros(len(thread), dtype=np.int64)
    turns = int(turn.max()) + 1
    keys, of = np.unique(thread * turns + turn, return_inverse=True)
    of, calls = of.astype(np.int64), len(ledger)
    counts = np.r_[np.ones(calls, dtype=np.bool_), _array(ledger.ends[2]) != ledger.names("prompt")]
    kept = np.bincount(of[counts], minlength=len(keys)) > 0
    number = np.where(kept, np.cumsum(kept) - 1, NONE)
    return _Sorted(keys[kept] // turns, keys[kept] % turns, number[of[:calls]], number[of[calls:]])


def _turns(ledger: Ledger, thread: Ints, times: Ints) -> Ints:
    """Return the turn of each item: the number of prompts of its run up to its time."""
    turn = np.zeros(len(thread), dtype=np.int64)
    starts = {run: np.unique(_array(prompts)) for run, prompts in ledger.prompts.items()}
    order = np.argsort(thread, kind="stable")
    edges = np.searchsorted(thread[order], np.arange(len(ledger.threads) + 1))
    for number, one in enumerate(ledger.threads):
        mine = order[edges[number] : edges[number + 1]]
        if one.run in starts and len(mine):
            own = times[mine] if one.parent is None else times[mine].min()  # a child is of the turn that started it
            turn[mine] = np.searchsorted(starts[one.run], own, side="right")
    return turn


def _numbers(of: Ints) -> Ints:
    """Return each item's number within its node, from 0, in order."""
    order = np.argsort(of, kind="stable")
    first = np.flatnonzero(np.r_[True, of[order][1:] != of[order][:-1]]) if len(of) else np.empty(0, dtype=np.int64)
    lengths = np.diff(np.r_[first, len(of)])
    number = np.empty(len(of), dtype=np.int64)
    number[order] = np.arange(len(of)) - np.repeat(first, lengths)
    return number


def _take(values: Sequence[str | None], at: Ints) -> Any:
    return pd.array(list(values), dtype="string").take(at, allow_fill=True)


def _masked(values: Ints, unknown: npt.NDArray[np.bool_]) -> Any:
    return pd.arrays.IntegerArray(np.where(unknown, 1, values), unknown)


def _call_columns(ledger: Ledger, chosen: Ints, ends: Mapping[str, End]) -> dict[str, Any]:
    """Return the columns of some calls that follow from the ledger alone."""
    columns: dict[str, Any] = {}
    for name, short in _COLUMNS.items():
        values = ledger.column(short)[chosen]
        columns[name] = _masked(values, values == NONE)
    start, line = ledger.column(START)[chosen], ledger.column(LINE)[chosen]
    columns["start_ns"] = _masked(start, start == NO_TIME)
    columns["line"] = _masked(line, line == 0)
    known = ~columns["cost_nusd"].isna()
    columns["cost_source"] = pd.array(["recorded"], dtype="string").take(np.where(known, 0, -1), allow_fill=True)
    chars, placeholder = ledger.column(CHARS)[chosen], ledger.column(PLACEHOLDER)[chosen]
    columns["output_chars"] = _masked(chars, chars == NONE)
    columns["output_placeholder"] = pd.arrays.BooleanArray(placeholder == 1, placeholder == NONE)
    columns["source"] = _take(ledger.names.texts, ledger.column(SOURCE)[chosen])
    columns["status"] = pd.array(_STATUS, dtype="string").take(_statuses(ledger, chosen, ends))
    return columns


def _statuses(ledger: Ledger, chosen: Ints, ends: Mapping[str, End]) -> Ints:
    """Return for each call 0 (completed), 1 (abandoned by the user) or 2 (failed), by the word that ended it."""
    codes = np.zeros(len(ledger.names.texts) + 1, dtype=np.int64)
    for number, word in enumerate(ledger.names.texts):
        end = ends.get(word, OPEN)
        if end.outcome is Outcome.CANCELLED:
            codes[number] = 1
        elif end.outcome is Outcome.FAILED or end is USAGE_LIMIT:
            codes[number] = 2
    return codes[ledger.column(WORD)[chosen]]  # NONE is the last one, 0


def _node_rows(ledger: Ledger, nodes: _Sorted, *, unit: str, ends: Mapping[str, End]) -> list[Record]:
    count = len(nodes.thread)
    sums = _sums(ledger, nodes.of_call, count) | _times(ledger, nodes, count)
    depths = _depths(ledger)
    last = _last_words(ledger, nodes, count)
    children = _starts(ledger, nodes)
    first_prompt = _first_prompts(ledger)
    rows = []
    for number in range(count):
        thread = ledger.threads[nodes.thread[number]]
        run = f"{thread.run}#{nodes.turn[number]}" if unit == "turn" else thread.run
        row: Record = {
            "run": run,
            "node": thread.node,
            "parent": thread.parent,
            "depth": depths[nodes.thread[number]],
            "record_unit": unit,
            "source": thread.source,
            **_context(thread, first_prompt[nodes.thread[number]]),
            **{name: values[number] for name, values in sums.items()},
            **_end(ledger, last[number], ends),
            "attempts": sums["calls"][number] + thread.retries if unit == "session" else None,
            "starts": children.get((thread.run, thread.node, int(nodes.turn[number])), 0),
            **thread.fields,
        }
        if row["cost_nusd"] is not None:
            row["cost_source"] = "recorded"
        rows.append(row)
    return rows


def _sums(ledger: Ledger, of: Ints, count: int) -> dict[str, list[Any]]:
    """Return what each node's calls add up to; None where nothing is known."""
    made = np.bincount(of, minlength=count)
    lacking = np.bincount(of, weights=ledger.column(LACKING), minlength=count)
    total = ledger.column(TOTAL)
    found: dict[str, list[Any]] = {
        "calls": made.tolist(),
        "usage_known": [bool(missing == 0) if calls else None for missing, calls in zip(lacking, made, strict=True)],
        "tool_calls": _add(ledger.column(TOOLS), of, count).tolist(),
    }
    placeholder = ledger.column(PLACEHOLDER)
    if len(placeholder) and (placeholder != NONE).all():
        found["placeholder_calls"] = _add(placeholder, of, count).tolist()
    for name, short in _COLUMNS.items():
        values = ledger.column(short)
        known = values != NONE
        gaps = np.bincount(of[~known & (total != NONE)], minlength=count)
        some = np.bincount(of[known], minlength=count) > 0
        some &= gaps == 0
        sums = _add(np.where(known, values, 0), of, count).tolist()
        found[name] = [value if there else None for value, there in zip(sums, some, strict=True)]
    return found | {"models": _served(ledger, of, count)}


def _add(values: Ints, of: Ints, count: int) -> Ints:
    """Sum whole numbers per node, exactly."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, of, values)
    return sums


def _times(ledger: Ledger, nodes: _Sorted, count: int) -> dict[str, list[Any]]:
    """Return start and duration: from a node's first call or prompt to its last sign of life."""
    of = np.concatenate([nodes.of_call, nodes.of_call, nodes.of_end])
    times = np.concatenate([ledger.column(START), ledger.column(END), _array(ledger.ends[1])])
    known = (times != NO_TIME) & (of != NONE)
    first, last = np.full(count, 2**62, dtype=np.int64), np.full(count, NO_TIME, dtype=np.int64)
    np.minimum.at(first, of[known], times[known])
    np.maximum.at(last, of[known], times[known])
    some = np.bincount(of[known], minlength=count) > 0
    begun = [int(value) if there else None for value, there in zip(first, some, strict=True)]
    spans = [int(b - a) if there else None for a, b, there in zip(first, last, some, strict=True)]
    return {"start_ns": begun, "duration_ns": spans}


def _depths(ledger: Ledger) -> list[int | None]:
    """Return each thread's level below its root; None where its line of parents does not lead there."""
    place = {(thread.run, thread.node): thread for thread in ledger.threads}
    found: list[int | None] = []
    for thread in ledger.threads:
        depth, one = 0, thread
        while one.parent is not None and depth < len(place):
            above = place.get((one.run, one.parent))
            depth += 1
            if above is None:
                break
            one = above
        lost = one.parent is not None and one.parent != "0"
        found.append(None if lost else depth)
    return found


def _served(ledger: Ledger, of: Ints, count: int) -> list[str | None]:
    served = ledger.column(SERVED)
    width = len(ledger.names.texts) + 1
    models: list[list[str]] = [[] for _ in range(count)]
    for pair in np.unique((of * width + served)[served != NONE]).tolist():
        models[pair // width].append(ledger.names.texts[pair % width])
    return [" + ".join(sorted(found)) or None for found in models]


def _last_words(ledger: Ledger, nodes: _Sorted, count: int) -> Ints:
    """Return the last word of each node, by time; of equal times the one that was noted last."""
    word = np.concatenate([ledger.column(WORD), _array(ledger.ends[2])])
    time = np.concatenate([ledger.column(END), _array(ledger.ends[1])])
    node = np.concatenate([nodes.of_call, nodes.of_end])
    said = np.flatnonzero((word != NONE) & (node != NONE))
    order = said[np.lexsort((said, time[said], node[said]))]
    last = np.full(count, NONE, dtype=np.int64)
    last[node[order]] = word[order]  # of repeated indices the last assignment stays
    return last


def _end(ledger: Ledger, last: int, ends: Mapping[str, End]) -> Record:
    word = None if last == NONE else ledger.names.texts[last]
    end = ends.get(word or "", OPEN)
    return {"outcome": end.outcome, "cause": end.cause, "stopped_by": end.code, "source_status": word}


def _starts(ledger: Ledger, nodes: _Sorted) -> dict[tuple[str, str, int], int]:
    """Count the children of each (run, node, turn)."""
    found: dict[tuple[str, str, int], int] = {}
    for number, turn in zip(nodes.thread.tolist(), nodes.turn.tolist(), strict=True):
        thread = ledger.threads[number]
        if thread.parent is not None:
            key = (thread.run, thread.parent, turn)
            found[key] = found.get(key, 0) + 1
    return found


def _first_prompts(ledger: Ledger) -> Ints:
    """Return the prompt tokens of each thread's first call, ``NONE`` where unknown."""
    thread, total, start = ledger.column(THREAD), ledger.column(TOTAL), ledger.column(START)
    first = np.full(len(ledger.threads), NONE, dtype=np.int64)
    order = np.lexsort((np.arange(len(thread)), start, thread))[::-1]
    first[thread[order]] = total[order]
    return first


def _context(thread: Thread, first_prompt: int) -> Record:
    fields = {**thread.context, "first_prompt": size_class(int(first_prompt))}
    if not thread.hidden:
        del fields["first_prompt"]
    return {
        "context": context_digest(fields),
        "context_fields": canonical(fields),
        "context_inferred": thread.hidden,
    }


def size_class(tokens: int) -> str | None:
    """Return the size class of a first prompt: half an octave wide, so that set-ups differ and tasks hardly do.

    Examples
    --------
    >>> size_class(43_500)
    '32768-46340'
    """
    if tokens <= 0:
        return None
    half = int(np.floor(2 * np.log2(tokens)))
    low, high = (int(np.ceil(2 ** (step / 2))) for step in (half, half + 1))
    return f"{low}-{high - 1}"

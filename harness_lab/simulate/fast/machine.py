"""The fast engine's loop: the kernel's total order of events, compiled.

Order and ranks are those of :mod:`harness_lab.simulate.kernel`: cancellations, then what became ready, then the heap,
then hand-overs, then starts.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba

from harness_lab.simulate.fast import agents, books, nodes, policy
from harness_lab.simulate.fast.jit import OPTIONS, SHARED_RULES, jit
from harness_lab.simulate.fast.layout import (
    ALIVE,
    CANCEL,
    CLOSED,
    DONE,
    EPOCH,
    EXPIRE,
    FAULT,
    HANDOVER,
    HEAP,
    LEAK,
    LINE,
    NOTHING,
    NOW,
    ORDER,
    READY,
    ROOT,
    ROW,
    SLEEP,
    STARTS,
    STATE,
    STUCK,
    URGENT,
    WHEN,
    ZERO,
)
from harness_lab.simulate.fast.lines import pop_heap, pop_line, stands
from harness_lab.simulate.fast.words import run_key
from harness_lab.simulate.kernel import MAX_EVENTS_AT_ONE_INSTANT

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from harness_lab.simulate.fast.jit import Ints


@jit
def _next(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints) -> tuple[int, int]:
    """Return the node that goes on next and its epoch; whatever is no node's turn is done on the way. -1: none."""
    while True:
        if stands(w, URGENT):
            return pop_line(w, URGENT)
        if stands(w, READY):
            return pop_line(w, READY)
        if w[HEAP] > 0 and (h[0, WHEN] == w[NOW] or not (stands(w, HANDOVER) or stands(w, STARTS))):
            i, epoch = _happen(w, n, a, h, c)
            if i >= 0:
                return i, epoch
        elif stands(w, HANDOVER):
            return pop_line(w, HANDOVER)
        elif stands(w, STARTS):
            return pop_line(w, STARTS)
        else:
            return NOTHING, ZERO


@jit
def _happen(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints) -> tuple[int, int]:
    """Take what is next on the heap: the node that wakes and its epoch, or -1 when it was a timer, or out of date."""
    when, i, what = pop_heap(w, h)
    kind, epoch = what & 3, what >> 2
    if kind == EXPIRE:
        if n[i, STATE] != DONE:
            w[NOW] = when
            nodes.expire(w, n, i)
    elif n[i, EPOCH] == epoch:
        w[NOW] = when
        if kind == SLEEP:
            return i, epoch
        policy.tick(w, n, a, c)
    return NOTHING, ZERO


@jit
def _simulate_one(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, key: int) -> None:
    w[:LINE] = 0
    w[ORDER + 1 : FAULT + 1] = 0
    nodes.born(w, n, NOTHING, NOTHING, c[ROOT], ZERO, ZERO, key)
    instant, since = NOTHING, ZERO
    while w[FAULT] == 0:
        i, epoch = _next(w, n, a, h, c)
        if i < 0:
            break
        if n[i, EPOCH] != epoch or n[i, STATE] == DONE:
            continue
        since = since + 1 if w[NOW] == instant else 0
        instant = w[NOW]
        if since > MAX_EVENTS_AT_ONE_INSTANT:
            w[FAULT] = STUCK
        n[i, EPOCH] += 1
        if n[i, CANCEL]:
            agents.stopped(w, n, a, c, t, i)
        else:
            agents.step(w, n, a, h, c, t, i)
    if w[FAULT] == 0 and w[ALIVE] > 0:
        w[FAULT] = STUCK
    if w[FAULT] == 0 and not books.conserved(w, n, a, c):
        w[FAULT] = LEAK


@jit
def _write(w: Ints, n: Ints, run: int, out: Ints, row: int) -> None:
    for place in range(w[CLOSED]):
        i = w[w[ORDER] + place]
        out[row + place, 0] = run
        for cell in range(len(ROW)):
            out[row + place, cell + 1] = n[i, ROW[cell]]


def _block(digest: str) -> Callable[..., Any]:
    """Make the entry; what it was compiled from is part of it, so that a cached machine is never an older one's."""

    def block(
        w: Ints,
        n: Ints,
        a: Ints,
        h: Ints,
        c: Ints,
        t: Ints,
        seed: np.uint64,
        runs: Ints,
        first: int,
        out: Ints,
    ) -> tuple[int, int]:
        """Simulate runs from `first` on; return the first that is not done and the rows written."""
        rows = ZERO
        if len(digest) == 0:
            return first, rows
        for place in range(first, len(runs)):
            _simulate_one(w, n, a, h, c, t, run_key(seed, runs[place]))
            if w[FAULT] != 0 or rows + w[CLOSED] > out.shape[0]:
                return place, rows
            _write(w, n, runs[place], out, rows)
            rows += w[CLOSED]
        return len(runs), rows

    return block


@cache
def machine() -> Callable[..., Any]:
    """Return the compiled entry; compiled once on this machine for each version of its sources, in half a minute."""
    entry = _block(_digest())
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, **OPTIONS)(entry)
    except RuntimeError:  # nowhere to keep it: neither beside the program nor in the user's cache
        compiled = numba.njit(**OPTIONS)(entry)
    return compiled


def _digest() -> str:
    here = Path(__file__).parent
    sources = [*sorted(here.glob("*.py")), *SHARED_RULES]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()

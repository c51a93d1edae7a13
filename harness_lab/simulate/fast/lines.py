"""The heap and the four lines of the kernel, on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.agents.ports import COMPLETION, DEADLINE
from harness_lab.simulate.fast.jit import jit
from harness_lab.simulate.fast.layout import (
    EPOCH,
    EXPIRE,
    FAULT,
    FULL,
    HANDOVER,
    HEAP,
    LINE,
    LINES,
    NOW,
    RANK_SEQ,
    READY,
    SEQ,
    SLEEP,
    STARTS,
    TICK,
    URGENT,
    WHAT,
    WHEN,
    WHO,
    ZERO,
    int64,
)

if TYPE_CHECKING:
    from harness_lab.simulate.fast.jit import Ints

_RANK = 56
_COMPLETION, _DEADLINE = int64(COMPLETION), int64(DEADLINE)


@jit
def push_line(w: Ints, n: Ints, line: int, i: int) -> None:
    """Put a node at the end of a line, with the epoch for which it stands there."""
    tail = w[line + 1]
    if tail - w[line] >= w[LINE]:
        w[FAULT] = FULL
        return
    place = w[LINES] + 2 * (w[LINE] * ((line - URGENT) >> 1) + tail % w[LINE])
    w[place] = i
    w[place + 1] = n[i, EPOCH]
    w[line + 1] = tail + 1


@jit
def pop_line(w: Ints, line: int) -> tuple[int, int]:
    """Take the first of a line: a node, and the epoch for which it stood there."""
    head = w[line]
    place = w[LINES] + 2 * (w[LINE] * ((line - URGENT) >> 1) + head % w[LINE])
    w[line] = head + 1
    return w[place], w[place + 1]


@jit
def stands(w: Ints, line: int) -> bool:
    """Whether anyone stands in a line."""
    return w[line] < w[line + 1]


@jit
def ready(w: Ints, n: Ints, i: int) -> None:
    """Wake a node at this instant."""
    push_line(w, n, READY, i)


@jit
def hand_over(w: Ints, n: Ints, i: int) -> None:
    """Wake a node after the completions of this instant."""
    push_line(w, n, HANDOVER, i)


@jit
def start(w: Ints, n: Ints, i: int) -> None:
    """Let a new node begin after all that is due at this instant."""
    push_line(w, n, STARTS, i)


@jit
def sleep(w: Ints, n: Ints, h: Ints, i: int, duration: int) -> None:
    """Wake a node after some nanoseconds."""
    _push(w, h, w[NOW] + max(duration, 0), _COMPLETION, i, n[i, EPOCH] << 2 | SLEEP)


@jit
def tick_at(w: Ints, n: Ints, h: Ints, i: int, when: int) -> None:
    """Tell the policy at an instant that time went by, if the node still waits in its queue then."""
    _push(w, h, max(when, w[NOW]), _DEADLINE, i, n[i, EPOCH] << 2 | TICK)


@jit
def expire_at(w: Ints, h: Ints, i: int, when: int) -> None:
    """Stop a node at an instant, if it has not ended then."""
    _push(w, h, max(when, w[NOW]), _DEADLINE, i, EXPIRE)


@jit
def _push(w: Ints, h: Ints, when: int, rank: int, who: int, what: int) -> None:
    place = w[HEAP]
    if place >= h.shape[0]:
        w[FAULT] = FULL
        return
    w[HEAP] = place + 1
    w[SEQ] += 1
    order = rank << _RANK | w[SEQ]
    while place > 0:
        above = (place - 1) >> 1
        if h[above, WHEN] < when or (h[above, WHEN] == when and h[above, RANK_SEQ] < order):
            break
        _move(h, above, place)
        place = above
    _set(h, place, when, order, who, what)


@jit
def pop_heap(w: Ints, h: Ints) -> tuple[int, int, int]:
    """Take what is to happen next: its instant, the node, and what."""
    when, who, what = h[0, WHEN], h[0, WHO], h[0, WHAT]
    last = w[HEAP] - 1
    w[HEAP] = last
    if last > 0:
        _sift(h, last)
    return when, who, what


@jit
def _sift(h: Ints, last: int) -> None:
    when, order, who, what = h[last, WHEN], h[last, RANK_SEQ], h[last, WHO], h[last, WHAT]
    place = ZERO
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        if below + 1 < last and _before(h, below + 1, h[below, WHEN], h[below, RANK_SEQ]):
            below += 1
        if not _before(h, below, when, order):
            break
        _move(h, below, place)
        place = below
    _set(h, place, when, order, who, what)


@jit
def _before(h: Ints, place: int, when: int, order: int) -> bool:
    return h[place, WHEN] < when or (h[place, WHEN] == when and h[place, RANK_SEQ] < order)


@jit
def _move(h: Ints, place: int, to: int) -> None:
    _set(h, to, h[place, WHEN], h[place, RANK_SEQ], h[place, WHO], h[place, WHAT])


@jit
def _set(h: Ints, place: int, when: int, order: int, who: int, what: int) -> None:
    h[place, WHEN] = when
    h[place, RANK_SEQ] = order
    h[place, WHO] = who
    h[place, WHAT] = what

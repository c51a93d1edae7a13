"""The policy of the fast engine: ledger, pool and tree limits composed, with one queue.

The order of questions is that of :class:`harness_lab.policies.compose.Composed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.outcome import Code
from harness_lab.simulate.fast import books
from harness_lab.simulate.fast.jit import jit
from harness_lab.simulate.fast.layout import (
    ANSWER,
    BLOCKER,
    FAULT,
    FULL,
    MAX_WAIT,
    NO,
    NOTHING,
    NOW,
    OPEN,
    PARENT,
    QUEUE,
    QUEUED,
    SETTLED,
    STATE,
    STEP_QUEUED,
    TICKET,
    TREE_KIND,
    UNTIL,
    WAITING,
    YES,
    ZERO,
    code_number,
)
from harness_lab.simulate.fast.lines import hand_over

if TYPE_CHECKING:
    from harness_lab.simulate.fast.jit import Ints

GRANTED, WAIT = ZERO, NOTHING
_TOO_LONG = code_number(Code.WAITED_TOO_LONG)


@jit
def ask(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spawn: bool) -> int:
    """Answer a node's question: granted, wait, or the code of the first limit that falls short."""
    short = books.short(w, n, a, c, i, spawn)
    if short != 0:
        if c[MAX_WAIT] >= 0 and short < books.NEVER:
            return _wait(w, n, c, i, books.blocker(w, n, a, c, i, spawn))
        return short & (books.NEVER - 1)
    if spawn and w[QUEUED] > 0 and c[MAX_WAIT] >= 0 and _behind(w, n, i, w[QUEUED]):
        return _wait(w, n, c, i, NOTHING)
    if spawn:
        books.hold(w, n, a, c, i)
    return GRANTED


@jit
def _wait(w: Ints, n: Ints, c: Ints, i: int, blocker: int) -> int:
    place = w[QUEUE] + w[QUEUED]
    if place >= w.shape[0]:
        w[FAULT] = FULL
        return WAIT
    w[place] = i
    w[QUEUED] += 1
    n[i, TICKET] = WAITING
    n[i, BLOCKER] = blocker
    n[i, UNTIL] = w[NOW] + c[MAX_WAIT]
    return WAIT


@jit
def _behind(w: Ints, n: Ints, i: int, length: int) -> bool:
    """Whether a sibling stands in the queue: children of one parent are served in order."""
    for place in range(w[QUEUE], w[QUEUE] + length):
        other = w[place]
        if n[other, STATE] != STEP_QUEUED and n[other, PARENT] == n[i, PARENT]:
            return True
    return False


@jit
def charge(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spent: tuple[int, ...], bound: tuple[int, ...]) -> None:
    """Settle a call of a node, by channel; -1: unknown."""
    books.settle_call(w, n, a, c, i, spent, bound)
    wake(w, n, a, c, YES)


@jit
def close(w: Ints, n: Ints, a: Ints, c: Ints, i: int, unsent: bool) -> None:
    """End a node that was granted."""
    books.settle_node(w, n, a, c, i, unsent)
    wake(w, n, a, c, NO)


@jit
def withdraw(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spawn: bool) -> None:
    """Take back a question whose asker was cancelled while it waited, or in the instant in which it was granted."""
    state = n[i, TICKET]
    n[i, TICKET] = SETTLED
    if state == WAITING:
        _leave(w, i)
        wake(w, n, a, c, NO)
    elif state == OPEN and spawn:
        close(w, n, a, c, i, YES)
    elif state == OPEN:
        wake(w, n, a, c, YES)


@jit
def _leave(w: Ints, i: int) -> None:
    """Take a node out of the queue."""
    first, kept = w[QUEUE], ZERO
    for place in range(w[QUEUED]):
        if w[first + place] != i:
            w[first + kept] = w[first + place]
            kept += 1
    w[QUEUED] = kept


@jit
def tick(w: Ints, n: Ints, a: Ints, c: Ints) -> None:
    """Refuse those who waited too long."""
    first, kept, length = w[QUEUE], ZERO, w[QUEUED]
    for place in range(length):
        i = w[first + place]
        if n[i, UNTIL] <= w[NOW]:
            _answer(w, n, i, _TOO_LONG)
        else:
            w[first + kept] = i
            kept += 1
    w[QUEUED] = kept
    if kept < length:
        wake(w, n, a, c, NO)


@jit
def wake(w: Ints, n: Ints, a: Ints, c: Ints, of_step: bool) -> None:
    """Answer those who wait in order of arrival; whoever has to go on waiting holds up only its own line.

    Whoever waits is asked about again when the limit that it waits for has moved: then by every module. The end of a
    call moves the ledger and the pool.
    """
    first, kept = w[QUEUE], ZERO
    for place in range(w[QUEUED]):
        i = w[first + place]
        unmoved = of_step and n[i, BLOCKER] >= 0 and c[n[i, BLOCKER]] == TREE_KIND
        if unmoved or _blocked(w, n, i, kept) or not _answered(w, n, a, c, i):
            w[first + kept] = i
            kept += 1
    w[QUEUED] = kept


@jit
def _blocked(w: Ints, n: Ints, i: int, kept: int) -> bool:
    return n[i, STATE] != STEP_QUEUED and kept > 0 and _behind(w, n, i, kept)


@jit
def _answered(w: Ints, n: Ints, a: Ints, c: Ints, i: int) -> bool:
    spawn, blocker = n[i, STATE] != STEP_QUEUED, n[i, BLOCKER]
    if blocker >= 0:
        held_back = books.short_of(w, n, a, c, i, spawn, blocker)
        if held_back != 0 and held_back < books.NEVER:
            return False
    short = books.short(w, n, a, c, i, spawn)
    if short != 0 and short < books.NEVER:
        n[i, BLOCKER] = books.blocker(w, n, a, c, i, spawn)
        return False
    if short == 0 and spawn:
        books.hold(w, n, a, c, i)
    _answer(w, n, i, short & (books.NEVER - 1))
    return True


@jit
def _answer(w: Ints, n: Ints, i: int, code: int) -> None:
    n[i, TICKET] = OPEN if code == 0 else SETTLED
    n[i, ANSWER] = code
    hand_over(w, n, i)

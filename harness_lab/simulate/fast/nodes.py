"""The nodes of the fast engine: how they begin, are stopped and end, and what is written down about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.simulate.fast import books, policy
from harness_lab.simulate.fast.jit import jit
from harness_lab.simulate.fast.layout import (
    AGENT,
    ALIVE,
    BORN_AFTER,
    CANCEL,
    CANCELLING,
    CAUSE,
    CAUSES,
    CLOSED,
    DEADLINE,
    DEPTH,
    DONE,
    ENDED,
    EPOCH,
    FAULT,
    FIRED,
    FULL,
    HOW,
    KEY,
    LEFT,
    MODEL,
    NO,
    NODE,
    NODES,
    NOW,
    ORDER,
    OUTCOMES,
    OVERSPENT,
    PARENT,
    RULE,
    SLOT,
    STATE,
    STOPPED_BY,
    SUBTREE,
    UNBORN,
    URGENT,
    code_number,
    int64,
)
from harness_lab.simulate.fast.lines import push_line, ready, start

if TYPE_CHECKING:
    from harness_lab.simulate.fast.jit import Ints

COMPLETED, EXHAUSTED, TIMED_OUT, CANCELLED, HAS_FAILED, DENIED = (
    int64(OUTCOMES.index(o))
    for o in (
        Outcome.COMPLETED,
        Outcome.EXHAUSTED,
        Outcome.TIMED_OUT,
        Outcome.CANCELLED,
        Outcome.FAILED,
        Outcome.DENIED,
    )
)
BY_LIMIT, BY_MODEL, BY_INFRASTRUCTURE, BY_NONE = (
    int64(CAUSES.index(cause)) for cause in (Cause.LIMIT, Cause.MODEL, Cause.INFRASTRUCTURE, Cause.NONE)
)
AT_DEADLINE, PARENT_ENDED = map(code_number, (Code.DEADLINE, Code.PARENT_ENDED))


@jit
def born(w: Ints, n: Ints, parent: int, rule: int, agent: int, after: int, slot: int, key: int) -> int:
    """Make a node that begins at this instant; -1 when there is no room."""
    i = w[NODES]
    if i >= n.shape[0]:
        w[FAULT] = FULL
        return -1
    w[NODES] = i + 1
    w[ALIVE] += 1
    n[i] = 0
    n[i, STATE] = UNBORN
    n[i, NODE] = i
    n[i, PARENT] = parent
    n[i, RULE] = rule
    n[i, AGENT] = agent
    n[i, DEPTH] = 0 if parent < 0 else n[parent, DEPTH] + 1
    n[i, BORN_AFTER] = after
    n[i, SLOT] = slot
    n[i, KEY] = key
    n[i, MODEL] = -1
    n[i, DEADLINE] = -1 if parent < 0 else n[parent, DEADLINE]
    start(w, n, i)
    return i


@jit
def cancel(w: Ints, n: Ints, i: int) -> None:
    """Stop a node where it waits, before anything else happens."""
    if n[i, STATE] != DONE:
        n[i, EPOCH] += 1
        n[i, CANCELLING] += 1
        n[i, CANCEL] = 1
        push_line(w, n, URGENT, i)


@jit
def expire(w: Ints, n: Ints, i: int) -> None:
    """Stop a node at its deadline."""
    n[i, FIRED] = 1
    cancel(w, n, i)


@jit
def die(w: Ints, n: Ints, a: Ints, c: Ints, i: int) -> None:
    """End a node that was stopped."""
    if n[i, FIRED] and n[i, CANCELLING] <= 1:
        end(w, n, a, c, i, TIMED_OUT, AT_DEADLINE, BY_LIMIT)
    else:
        end(w, n, a, c, i, CANCELLED, PARENT_ENDED, BY_LIMIT)


@jit
def end(w: Ints, n: Ints, a: Ints, c: Ints, i: int, how: int, code: int, cause: int) -> None:
    """End a node that was granted."""
    row(w, n, c, i, how, code, cause)
    policy.close(w, n, a, c, i, NO)
    gone(w, n, i)


@jit
def row(w: Ints, n: Ints, c: Ints, i: int, how: int, code: int, cause: int) -> None:
    """Write down how a node ended, and count what it and all below it used in its parent's subtree."""
    n[i, ENDED] = w[NOW]
    n[i, HOW] = how
    n[i, STOPPED_BY] = code
    n[i, CAUSE] = cause
    parent = n[i, PARENT]
    for channel in range(books.CHANNEL_COUNT):
        used, asked = n[i, SUBTREE + channel], books.ask_of(n, c, i, channel)
        if 0 <= asked < used:
            n[i, OVERSPENT] = 1
        if parent >= 0:
            n[parent, SUBTREE + channel] += used
    w[w[ORDER] + w[CLOSED]] = i
    w[CLOSED] += 1


@jit
def gone(w: Ints, n: Ints, i: int) -> None:
    """Take a node out; its parent goes on once all are gone."""
    n[i, STATE] = DONE
    w[ALIVE] -= 1
    parent = n[i, PARENT]
    if parent >= 0:
        n[parent, LEFT] -= 1
        if n[parent, LEFT] == 0:
            ready(w, n, parent)

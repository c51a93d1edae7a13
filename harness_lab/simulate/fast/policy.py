"""The policy of the fast engine: ledger, pool and tree limits composed, with one queue.

The order of questions is that of :class:`harness_lab.policies.compose.Composed`; each decision is the modules' own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.outcome import CALLS, COST, Code
from harness_lab.simulate.fast.jit import (
    could_fit,
    earlier,
    first_reached,
    fits,
    jit,
    nested,
    reached,
    too_deep,
    used_up,
)
from harness_lab.simulate.fast.layout import (
    ABOVE,
    ACCOUNT,
    ACCOUNTS,
    ACTIVE,
    ANSWER,
    ASKED,
    AWAITED,
    COST_NUSD,
    COST_OF,
    DEADLINE,
    DEPTH,
    FAULT,
    FROM_ARRIVAL,
    FULL,
    GIVES_BACK,
    HELD,
    LEDGER_COST,
    LEDGER_HOLDS,
    LEDGER_KIND,
    LEDGER_STEPS,
    LEDGER_TIME,
    LENDS,
    LIMIT,
    MAX_CONCURRENT,
    MAX_COST,
    MAX_DEPTH,
    MAX_STARTS,
    MAX_STEPS,
    MAX_TIME,
    MAX_WAIT,
    MODULES,
    NODES,
    NOTHING,
    NOW,
    ONE,
    OPEN,
    PARENT,
    PER_PARENT,
    POOL,
    POOL_HOLDS,
    POOL_KIND,
    POOL_RECORDS,
    QUEUE,
    QUEUED,
    ROOT_ASK,
    RULE,
    RULE_ASK,
    RULE_SIZE,
    RULES,
    RUNNING,
    SETTLED,
    SPENT,
    STARTED_CHILDREN,
    STATE,
    STEP_QUEUED,
    STEPS,
    TICKET,
    TIMEOUT,
    TREE_KIND,
    UNKNOWN,
    UNMETERED,
    UNTIL,
    WAITING,
    YES,
    ZERO,
    code_number,
    int64,
)
from harness_lab.simulate.fast.lines import hand_over

if TYPE_CHECKING:
    from harness_lab.simulate.fast.jit import Ints

GRANTED, WAIT = ZERO, NOTHING
CHANNEL_COUNT = 5
CALLS_CHANNEL: int = int64(CALLS)
COST_CHANNEL: int = int64(COST)
_UNKNOWN_SPEND, _BUDGET = (code_number(c) for c in (Code.SPEND_UNKNOWN, Code.BUDGET_EXHAUSTED))
_REACHED = (
    ZERO,
    code_number(Code.STEPS_EXHAUSTED),
    _UNKNOWN_SPEND,
    code_number(Code.COST_EXHAUSTED),
    code_number(Code.TIME_EXHAUSTED),
)
"""Codes by the number that the ledger's rule returns."""
_DEPTH, _STARTS, _CONCURRENT = (code_number(c) for c in (Code.MAX_DEPTH, Code.MAX_CALLS, Code.MAX_CONCURRENT))
_TOO_LONG = code_number(Code.WAITED_TOO_LONG)
_NEVER = 1 << 32
"""Added to a code of a shortfall that waiting does not help."""


@jit
def ask_of(n: Ints, c: Ints, i: int, channel: int) -> int:
    """Return what a node asked for in a channel; -1: nothing."""
    rule = n[i, RULE]
    if rule < 0:
        return c[ROOT_ASK + channel]
    return c[c[RULES] + rule * RULE_SIZE + RULE_ASK + channel]


@jit
def ask(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spawn: bool) -> int:
    """Answer a node's question: granted, wait, or the code of the first limit that falls short."""
    short = _short(w, n, a, c, i, spawn)
    if short != 0:
        if c[MAX_WAIT] >= 0 and short < _NEVER:
            return _wait(w, n, c, i)
        return short & (_NEVER - 1)
    if spawn and w[QUEUED] > 0 and c[MAX_WAIT] >= 0 and _behind(w, n, i, w[QUEUED]):
        return _wait(w, n, c, i)
    if spawn:
        _hold(w, n, a, c, i)
    return GRANTED


@jit
def _wait(w: Ints, n: Ints, c: Ints, i: int) -> int:
    place = w[QUEUE] + w[QUEUED]
    if place >= w.shape[0]:
        w[FAULT] = FULL
        return WAIT
    w[place] = i
    w[QUEUED] += 1
    n[i, TICKET] = WAITING
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
def _short(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spawn: bool) -> int:
    """Return the code of the first shortfall, plus `_NEVER` unless all of them are helped by waiting; 0: none."""
    node = n[i, PARENT] if spawn else i
    if node < 0:
        return 0
    code, never = ZERO, ZERO
    for place in range(MODULES, MODULES + 3):
        kind, found = c[place], ZERO
        if kind == LEDGER_KIND:
            found = _ledger(w, n, node)
        elif kind == POOL_KIND:
            found = _pool(n, a, c, i, node, spawn)
        elif kind == TREE_KIND and spawn:
            found = _tree(w, n, c, node)
        if found != 0:
            never |= found & _NEVER
            if code == 0:
                code = found & (_NEVER - 1)
    return code | never


@jit
def _ledger(w: Ints, n: Ints, node: int) -> int:
    found = first_reached(
        n[node, MAX_STEPS], w[STEPS], n[node, MAX_COST], w[COST_NUSD], w[UNMETERED], n[node, MAX_TIME], w[NOW]
    )
    return _REACHED[found] | _NEVER if found > 0 else ZERO


@jit
def _pool(n: Ints, a: Ints, c: Ints, i: int, node: int, spawn: bool) -> int:
    code, never = ZERO, ZERO
    for channel in range(CHANNEL_COUNT):
        account = n[node, ACCOUNT + channel]
        if a[account, LIMIT] < 0:
            continue
        asked = ask_of(n, c, i, channel) if spawn else NOTHING
        found = _fits(a, account, asked, channel) if spawn else _left(a, account, channel)
        if not spawn and c[POOL_RECORDS] and found != _UNKNOWN_SPEND | _NEVER:
            found = 0
        if found != 0:
            never |= found & _NEVER
            if code == 0:
                code = found & (_NEVER - 1)
    return code | never


@jit
def _fits(a: Ints, account: int, asked: int, channel: int) -> int:
    if channel == COST_CHANNEL and a[account, UNKNOWN] > 0:
        return _UNKNOWN_SPEND | _NEVER
    if asked < 0 or fits(a[account, LIMIT], a[account, SPENT], a[account, HELD], asked):
        return 0
    return _BUDGET if could_fit(a[account, LIMIT], a[account, SPENT], asked) else _BUDGET | _NEVER


@jit
def _left(a: Ints, account: int, channel: int) -> int:
    if used_up(a[account, LIMIT], a[account, SPENT] + a[account, HELD]):
        return _BUDGET if a[account, SPENT] < a[account, LIMIT] else _BUDGET | _NEVER
    if channel == COST_CHANNEL and a[account, UNKNOWN] > 0:
        return _UNKNOWN_SPEND | _NEVER
    return 0


@jit
def _tree(w: Ints, n: Ints, c: Ints, node: int) -> int:
    code, never = ZERO, ZERO
    if reached(_active(w, n, c, node), c[MAX_CONCURRENT]):
        code = _CONCURRENT
        never = _NEVER if c[MAX_CONCURRENT] == 0 else 0
    if reached(w[STARTED_CHILDREN], c[MAX_STARTS]):
        code, never = _STARTS, _NEVER
    if too_deep(n[node, DEPTH] + 1, c[MAX_DEPTH]):
        code, never = _DEPTH, _NEVER
    return code | never


@jit
def _active(w: Ints, n: Ints, c: Ints, node: int) -> int:
    if c[PER_PARENT]:
        return n[node, ACTIVE]
    lent = c[LENDS] and n[node, PARENT] >= 0 and n[node, AWAITED] == 0
    return w[RUNNING] - (1 if lent else 0)


@jit
def _hold(w: Ints, n: Ints, a: Ints, c: Ints, i: int) -> None:
    parent = n[i, PARENT]
    for place in range(MODULES, MODULES + 3):
        kind = c[place]
        if kind == LEDGER_KIND:
            _hold_ledger(w, n, c, i, parent)
        elif kind == POOL_KIND:
            _hold_pool(w, n, a, c, i, parent)
        elif kind == TREE_KIND and parent >= 0:
            _hold_slot(w, n, c, i, parent)


@jit
def _hold_ledger(w: Ints, n: Ints, c: Ints, i: int, parent: int) -> None:
    if parent < 0:
        n[i, MAX_STEPS] = c[LEDGER_STEPS]
        n[i, MAX_COST] = c[LEDGER_COST]
        n[i, MAX_TIME] = c[LEDGER_TIME]
        return
    n[i, MAX_STEPS] = nested(n[parent, MAX_STEPS], w[STEPS], ask_of(n, c, i, CALLS_CHANNEL))
    n[i, MAX_COST] = nested(n[parent, MAX_COST], w[COST_NUSD], ask_of(n, c, i, COST_CHANNEL))
    n[i, MAX_TIME] = nested(n[parent, MAX_TIME], w[NOW], NOTHING)


@jit
def _hold_pool(w: Ints, n: Ints, a: Ints, c: Ints, i: int, parent: int) -> None:
    for channel in range(CHANNEL_COUNT):
        above = n[parent, ACCOUNT + channel] if parent >= 0 else NOTHING
        asked = ask_of(n, c, i, channel) if parent >= 0 else c[POOL + channel]
        if parent >= 0 and asked < 0:
            n[i, ACCOUNT + channel] = above
            continue
        if parent >= 0:
            a[above, HELD] += asked
        account = w[ACCOUNTS]
        if account >= a.shape[0]:
            w[FAULT] = FULL
            return
        w[ACCOUNTS] = account + 1
        a[account, LIMIT] = asked
        a[account, HELD] = 0
        a[account, SPENT] = 0
        a[account, UNKNOWN] = 0
        a[account, ABOVE] = above
        n[i, ACCOUNT + channel] = account


@jit
def _hold_slot(w: Ints, n: Ints, c: Ints, i: int, parent: int) -> None:
    since = n[i, ASKED] if c[FROM_ARRIVAL] else w[NOW]
    own = since + c[TIMEOUT] if c[TIMEOUT] >= 0 else NOTHING
    inherited = NOTHING if n[parent, DEADLINE] < 0 else max(since, n[parent, DEADLINE])
    n[i, DEADLINE] = earlier(own, inherited)
    w[STARTED_CHILDREN] += 1
    n[parent, ACTIVE] += 1
    _lend(w, n, c, parent, ONE)
    w[RUNNING] += 1


@jit
def _lend(w: Ints, n: Ints, c: Ints, parent: int, change: int) -> None:
    before = n[parent, AWAITED]
    after = before + change
    n[parent, AWAITED] = after
    if c[LENDS] and n[parent, PARENT] >= 0 and (before == 0 or after == 0):
        w[RUNNING] -= change


@jit
def charge(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spent: tuple[int, ...], bound: tuple[int, ...]) -> None:
    """Settle a call of a node, by channel; -1: unknown."""
    for place in range(MODULES, MODULES + 3):
        kind = c[place]
        if kind == LEDGER_KIND:
            w[STEPS] += spent[CALLS_CHANNEL]
            cost = spent[COST_CHANNEL]
            if cost < 0 and c[LEDGER_HOLDS]:
                cost = bound[COST_CHANNEL]
            if cost < 0:
                w[UNMETERED] += 1
            else:
                w[COST_NUSD] += cost
        elif kind == POOL_KIND:
            _meter(n, a, c, i, spent, bound)
    wake(w, n, a, c)


@jit
def _meter(n: Ints, a: Ints, c: Ints, i: int, spent: tuple[int, ...], bound: tuple[int, ...]) -> None:
    for channel in range(CHANNEL_COUNT):
        account = n[i, ACCOUNT + channel]
        amount = spent[channel]
        if amount < 0 and c[POOL_HOLDS]:
            amount = bound[channel]
        if amount >= 0:
            a[account, SPENT] += amount
            continue
        while account >= 0:
            a[account, UNKNOWN] += 1
            account = a[account, ABOVE]


@jit
def close(w: Ints, n: Ints, a: Ints, c: Ints, i: int, unsent: bool) -> None:
    """End a node that was granted."""
    parent = n[i, PARENT]
    for place in range(MODULES, MODULES + 3):
        kind = c[place]
        if kind == POOL_KIND and parent >= 0:
            _release(n, a, i, parent)
        elif kind == TREE_KIND and parent >= 0:
            n[parent, ACTIVE] -= 1
            w[RUNNING] -= 1
            _lend(w, n, c, parent, NOTHING)
            if unsent and c[GIVES_BACK]:
                w[STARTED_CHILDREN] -= 1
    wake(w, n, a, c)


@jit
def _release(n: Ints, a: Ints, i: int, parent: int) -> None:
    for channel in range(CHANNEL_COUNT):
        account, above = n[i, ACCOUNT + channel], n[parent, ACCOUNT + channel]
        if account != above:
            a[above, HELD] += a[account, HELD] - a[account, LIMIT]
            a[above, SPENT] += a[account, SPENT]


@jit
def withdraw(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spawn: bool) -> None:
    """Take back a question whose asker was cancelled while it waited, or in the instant in which it was granted."""
    state = n[i, TICKET]
    n[i, TICKET] = SETTLED
    if state == WAITING:
        _leave(w, i)
        wake(w, n, a, c)
    elif state == OPEN and spawn:
        close(w, n, a, c, i, YES)
    elif state == OPEN:
        wake(w, n, a, c)


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
        wake(w, n, a, c)


@jit
def wake(w: Ints, n: Ints, a: Ints, c: Ints) -> None:
    """Answer those who wait in order of arrival; whoever has to go on waiting holds up only its own line."""
    first, kept = w[QUEUE], ZERO
    for place in range(w[QUEUED]):
        i = w[first + place]
        if _blocked(w, n, i, kept) or not _answered(w, n, a, c, i):
            w[first + kept] = i
            kept += 1
    w[QUEUED] = kept


@jit
def _blocked(w: Ints, n: Ints, i: int, kept: int) -> bool:
    return n[i, STATE] != STEP_QUEUED and kept > 0 and _behind(w, n, i, kept)


@jit
def _answered(w: Ints, n: Ints, a: Ints, c: Ints, i: int) -> bool:
    spawn = n[i, STATE] != STEP_QUEUED
    short = _short(w, n, a, c, i, spawn)
    if short != 0 and short < _NEVER:
        return False
    if short == 0 and spawn:
        _hold(w, n, a, c, i)
    _answer(w, n, i, short & (_NEVER - 1))
    return True


@jit
def conserved(w: Ints, n: Ints, a: Ints, c: Ints) -> bool:
    """Whether the books close after a run: nothing held, nobody waiting, and booked what the nodes reported."""
    if w[QUEUED] > 0 or w[RUNNING] != 0:
        return False
    reported = ZERO
    for i in range(w[NODES]):
        reported += n[i, COST_OF]
    for place in range(MODULES, MODULES + 3):
        kind = c[place]
        if kind == LEDGER_KIND and not _books(w[COST_NUSD], reported, c[LEDGER_HOLDS]):
            return False
        if kind == POOL_KIND:
            for channel in range(CHANNEL_COUNT):
                if a[channel, HELD] != 0:
                    return False
            if not _books(a[COST_CHANNEL, SPENT], reported, c[POOL_HOLDS]):
                return False
    return True


@jit
def _books(booked: int, reported: int, holds: int) -> bool:
    return booked == reported or (holds > 0 and booked > reported)


@jit
def _answer(w: Ints, n: Ints, i: int, code: int) -> None:
    n[i, TICKET] = OPEN if code == 0 else SETTLED
    n[i, ANSWER] = code
    hand_over(w, n, i)

"""The modules of the fast engine: what falls short in ledger, pool and tree limits, what is held, what is settled.

Each decision is the modules' own.
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
    MODULES,
    NODES,
    NOTHING,
    NOW,
    ONE,
    PARENT,
    PER_PARENT,
    POOL,
    POOL_HOLDS,
    POOL_KIND,
    POOL_RECORDS,
    QUEUED,
    ROOT_ASK,
    RULE,
    RULE_ASK,
    RULE_SIZE,
    RULES,
    RUNNING,
    SPENT,
    STARTED_CHILDREN,
    STEPS,
    TIMEOUT,
    TREE_KIND,
    UNKNOWN,
    UNMETERED,
    ZERO,
    code_number,
    int64,
)

if TYPE_CHECKING:
    from harness_lab.simulate.fast.jit import Ints

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
NEVER = 1 << 32
"""Added to a code of a shortfall that waiting does not help."""


@jit
def ask_of(n: Ints, c: Ints, i: int, channel: int) -> int:
    """Return what a node asked for in a channel; -1: nothing."""
    rule = n[i, RULE]
    if rule < 0:
        return c[ROOT_ASK + channel]
    return c[c[RULES] + rule * RULE_SIZE + RULE_ASK + channel]


@jit
def short(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spawn: bool) -> int:
    """Return the code of the first shortfall, plus `NEVER` unless all of them are helped by waiting; 0: none."""
    if spawn and n[i, PARENT] < 0:
        return 0
    code, never = ZERO, ZERO
    for place in range(MODULES, MODULES + 3):
        found = short_of(w, n, a, c, i, spawn, place)
        if found != 0:
            never |= found & NEVER
            if code == 0:
                code = found & (NEVER - 1)
    return code | never


@jit
def short_of(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spawn: bool, place: int) -> int:
    """Return the first shortfall of one module for a node that is no root, as :func:`short` does for all."""
    node = n[i, PARENT] if spawn else i
    kind = c[place]
    if kind == LEDGER_KIND:
        return _ledger(w, n, node)
    if kind == POOL_KIND:
        return _pool(n, a, c, i, node, spawn)
    return _tree(w, n, c, node) if kind == TREE_KIND and spawn else ZERO


@jit
def blocker(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spawn: bool) -> int:
    """Return the place of the first module in which a question falls short; -1: none."""
    for place in range(MODULES, MODULES + 3):
        if short_of(w, n, a, c, i, spawn, place) != 0:
            return place
    return NOTHING


@jit
def _ledger(w: Ints, n: Ints, node: int) -> int:
    found = first_reached(
        n[node, MAX_STEPS], w[STEPS], n[node, MAX_COST], w[COST_NUSD], w[UNMETERED], n[node, MAX_TIME], w[NOW]
    )
    return _REACHED[found] | NEVER if found > 0 else ZERO


@jit
def _pool(n: Ints, a: Ints, c: Ints, i: int, node: int, spawn: bool) -> int:
    code, never = ZERO, ZERO
    for channel in range(CHANNEL_COUNT):
        account = n[node, ACCOUNT + channel]
        if a[account, LIMIT] < 0:
            continue
        asked = ask_of(n, c, i, channel) if spawn else NOTHING
        found = _fits(a, account, asked, channel) if spawn else _left(a, account, channel)
        if not spawn and c[POOL_RECORDS] and found != _UNKNOWN_SPEND | NEVER:
            found = 0
        if found != 0:
            never |= found & NEVER
            if code == 0:
                code = found & (NEVER - 1)
    return code | never


@jit
def _fits(a: Ints, account: int, asked: int, channel: int) -> int:
    if channel == COST_CHANNEL and a[account, UNKNOWN] > 0:
        return _UNKNOWN_SPEND | NEVER
    if asked < 0 or fits(a[account, LIMIT], a[account, SPENT], a[account, HELD], asked):
        return 0
    return _BUDGET if could_fit(a[account, LIMIT], a[account, SPENT], asked) else _BUDGET | NEVER


@jit
def _left(a: Ints, account: int, channel: int) -> int:
    if used_up(a[account, LIMIT], a[account, SPENT] + a[account, HELD]):
        return _BUDGET if a[account, SPENT] < a[account, LIMIT] else _BUDGET | NEVER
    if channel == COST_CHANNEL and a[account, UNKNOWN] > 0:
        return _UNKNOWN_SPEND | NEVER
    return 0


@jit
def _tree(w: Ints, n: Ints, c: Ints, node: int) -> int:
    code, never = ZERO, ZERO
    if reached(_active(w, n, c, node), c[MAX_CONCURRENT]):
        code = _CONCURRENT
        never = NEVER if c[MAX_CONCURRENT] == 0 else 0
    if reached(w[STARTED_CHILDREN], c[MAX_STARTS]):
        code, never = _STARTS, NEVER
    if too_deep(n[node, DEPTH] + 1, c[MAX_DEPTH]):
        code, never = _DEPTH, NEVER
    return code | never


@jit
def _active(w: Ints, n: Ints, c: Ints, node: int) -> int:
    if c[PER_PARENT]:
        return n[node, ACTIVE]
    lent = c[LENDS] and n[node, PARENT] >= 0 and n[node, AWAITED] == 0
    return w[RUNNING] - (1 if lent else 0)


@jit
def hold(w: Ints, n: Ints, a: Ints, c: Ints, i: int) -> None:
    """Set a child's ask aside in every module."""
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
def settle_call(w: Ints, n: Ints, a: Ints, c: Ints, i: int, spent: tuple[int, ...], bound: tuple[int, ...]) -> None:
    """Charge a call of a node to every module, by channel; -1: unknown."""
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
def settle_node(w: Ints, n: Ints, a: Ints, c: Ints, i: int, unsent: bool) -> None:
    """Give back what a node held of every module."""
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


@jit
def _release(n: Ints, a: Ints, i: int, parent: int) -> None:
    for channel in range(CHANNEL_COUNT):
        account, above = n[i, ACCOUNT + channel], n[parent, ACCOUNT + channel]
        if account != above:
            a[above, HELD] += a[account, HELD] - a[account, LIMIT]
            a[above, SPENT] += a[account, SPENT]


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

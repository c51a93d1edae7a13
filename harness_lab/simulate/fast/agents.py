"""The agents of the fast engine: what a node does next.

It is the loop of :mod:`harness_lab.agents.loop` with the workload as its brain, as a state machine: a function begins
where a node goes on and ends where it waits again, or has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.outcome import Code, Purpose
from harness_lab.simulate.engine import LARGEST
from harness_lab.simulate.fast import calls, nodes, policy
from harness_lab.simulate.fast.jit import jit
from harness_lab.simulate.fast.layout import (
    AGENT,
    AGENT_ATTEMPTS,
    AGENT_BACKOFF,
    AGENT_CALLS,
    AGENT_FAILURE,
    AGENT_GROWTH,
    AGENT_RULE,
    AGENT_RULES,
    AGENT_SHARED,
    AGENT_SIZE,
    AGENT_STARTUP,
    AGENT_TOOL,
    AGENTS,
    ANSWER,
    ASKED,
    AT_TOOL,
    ATTEMPT,
    BACKING_OFF,
    BEGAN,
    BEYOND,
    CALL,
    CANCEL,
    CONTEXT,
    DEADLINE,
    DEPTH,
    DYING,
    FAILS_AT,
    FAULT,
    FIRST,
    IN_CALL,
    IN_FAILING_CALL,
    KEY,
    KIDS,
    LEFT,
    NO,
    NODES,
    NOW,
    OUTPUT,
    PARENT,
    RESENT,
    RULE_AFTER,
    RULE_AFTERS,
    RULE_AGENT,
    RULE_CHANCE,
    RULE_COUNT,
    RULE_MOST,
    RULE_SIZE,
    RULES,
    SPAWN_QUEUED,
    STARTS_OF,
    STATE,
    STEP_QUEUED,
    STUCK,
    UNBORN,
    UNTIL,
    WAITED,
    WANTED,
    WITH_KIDS,
    YES,
    ZERO,
    code_number,
    int64,
)
from harness_lab.simulate.fast.lines import expire_at, sleep, tick_at
from harness_lab.simulate.fast.words import child_key, high, low, value, word
from harness_lab.simulate.workload import MAX_CALLS

if TYPE_CHECKING:
    from harness_lab.simulate.fast.jit import Ints

_TIME = code_number(Code.TIME_EXHAUSTED)
_P_CALLS, _P_STARTUP, _P_GROWTH, _P_SPAWN, _P_TOOL, _P_SUCCESS, _P_COUNT = map(
    int64,
    (
        Purpose.CALLS,
        Purpose.STARTUP,
        Purpose.GROWTH,
        Purpose.SPAWN,
        Purpose.TOOL_TIME,
        Purpose.SUCCESS,
        Purpose.COUNT,
    ),
)
_ONE = 1 << 32
_MOST_TOKENS = 10**9
_MOST_NODES, _MOST_LEVELS = LARGEST


@jit
def step(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    """Let a node go on from where it waits."""
    state = n[i, STATE]
    if state == IN_CALL:
        _call_ended(w, n, a, h, c, t, i)
    elif state == UNBORN:
        _begin(w, n, a, h, c, t, i)
    elif state in (AT_TOOL, BACKING_OFF):
        _ask(w, n, a, h, c, t, i)
    elif state == IN_FAILING_CALL:
        _call_failed(w, n, a, h, c, t, i)
    elif state == WITH_KIDS:
        _go_on(w, n, a, h, c, t, i)
    elif state == SPAWN_QUEUED:
        _may_start(w, n, a, h, c, t, i, n[i, ANSWER])
    elif state == STEP_QUEUED:
        n[i, WAITED] += w[NOW] - n[i, ASKED]
        _may_call(w, n, a, h, c, t, i, n[i, ANSWER])
    elif state == DYING:
        nodes.die(w, n, a, c, i)


@jit
def stopped(w: Ints, n: Ints, a: Ints, c: Ints, t: Ints, i: int) -> None:
    """Let a node hear that it is stopped."""
    n[i, CANCEL] = 0
    state = n[i, STATE]
    if state == UNBORN:
        nodes.gone(w, n, i)
    elif state == SPAWN_QUEUED:
        policy.withdraw(w, n, a, c, i, YES)
        n[i, WAITED] = w[NOW] - n[i, BEGAN]
        nodes.row(w, n, c, i, nodes.DENIED, nodes.PARENT_ENDED, nodes.BY_LIMIT)
        nodes.gone(w, n, i)
    elif state == WITH_KIDS:
        for kid in range(n[i, FIRST], n[i, FIRST] + n[i, KIDS]):
            nodes.cancel(w, n, kid)
        n[i, STATE] = DYING
        if n[i, LEFT] == 0:
            nodes.die(w, n, a, c, i)
    elif state == DYING:
        if n[i, LEFT] == 0:
            nodes.die(w, n, a, c, i)
    else:
        if state == STEP_QUEUED:
            policy.withdraw(w, n, a, c, i, NO)
            n[i, WAITED] += w[NOW] - n[i, ASKED]
        elif state in (IN_CALL, IN_FAILING_CALL):
            calls.drop(w, n, a, c, i)
        nodes.die(w, n, a, c, i)


@jit
def _begin(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    """Ask for the node."""
    n[i, BEGAN] = w[NOW]
    n[i, ASKED] = w[NOW]
    answer = policy.ask(w, n, a, c, i, YES)
    if answer == policy.WAIT:
        n[i, STATE] = SPAWN_QUEUED
        tick_at(w, n, h, i, n[i, UNTIL])
    else:
        _may_start(w, n, a, h, c, t, i, answer)


@jit
def _may_start(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int, answer: int) -> None:
    n[i, WAITED] = w[NOW] - n[i, BEGAN]
    if answer != policy.GRANTED:
        nodes.row(w, n, c, i, nodes.DENIED, answer, nodes.BY_LIMIT)
        nodes.gone(w, n, i)
        return
    parent, deadline = n[i, PARENT], n[i, DEADLINE]
    if parent >= 0:
        n[parent, STARTS_OF] += 1
        if deadline >= 0 and deadline != n[parent, DEADLINE]:
            if deadline <= w[NOW]:  # a call that starts now could only end too late
                nodes.end(w, n, a, c, i, nodes.TIMED_OUT, nodes.AT_DEADLINE, nodes.BY_LIMIT)
                return
            expire_at(w, h, i, deadline)
    _think(n, c, t, i)
    _ask(w, n, a, h, c, t, i)


@jit
def _think(n: Ints, c: Ints, t: Ints, i: int) -> None:
    """Draw what the agent is going to do."""
    g, key = c[AGENTS] + n[i, AGENT] * AGENT_SIZE, n[i, KEY]
    wanted = min(MAX_CALLS, max(1, value(t, c[g + AGENT_CALLS], word(key, ZERO, ZERO, _P_CALLS))))
    n[i, WANTED] = wanted
    n[i, CONTEXT] = value(t, c[g + AGENT_STARTUP], word(key, ZERO, ZERO, _P_STARTUP))
    n[i, RESENT] = min(n[i, CONTEXT], c[g + AGENT_SHARED])
    success = word(key, ZERO, ZERO, _P_SUCCESS)
    n[i, FAILS_AT] = low(success) * wanted >> 32 if high(success) < c[g + AGENT_FAILURE] else -1


@jit
def _ask(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    """Ask for the next call."""
    if n[i, CONTEXT] > _MOST_TOKENS or w[NOW] > calls.LATEST:
        w[FAULT] = BEYOND
        return
    n[i, ASKED] = w[NOW]
    answer = policy.ask(w, n, a, c, i, NO)
    if answer == policy.WAIT:
        n[i, STATE] = STEP_QUEUED
        tick_at(w, n, h, i, n[i, UNTIL])
    else:
        _may_call(w, n, a, h, c, t, i, answer)


@jit
def _may_call(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int, answer: int) -> None:
    if answer != policy.GRANTED:
        how = nodes.TIMED_OUT if answer in (_TIME, nodes.AT_DEADLINE) else nodes.EXHAUSTED
        nodes.end(w, n, a, c, i, how, answer, nodes.BY_LIMIT)
        return
    calls.send(w, n, h, c, t, i)


@jit
def _call_failed(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    nothing = (ZERO, ZERO, ZERO, ZERO, ZERO)
    policy.charge(w, n, a, c, i, nothing, nothing)
    g = c[AGENTS] + n[i, AGENT] * AGENT_SIZE
    n[i, ATTEMPT] += 1
    if n[i, ATTEMPT] >= c[g + AGENT_ATTEMPTS]:
        nodes.end(w, n, a, c, i, nodes.HAS_FAILED, ZERO, nodes.BY_INFRASTRUCTURE)
        return
    n[i, STATE] = BACKING_OFF
    sleep(w, n, h, i, c[g + AGENT_BACKOFF] << (n[i, ATTEMPT] - 1))


@jit
def _call_ended(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    calls.answered(w, n, a, c, i)
    _act(w, n, a, h, c, t, i)


@jit
def _act(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    """Do what comes after a call: fail, start children, or go on."""
    if n[i, CALL] == n[i, FAILS_AT]:
        nodes.end(w, n, a, c, i, nodes.HAS_FAILED, ZERO, nodes.BY_MODEL)
        return
    g = c[AGENTS] + n[i, AGENT] * AGENT_SIZE
    n[i, FIRST] = w[NODES]
    first = ZERO
    for lane in range(c[g + AGENT_RULES]):
        rule = c[g + AGENT_RULE] + lane
        r = c[RULES] + rule * RULE_SIZE
        if _due(n, c, r, i, lane):
            for slot in range(first, first + _count(n, c, t, r, i, lane)):
                key = child_key(n[i, KEY], n[i, CALL], slot)
                if nodes.born(w, n, i, rule, c[r + RULE_AGENT], n[i, CALL], slot, key) < 0:
                    return
        first += c[r + RULE_MOST]
    n[i, KIDS] = w[NODES] - n[i, FIRST]
    if n[i, KIDS] > 0 and (w[NODES] - 1 > _MOST_NODES or n[i, DEPTH] >= _MOST_LEVELS):
        w[FAULT] = STUCK
        return
    n[i, LEFT] = n[i, KIDS]
    if n[i, KIDS] > 0:
        n[i, STATE] = WITH_KIDS
    else:
        _go_on(w, n, a, h, c, t, i)


@jit
def _due(n: Ints, c: Ints, r: int, i: int, lane: int) -> bool:
    call, afters = n[i, CALL], c[r + RULE_AFTERS]
    named = afters < 0
    for place in range(c[r + RULE_AFTER], c[r + RULE_AFTER] + afters):
        named = named or c[place] == call
    if not named:
        return False
    return c[r + RULE_CHANCE] >= _ONE or high(word(n[i, KEY], call, lane, _P_SPAWN)) < c[r + RULE_CHANCE]


@jit
def _count(n: Ints, c: Ints, t: Ints, r: int, i: int, lane: int) -> Any:
    if c[r + RULE_COUNT] < 0:
        return c[r + RULE_MOST]
    return value(t, c[r + RULE_COUNT], word(n[i, KEY], n[i, CALL], lane, _P_COUNT))


@jit
def _go_on(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    """Go on to the next call, after a tool has run."""
    g, key, call = c[AGENTS] + n[i, AGENT] * AGENT_SIZE, n[i, KEY], n[i, CALL]
    if call + 1 >= n[i, WANTED]:
        nodes.end(w, n, a, c, i, nodes.COMPLETED, ZERO, nodes.BY_NONE)
        return
    n[i, RESENT] = n[i, CONTEXT]
    n[i, CONTEXT] += n[i, OUTPUT] + value(t, c[g + AGENT_GROWTH], word(key, call, ZERO, _P_GROWTH))
    n[i, CALL] = call + 1
    n[i, ATTEMPT] = 0
    pause = value(t, c[g + AGENT_TOOL], word(key, call, ZERO, _P_TOOL))
    if pause != 0:
        n[i, STATE] = AT_TOOL
        sleep(w, n, h, i, pause)
    else:
        _ask(w, n, a, h, c, t, i)

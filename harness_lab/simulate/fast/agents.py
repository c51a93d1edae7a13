"""The nodes of the fast engine: what an agent does next, and what is written down about it.

It is the loop of :mod:`harness_lab.agents.loop` with the workload as its brain, as a state machine: a function begins
where a node goes on and ends where it waits again, or has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.outcome import Cause, Code, Outcome, Purpose
from harness_lab.simulate.engine import LARGEST
from harness_lab.simulate.fast import policy
from harness_lab.simulate.fast.jit import jit
from harness_lab.simulate.fast.layout import (
    AGENT,
    AGENT_ATTEMPTS,
    AGENT_BACKOFF,
    AGENT_CALLS,
    AGENT_FAILURE,
    AGENT_GROWTH,
    AGENT_MODEL,
    AGENT_RULE,
    AGENT_RULES,
    AGENT_SHARED,
    AGENT_SIZE,
    AGENT_STARTUP,
    AGENT_TOOL,
    AGENTS,
    ALIVE,
    ANSWER,
    ANSWERED,
    ASKED,
    AT_TOOL,
    ATTEMPT,
    ATTEMPTS,
    BACKING_OFF,
    BEGAN,
    BEYOND,
    BILL_LOST,
    BILLED,
    BORN_AFTER,
    CALL,
    CALLS,
    CANCEL,
    CANCELLING,
    CAUSE,
    CAUSES,
    CLOSED,
    CONTEXT,
    COST_LOST,
    COST_OF,
    DEADLINE,
    DEPTH,
    DONE,
    DYING,
    ENDED,
    EPOCH,
    FAILS_AT,
    FAULT,
    FIRED,
    FIRST,
    FRESH,
    FULL,
    HOW,
    IN_CALL,
    IN_FAILING_CALL,
    KEY,
    KIDS,
    LEFT,
    MODEL,
    MODEL_ERROR,
    MODEL_LATENCY,
    MODEL_MAX_OUTPUT,
    MODEL_NS_PER_TOKEN,
    MODEL_OUTPUT,
    MODEL_SIZE,
    MODEL_UNREPORTED,
    MODELS,
    NO,
    NODE,
    NODES,
    NOTHING,
    NOW,
    ONE,
    ORDER,
    OUTCOMES,
    OUTPUT,
    OVERSPENT,
    PARENT,
    READ,
    RESENT,
    RULE,
    RULE_AFTER,
    RULE_AFTERS,
    RULE_AGENT,
    RULE_CHANCE,
    RULE_COUNT,
    RULE_MOST,
    RULE_SIZE,
    RULES,
    SENT,
    SLOT,
    SPAWN_QUEUED,
    STARTS_OF,
    STATE,
    STEP_QUEUED,
    STOPPED_BY,
    STUCK,
    SUBTREE,
    UNBORN,
    UNTIL,
    URGENT,
    USAGE_LOST,
    WAITED,
    WANTED,
    WHOLE,
    WITH_KIDS,
    WRITE,
    YES,
    ZERO,
    code_number,
    int64,
)
from harness_lab.simulate.fast.lines import expire_at, push_line, ready, sleep, start, tick_at
from harness_lab.simulate.fast.words import child_key, high, low, price, split, value, word, worst
from harness_lab.simulate.workload import MAX_CALLS

if TYPE_CHECKING:
    from harness_lab.simulate.fast.jit import Ints

_COMPLETED, _EXHAUSTED, _TIMED_OUT, _CANCELLED, _FAILED, _DENIED = (
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
_BY_LIMIT, _BY_MODEL, _BY_INFRASTRUCTURE, _BY_NONE = (
    int64(CAUSES.index(cause)) for cause in (Cause.LIMIT, Cause.MODEL, Cause.INFRASTRUCTURE, Cause.NONE)
)
_DEADLINE, _PARENT_ENDED, _TIME = map(code_number, (Code.DEADLINE, Code.PARENT_ENDED, Code.TIME_EXHAUSTED))
_P_CALLS, _P_STARTUP, _P_GROWTH, _P_OUTPUT, _P_LATENCY = map(
    int64, (Purpose.CALLS, Purpose.STARTUP, Purpose.GROWTH, Purpose.OUTPUT, Purpose.LATENCY)
)
_P_ERROR, _P_REPORTED, _P_SPAWN, _P_TOOL, _P_SUCCESS, _P_COUNT = map(
    int64,
    (Purpose.ERROR, Purpose.USAGE_REPORTED, Purpose.SPAWN, Purpose.TOOL_TIME, Purpose.SUCCESS, Purpose.COUNT),
)
_ONE = 1 << 32
_MOST_TOKENS = 10**9
_LATEST = 1 << 62
_UNKNOWN = (ONE, NOTHING, NOTHING, NOTHING, NOTHING)
_MOST_NODES, _MOST_LEVELS = LARGEST


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
        _die(w, n, a, c, i)


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
def stopped(w: Ints, n: Ints, a: Ints, c: Ints, t: Ints, i: int) -> None:
    """Let a node hear that it is stopped."""
    n[i, CANCEL] = 0
    state = n[i, STATE]
    if state == UNBORN:
        _gone(w, n, i)
    elif state == SPAWN_QUEUED:
        policy.withdraw(w, n, a, c, i, YES)
        n[i, WAITED] = w[NOW] - n[i, BEGAN]
        _row(w, n, c, i, _DENIED, _PARENT_ENDED, _BY_LIMIT)
        _gone(w, n, i)
    elif state == WITH_KIDS:
        for kid in range(n[i, FIRST], n[i, FIRST] + n[i, KIDS]):
            cancel(w, n, kid)
        n[i, STATE] = DYING
        if n[i, LEFT] == 0:
            _die(w, n, a, c, i)
    elif state == DYING:
        if n[i, LEFT] == 0:
            _die(w, n, a, c, i)
    else:
        if state == STEP_QUEUED:
            policy.withdraw(w, n, a, c, i, NO)
            n[i, WAITED] += w[NOW] - n[i, ASKED]
        elif state in (IN_CALL, IN_FAILING_CALL):
            _drop(w, n, a, c, i)
        _die(w, n, a, c, i)


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
        _row(w, n, c, i, _DENIED, answer, _BY_LIMIT)
        _gone(w, n, i)
        return
    parent, deadline = n[i, PARENT], n[i, DEADLINE]
    if parent >= 0:
        n[parent, STARTS_OF] += 1
        if deadline >= 0 and deadline != n[parent, DEADLINE]:
            if deadline <= w[NOW]:  # a call that starts now could only end too late
                _end(w, n, a, c, i, _TIMED_OUT, _DEADLINE, _BY_LIMIT)
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
    if n[i, CONTEXT] > _MOST_TOKENS or w[NOW] > _LATEST:
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
        how = _TIMED_OUT if answer in (_TIME, _DEADLINE) else _EXHAUSTED
        _end(w, n, a, c, i, how, answer, _BY_LIMIT)
        return
    name = c[c[AGENTS] + n[i, AGENT] * AGENT_SIZE + AGENT_MODEL]
    m, key, call, attempt = c[MODELS] + name * MODEL_SIZE, n[i, KEY], n[i, CALL], n[i, ATTEMPT]
    n[i, MODEL] = name
    n[i, ATTEMPTS] += 1
    n[i, SENT] = w[NOW]
    output = min(value(t, c[m + MODEL_OUTPUT], word(key, call, attempt, _P_OUTPUT)), c[m + MODEL_MAX_OUTPUT])
    latency = value(t, c[m + MODEL_LATENCY], word(key, call, attempt, _P_LATENCY))
    n[i, OUTPUT] = output
    n[i, WHOLE] = latency + output * c[m + MODEL_NS_PER_TOKEN]
    if c[m + MODEL_ERROR] > 0 and high(word(key, call, attempt, _P_ERROR)) < c[m + MODEL_ERROR]:
        n[i, STATE] = IN_FAILING_CALL
        sleep(w, n, h, i, latency // 10)
    else:
        n[i, STATE] = IN_CALL
        sleep(w, n, h, i, n[i, WHOLE])


@jit
def _call_failed(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    nothing = (ZERO, ZERO, ZERO, ZERO, ZERO)
    policy.charge(w, n, a, c, i, nothing, nothing)
    g = c[AGENTS] + n[i, AGENT] * AGENT_SIZE
    n[i, ATTEMPT] += 1
    if n[i, ATTEMPT] >= c[g + AGENT_ATTEMPTS]:
        _end(w, n, a, c, i, _FAILED, ZERO, _BY_INFRASTRUCTURE)
        return
    n[i, STATE] = BACKING_OFF
    sleep(w, n, h, i, c[g + AGENT_BACKOFF] << (n[i, ATTEMPT] - 1))


@jit
def _bound(c: Ints, model: int, prompt: int) -> tuple[int, int, int, int, int]:
    most = c[c[MODELS] + model + MODEL_MAX_OUTPUT]
    return ONE, prompt, prompt + most, prompt + most, worst(c, model, prompt, most)


@jit
def _call_ended(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    """Write down a call that completed, and settle it."""
    m, prompt, output = n[i, MODEL] * MODEL_SIZE, n[i, CONTEXT], n[i, OUTPUT]
    fresh, read, write = split(c, m, prompt, n[i, RESENT])
    cost = price(c, m, fresh, read, write, output)
    n[i, CALLS] += 1
    _bill(n, i, cost)
    unreported = c[c[MODELS] + m + MODEL_UNREPORTED]
    if unreported > 0 and high(word(n[i, KEY], n[i, CALL], n[i, ATTEMPT], _P_REPORTED)) < unreported:
        n[i, USAGE_LOST] = 1
        n[i, COST_LOST] = 1
        n[i, SUBTREE] += 1
        policy.charge(w, n, a, c, i, _UNKNOWN, _bound(c, m, prompt))
    else:
        n[i, FRESH] += fresh
        n[i, READ] += read
        n[i, WRITE] += write
        n[i, ANSWERED] += output
        n[i, COST_OF] += max(cost, 0)
        n[i, COST_LOST] |= 1 if cost < 0 else 0
        n[i, SUBTREE] += 1
        n[i, SUBTREE + 1] += prompt
        n[i, SUBTREE + 2] += prompt + output
        n[i, SUBTREE + 3] += prompt - read + output
        n[i, SUBTREE + 4] += max(cost, 0)
        spent = (ONE, prompt, prompt + output, prompt - read + output, cost)
        policy.charge(w, n, a, c, i, spent, spent if cost >= 0 else _bound(c, m, prompt))
    _act(w, n, a, h, c, t, i)


@jit
def _bill(n: Ints, i: int, cost: int) -> None:
    if cost < 0:
        n[i, BILL_LOST] = 1
    else:
        n[i, BILLED] += cost


@jit
def _drop(w: Ints, n: Ints, a: Ints, c: Ints, i: int) -> None:
    """Write down a call that was stopped in flight: what it used is unknown; what is billed came so far."""
    m, prompt, output, whole = n[i, MODEL] * MODEL_SIZE, n[i, CONTEXT], n[i, OUTPUT], n[i, WHOLE]
    elapsed = min(w[NOW] - n[i, SENT], whole)
    if output > 0 and elapsed > _LATEST // output:
        w[FAULT] = BEYOND
        return
    fresh, read, write = split(c, m, prompt, n[i, RESENT])
    _bill(n, i, price(c, m, fresh, read, write, output * elapsed // max(whole, 1)))
    n[i, USAGE_LOST] = 1
    n[i, COST_LOST] = 1
    policy.charge(w, n, a, c, i, _UNKNOWN, _bound(c, m, prompt))


@jit
def _act(w: Ints, n: Ints, a: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    """Do what comes after a call: fail, start children, or go on."""
    if n[i, CALL] == n[i, FAILS_AT]:
        _end(w, n, a, c, i, _FAILED, ZERO, _BY_MODEL)
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
                if born(w, n, i, rule, c[r + RULE_AGENT], n[i, CALL], slot, key) < 0:
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
        _end(w, n, a, c, i, _COMPLETED, ZERO, _BY_NONE)
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


@jit
def _die(w: Ints, n: Ints, a: Ints, c: Ints, i: int) -> None:
    if n[i, FIRED] and n[i, CANCELLING] <= 1:
        _end(w, n, a, c, i, _TIMED_OUT, _DEADLINE, _BY_LIMIT)
    else:
        _end(w, n, a, c, i, _CANCELLED, _PARENT_ENDED, _BY_LIMIT)


@jit
def _end(w: Ints, n: Ints, a: Ints, c: Ints, i: int, how: int, code: int, cause: int) -> None:
    """End a node that was granted."""
    _row(w, n, c, i, how, code, cause)
    policy.close(w, n, a, c, i, NO)
    _gone(w, n, i)


@jit
def _row(w: Ints, n: Ints, c: Ints, i: int, how: int, code: int, cause: int) -> None:
    """Write down how a node ended, and count what it and all below it used in its parent's subtree."""
    n[i, ENDED] = w[NOW]
    n[i, HOW] = how
    n[i, STOPPED_BY] = code
    n[i, CAUSE] = cause
    parent = n[i, PARENT]
    for channel in range(policy.CHANNEL_COUNT):
        used, asked = n[i, SUBTREE + channel], policy.ask_of(n, c, i, channel)
        if 0 <= asked < used:
            n[i, OVERSPENT] = 1
        if parent >= 0:
            n[parent, SUBTREE + channel] += used
    w[w[ORDER] + w[CLOSED]] = i
    w[CLOSED] += 1


@jit
def _gone(w: Ints, n: Ints, i: int) -> None:
    n[i, STATE] = DONE
    w[ALIVE] -= 1
    parent = n[i, PARENT]
    if parent >= 0:
        n[parent, LEFT] -= 1
        if n[parent, LEFT] == 0:
            ready(w, n, parent)

"""The calls of the fast engine: what they draw, what they cost, and what is settled of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.outcome import Purpose
from harness_lab.simulate.fast import policy
from harness_lab.simulate.fast.jit import jit
from harness_lab.simulate.fast.layout import (
    AGENT,
    AGENT_MODEL,
    AGENT_SIZE,
    AGENTS,
    ANSWERED,
    ATTEMPT,
    ATTEMPTS,
    BEYOND,
    BILL_LOST,
    BILLED,
    CALL,
    CALLS,
    CONTEXT,
    COST_LOST,
    COST_OF,
    FAULT,
    FRESH,
    IN_CALL,
    IN_FAILING_CALL,
    KEY,
    MODEL,
    MODEL_ERROR,
    MODEL_LATENCY,
    MODEL_MAX_OUTPUT,
    MODEL_NS_PER_TOKEN,
    MODEL_OUTPUT,
    MODEL_SIZE,
    MODEL_UNREPORTED,
    MODELS,
    NOTHING,
    NOW,
    ONE,
    OUTPUT,
    READ,
    RESENT,
    SENT,
    STATE,
    SUBTREE,
    USAGE_LOST,
    WHOLE,
    WRITE,
    int64,
)
from harness_lab.simulate.fast.lines import sleep
from harness_lab.simulate.fast.words import high, price, split, value, word, worst

if TYPE_CHECKING:
    from harness_lab.simulate.fast.jit import Ints

_P_OUTPUT, _P_LATENCY, _P_ERROR, _P_REPORTED = map(
    int64, (Purpose.OUTPUT, Purpose.LATENCY, Purpose.ERROR, Purpose.USAGE_REPORTED)
)
LATEST = 1 << 62
"""An instant beyond which figures may leave 64 bits."""
_UNKNOWN = (ONE, NOTHING, NOTHING, NOTHING, NOTHING)


@jit
def send(w: Ints, n: Ints, h: Ints, c: Ints, t: Ints, i: int) -> None:
    """Make a call that was granted."""
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
def _bound(c: Ints, model: int, prompt: int) -> tuple[int, int, int, int, int]:
    most = c[c[MODELS] + model + MODEL_MAX_OUTPUT]
    return ONE, prompt, prompt + most, prompt + most, worst(c, model, prompt, most)


@jit
def answered(w: Ints, n: Ints, a: Ints, c: Ints, i: int) -> None:
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


@jit
def _bill(n: Ints, i: int, cost: int) -> None:
    if cost < 0:
        n[i, BILL_LOST] = 1
    else:
        n[i, BILLED] += cost


@jit
def drop(w: Ints, n: Ints, a: Ints, c: Ints, i: int) -> None:
    """Write down a call that was stopped in flight: what it used is unknown; what is billed came so far."""
    m, prompt, output, whole = n[i, MODEL] * MODEL_SIZE, n[i, CONTEXT], n[i, OUTPUT], n[i, WHOLE]
    elapsed = min(w[NOW] - n[i, SENT], whole)
    if output > 0 and elapsed > LATEST // output:
        w[FAULT] = BEYOND
        return
    fresh, read, write = split(c, m, prompt, n[i, RESENT])
    _bill(n, i, price(c, m, fresh, read, write, output * elapsed // max(whole, 1)))
    n[i, USAGE_LOST] = 1
    n[i, COST_LOST] = 1
    policy.charge(w, n, a, c, i, _UNKNOWN, _bound(c, m, prompt))

"""Where things lie in the arrays of the fast engine: one name per cell.

``w`` is the world (time, queues, the ledger), ``n`` one row a node, ``a`` one row an account of the pool, ``h`` the
heap of what is to happen, ``c`` the constants of workload, provider and policy, ``t`` the draw tables.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness_lab.outcome import CHANNELS, Cause, Code, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

int64: Any = np.int64
"""Constants have this type: for a plain int numba would compile every function anew for every value."""


def _cells() -> Iterator[int]:
    return map(int64, count())


def _words(many: int) -> Iterator[int]:
    return map(int64, range(many))


_world = _cells()
NOW: Final = next(_world)
SEQ: Final = next(_world)
HEAP: Final = next(_world)
NODES: Final = next(_world)
ACCOUNTS: Final = next(_world)
ALIVE: Final = next(_world)
CLOSED: Final = next(_world)
QUEUED: Final = next(_world)
URGENT: Final = next(_world)  # of each of these four lines: where its first entry lies, and where the next one goes
_ = next(_world)
READY: Final = next(_world)
_ = next(_world)
HANDOVER: Final = next(_world)
_ = next(_world)
STARTS: Final = next(_world)
_ = next(_world)
LINE: Final = next(_world)  # room of a line
LINES: Final = next(_world)  # where the four lines begin
QUEUE: Final = next(_world)  # where the policy's queue begins
ORDER: Final = next(_world)  # where the order of closing begins
STEPS: Final = next(_world)
COST_NUSD: Final = next(_world)
UNMETERED: Final = next(_world)
STARTED_CHILDREN: Final = next(_world)
RUNNING: Final = next(_world)
FAULT: Final = next(_world)
WORLD: Final = next(_world)

_, FULL, BEYOND, STUCK, LEAK = _words(5)
"""Faults: a line, the heap or the nodes need more room; figures beyond 63 bits; no progress (the kernel says why);
the books of a run do not close."""

_node = _cells()
STATE: Final = next(_node)
EPOCH: Final = next(_node)
PARENT: Final = next(_node)
AGENT: Final = next(_node)
DEPTH: Final = next(_node)
BORN_AFTER: Final = next(_node)
SLOT: Final = next(_node)
RULE: Final = next(_node)
KEY: Final = next(_node)
CALL: Final = next(_node)
ATTEMPT: Final = next(_node)
WANTED: Final = next(_node)
CONTEXT: Final = next(_node)
RESENT: Final = next(_node)
FAILS_AT: Final = next(_node)
OUTPUT: Final = next(_node)
WHOLE: Final = next(_node)
SENT: Final = next(_node)
ASKED: Final = next(_node)
UNTIL: Final = next(_node)
TICKET: Final = next(_node)
BLOCKER: Final = next(_node)
ANSWER: Final = next(_node)
DEADLINE: Final = next(_node)
FIRED: Final = next(_node)
CANCELLING: Final = next(_node)
CANCEL: Final = next(_node)
KIDS: Final = next(_node)
FIRST: Final = next(_node)
LEFT: Final = next(_node)
MAX_STEPS: Final = next(_node)
MAX_COST: Final = next(_node)
MAX_TIME: Final = next(_node)
ACTIVE: Final = next(_node)
AWAITED: Final = next(_node)
ACCOUNT: Final = next(_node)  # five cells
for _channel in CHANNELS[1:]:
    next(_node)
SUBTREE: Final = next(_node)  # five cells
for _channel in CHANNELS[1:]:
    next(_node)
BEGAN: Final = next(_node)
ENDED: Final = next(_node)
HOW: Final = next(_node)
STOPPED_BY: Final = next(_node)
CAUSE: Final = next(_node)
OVERSPENT: Final = next(_node)
CALLS: Final = next(_node)
ATTEMPTS: Final = next(_node)
STARTS_OF: Final = next(_node)
FRESH: Final = next(_node)
READ: Final = next(_node)
WRITE: Final = next(_node)
ANSWERED: Final = next(_node)
COST_OF: Final = next(_node)
BILLED: Final = next(_node)
USAGE_LOST: Final = next(_node)
COST_LOST: Final = next(_node)
BILL_LOST: Final = next(_node)
WAITED: Final = next(_node)
MODEL: Final = next(_node)
NODE: Final = next(_node)

UNBORN, SPAWN_QUEUED, STEP_QUEUED, IN_CALL, IN_FAILING_CALL, BACKING_OFF, AT_TOOL, WITH_KIDS, DYING, DONE = _words(10)
"""States: what a node waits for."""
NONE, WAITING, OPEN, SETTLED = _words(4)
"""States of a ticket that had to wait."""

_account = _cells()
LIMIT: Final = next(_account)
HELD: Final = next(_account)
SPENT: Final = next(_account)
UNKNOWN: Final = next(_account)
ABOVE: Final = next(_account)
ACCOUNT_SIZE: Final = next(_account)

WHEN, RANK_SEQ, WHO, WHAT = _words(4)
"""A heap entry. WHAT: the epoch of a sleeper, or one of the two below."""
HEAP_SIZE: Final = 4
SLEEP, TICK, EXPIRE = _words(3)
"""Kinds of entries, in the lowest two bits of WHAT."""

_const = _cells()
MAX_WAIT: Final = next(_const)
MODULES: Final = next(_const)  # kinds of the modules in order, three cells
_ = next(_const)
_ = next(_const)
LEDGER_STEPS: Final = next(_const)
LEDGER_COST: Final = next(_const)
LEDGER_TIME: Final = next(_const)
LEDGER_HOLDS: Final = next(_const)
POOL: Final = next(_const)  # five limits
for _channel in CHANNELS[1:]:
    next(_const)
POOL_HOLDS: Final = next(_const)
POOL_RECORDS: Final = next(_const)
POOL_ISOLATES: Final = next(_const)
MAX_DEPTH: Final = next(_const)
MAX_CONCURRENT: Final = next(_const)
MAX_STARTS: Final = next(_const)
TIMEOUT: Final = next(_const)
PER_PARENT: Final = next(_const)
LENDS: Final = next(_const)
FROM_ARRIVAL: Final = next(_const)
GIVES_BACK: Final = next(_const)
ROOT: Final = next(_const)
ROOT_ASK: Final = next(_const)  # five cells
for _channel in CHANNELS[1:]:
    next(_const)
AGENTS: Final = next(_const)  # where the four tables begin
MODELS: Final = next(_const)
RULES: Final = next(_const)
TIERS: Final = next(_const)
CONSTANTS: Final = next(_const)

_, LEDGER_KIND, POOL_KIND, TREE_KIND = _words(4)

AGENT_MODEL, AGENT_CALLS, AGENT_STARTUP, AGENT_GROWTH, AGENT_TOOL, AGENT_BACKOFF, AGENT_FAILURE, AGENT_SHARED = _words(
    8
)
AGENT_ATTEMPTS, AGENT_RULE, AGENT_RULES = map(int64, (8, 9, 10))
AGENT_SIZE: Final[int] = int64(11)
MODEL_OUTPUT, MODEL_LATENCY, MODEL_NS_PER_TOKEN, MODEL_ERROR, MODEL_UNREPORTED = _words(5)
MODEL_READ_PPM, MODEL_WRITE_PPM, MODEL_MAX_OUTPUT, MODEL_TIER, MODEL_TIERS = map(int64, range(5, 10))
MODEL_SIZE: Final[int] = int64(10)
RULE_AGENT, RULE_MOST, RULE_COUNT, RULE_CHANCE, RULE_AFTER, RULE_AFTERS, RULE_ASK = _words(7)
RULE_SIZE: Final[int] = int64(RULE_ASK + len(CHANNELS))
TIER_ABOVE, TIER_RATES = _words(2)
TIER_SIZE: Final[int] = int64(6)

OUTCOMES: Final = tuple(Outcome)
CODES: Final = (None, *Code)
CAUSES: Final = tuple(Cause)
"""Words by number, for rows."""


def code_number(code: Code) -> int:
    """Return the number of a reason code."""
    found: int = int64(CODES.index(code))
    return found


ROW: Final = (
    NODE, PARENT, BORN_AFTER, SLOT, RULE, DEPTH, AGENT, MODEL, HOW, STOPPED_BY, CAUSE, OVERSPENT, CALLS, ATTEMPTS,
    STARTS_OF, FRESH, READ, WRITE, ANSWERED, COST_OF, BILLED, USAGE_LOST, COST_LOST, BILL_LOST, BEGAN, ENDED, WAITED,
)  # fmt: skip
"""The cells of a node that make its row; the run's number stands before them."""
NODE_SIZE: Final = NODE + 1

ZERO, ONE = _words(2)
NOTHING: Final[int] = int64(-1)
"""No node, no limit, unknown: whatever is not there."""
YES: Final[bool] = np.bool_(True)  # type: ignore[assignment]
NO: Final[bool] = np.bool_(False)  # type: ignore[assignment]

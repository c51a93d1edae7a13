"""The arithmetic of budgets: pure functions of ints in the numba subset.

``-1`` is "no limit" (and "not asked"); 0 is a real limit.

Sources: the run ledger's checks, their order and ``>=`` are those of prism-harness (`RunLedger::exhaustion`,
`RunBudget::nestedWithin`); those of a pool's channels are those of tangle-network/agent-runtime.
"""


def fits(limit: int, spent: int, held: int, asked: int) -> bool:
    """Whether `asked` can be held: spent + held + asked never exceeds a limit."""
    return limit < 0 or spent + held + asked <= limit


def free(limit: int, spent: int, held: int) -> int:
    """Return what is left, never negative; ``-1`` without a limit."""
    return -1 if limit < 0 else max(0, limit - spent - held)


def used_up(limit: int, used: int) -> bool:
    """Whether a cumulative limit is reached (a budget of 0 is at once)."""
    return 0 <= limit <= used


def first_reached(
    max_steps: int, steps: int, max_cost: int, cost: int, unmetered: int, max_elapsed: int, elapsed: int
) -> int:
    """Return which limit of a ledger is reached first in the order of checking.

    0: none, 1: steps, 2: spend is unknown under a cost limit, 3: cost, 4: time.
    """
    if 0 <= max_steps <= steps:
        return 1
    if max_cost >= 0:
        if unmetered > 0:
            return 2
        if max_cost <= cost:
            return 3
    return 4 if 0 <= max_elapsed <= elapsed else 0


def nested(parent: int, used: int, declared: int) -> int:
    """Return a child's tree-absolute ceiling: its declaration counted from what is used, bounded by the parent's."""
    own = -1 if declared < 0 else used + declared
    if parent < 0:
        return own
    return parent if own < 0 else min(parent, own)


def could_fit(limit: int, spent: int, asked: int) -> bool:
    """Whether `asked` would fit once everything held is given back: then waiting helps."""
    return limit < 0 or spent + asked <= limit

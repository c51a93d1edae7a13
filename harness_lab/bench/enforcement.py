"""What enforcement costs: admit and settle of a composed policy, against an empty method call."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harness_lab.bench.timing import entry, ratios
from harness_lab.clock import Time
from harness_lab.policies import (
    Grant,
    SpawnAsk,
    StepAsk,
    Use,
    compose,
    reservation_pool,
    shared_ledger,
    tree_limits,
)
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from harness_lab.usage import Amounts

_SPENT: Amounts = (1, 1200, 1500, 1500, 500_000)


class _Empty:
    def call(self) -> None:
        """Do nothing."""


def admit_settle_ratio(*, quick: bool = False) -> dict[str, object]:
    """Return admit + settle of three composed modules, in empty method calls."""
    size = 2_000 if quick else 50_000
    values = ratios(lambda: _admit_settle(size), lambda: _empty(size), repeats=3 if quick else 7)
    return entry(values, "admit + settle of ledger, pool and tree limits composed, in empty method calls (CPU time)")


def _admit_settle(size: int) -> float:
    limits = compose(shared_ledger(10**9, 10**6), reservation_pool(tokens=10**14), tree_limits(2, 3, 12))
    policy = limits.start()
    root = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    if not isinstance(root, Grant):
        raise TypeError(root)
    bound = amounts()
    start = time.process_time()
    for call in range(size):
        grant = policy.admit(StepAsk(root.ticket, call, 0, bound), Time(call))
        if isinstance(grant, Grant):
            policy.settle(grant.ticket, Use(_SPENT), Time(call))
    return time.process_time() - start


def _empty(size: int) -> float:
    empty = _Empty()
    start = time.process_time()
    for _ in range(size):
        empty.call()
    return time.process_time() - start

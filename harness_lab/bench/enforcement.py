"""What enforcement costs: admit and settle of a composed policy, against an empty method call."""

from __future__ import annotations

import time
from importlib.util import find_spec
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


def admit_settle_vs_prism(*, quick: bool = False) -> dict[str, object]:
    """Return admit + settle of three composed modules, in checks and records of prism-ai-harness's run ledger.

    The value is None where that package is not installed.
    """
    what = "admit + settle of ledger, pool and tree limits composed, in check + record of prism-ai-harness (CPU time)"
    if find_spec("prism_harness") is None:
        return {"value": None, "low": None, "high": None, "what": f"{what}; it is not installed"}
    size = 2_000 if quick else 50_000
    return entry(ratios(lambda: _admit_settle(size), lambda: _prism(size), repeats=3 if quick else 7), what)


def _prism(size: int) -> float:
    from prism_harness import RunBudget, RunLedger

    budget, ledger = RunBudget(10**9, 10**6), RunLedger.start("run")
    start = time.process_time()
    for _ in range(size):
        if ledger.exhaustion(budget) is None:
            ledger.record_steps(1)
            ledger.record_cost(0.0005)
    return time.process_time() - start


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

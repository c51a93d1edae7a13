"""Several threads on one ledger or pool: no charge is lost, no allocation closed twice, nothing given twice."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.budget import Allocation, ReservationPool, RunLedger
from harness_lab.errors import AlreadySettled
from harness_lab.outcome import TOKENS
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THREADS, TIMES = 4, 1_500


class Odd(int):
    """A count that lets other threads in where it is read, as any value of one's own may."""

    def __index__(self) -> int:
        return int(self)


@pytest.fixture(autouse=True)
def _switching() -> Iterator[None]:
    """Change threads as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(work, range(THREADS)))


def test_a_ledger_loses_no_charge() -> None:
    ledger = RunLedger("r")

    def work(_: int) -> None:
        for _ in range(TIMES):
            ledger.record_steps(Odd(1))
            ledger.charge(Odd(3))
            ledger.charge(None)

    at_once(work)
    assert (ledger.steps, ledger.cost_nusd, ledger.unmetered_runs) == tuple(n * THREADS * TIMES for n in (1, 3, 1))


def test_a_pool_gives_nothing_twice_and_loses_nothing() -> None:
    pool = ReservationPool(amounts(tokens=THREADS * 10))
    most: list[int] = []

    def work(_: int) -> None:
        for _ in range(TIMES):
            child = pool.reserve(amounts(tokens=15))
            if isinstance(child, Allocation):
                most.append(pool.held()[TOKENS] or 0)
                pool.charge(child, (1, 0, 0, 0, 0))
                pool.reconcile(child)

    at_once(work)
    assert max(most) <= THREADS * 10
    assert pool.held()[TOKENS] == 0
    assert pool.spent()[0] == len(most)


def test_an_allocation_is_closed_once_whoever_comes_and_late_charges_are_kept() -> None:
    pool = ReservationPool(amounts(tokens=10**9))
    children = [pool.reserve(amounts(calls=1, tokens=50, cost_usd=1)) for _ in range(6_000)]

    together = Barrier(THREADS)

    def work(_: int) -> int:
        closed = 0
        for place, child in enumerate(children):
            if place % 20 == 0:  # else one thread is through before the next begins
                together.wait()
            assert isinstance(child, Allocation)
            pool.charge(child, (0, 0, 1, 0, 0))
            with suppress(AlreadySettled):
                pool.reconcile(child)
                closed += 1
        return closed

    assert sum(at_once(work)) == len(children)
    assert (pool.held()[TOKENS], pool.spent()[TOKENS]) == (0, THREADS * len(children))

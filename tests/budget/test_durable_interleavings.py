"""Threads and processes at once: spent and held together never pass the cap, and all adds up."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from harness_lab.budget.durable import DurableAccount
from harness_lab.budget.durable_books import HoldRecord
from harness_lab.budget.period import PeriodLimits
from harness_lab.budget.windows import Rolling
from harness_lab.errors import AlreadySettled
from harness_lab.outcome import COST
from harness_lab.usage import amounts, nusd

if TYPE_CHECKING:
    from pathlib import Path

CAP = 1.0
WORK = """
import random, sys
from harness_lab.budget.durable import DurableAccount
from harness_lab.outcome import Refusal
account = DurableAccount(sys.argv[1], synchronous="normal", busy_seconds=60)
rng, paid = random.Random(int(sys.argv[2])), 0
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    bound, name = rng.randrange(1, 20_000_000), f"{sys.argv[2]}.{number}"
    if isinstance(account.hold(name, (1, None, None, None, bound), number), Refusal):
        continue
    bill = rng.randrange(bound + 1)
    paid += account.settle(name, (1, None, None, None, bill), number).charged[4]
print(paid)
"""


def make(folder: Path) -> DurableAccount:
    path = folder / "account.db"
    return DurableAccount.create(
        path, amounts(cost_usd=CAP), now_ns=0, hold_seconds=9e8, synchronous="normal", busy_seconds=60
    )


def processes(folder: Path, *, workers: int, calls: int) -> None:
    account = make(folder)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WORK, account.path, str(n), str(calls)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(workers)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    most = 0
    while any(process.poll() is None for process in running):
        balance = account.balance()
        most = max(most, balance.spent[COST] + balance.held[COST])
    paid = sum(int(process.communicate()[0]) for process in running)
    assert most <= nusd(CAP)
    assert account.balance().spent[COST] == paid <= nusd(CAP)
    assert paid > nusd(CAP) - 20_000_000 * workers  # the cap was reached, so it was what held


def test_processes_never_pass_the_cap_and_what_they_paid_is_what_is_booked(tmp_path: Path) -> None:
    processes(tmp_path, workers=4, calls=120)


@pytest.mark.slow
def test_many_processes_never_pass_the_cap(tmp_path: Path) -> None:
    processes(tmp_path, workers=12, calls=1000)


def test_threads_on_one_connection_never_pass_the_cap(tmp_path: Path) -> None:
    account = make(tmp_path)
    burst = PeriodLimits(name="burst", limits=amounts(calls=5), window=Rolling(1e-6), cap="hard")
    paid: list[int] = []
    start = threading.Barrier(6)

    def work(worker: int) -> None:
        start.wait()
        for number in range(60):
            name, now = f"{worker}.{number}", number * 200
            held = account.hold(name, amounts(cost_usd=0.02), now, periods=[(burst, "")])
            if isinstance(held, HoldRecord):
                balance = account.balance()
                assert balance.spent[COST] + balance.held[COST] <= nusd(CAP)
                record = account.settle(name, amounts(cost_usd=0.0001 * (worker + number)), now)
                paid.append(record.charged[COST] if record.charged else 0)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.balance().spent[COST] == sum(paid)
    assert len(paid) == account.balance().spent[0] > 5
    assert account.balance().held == (0,) * 5


def test_of_many_threads_that_settle_one_call_one_succeeds(tmp_path: Path) -> None:
    account = make(tmp_path)
    account.hold("a", amounts(cost_usd=0.5), 1)
    outcomes: list[str] = []
    start = threading.Barrier(8)

    def settle(bill: int) -> None:
        start.wait()
        try:
            account.settle("a", amounts(cost_usd=bill / 100), 2)
            outcomes.append("settled")
        except AlreadySettled:
            outcomes.append("was settled")

    threads = [threading.Thread(target=settle, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["settled"] + ["was settled"] * 7

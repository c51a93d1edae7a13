"""Workers are killed at any moment; afterwards the books are right to the nano-dollar."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.budget.durable import DurableAccount
from harness_lab.outcome import COST
from harness_lab.usage import amounts, nusd

if TYPE_CHECKING:
    from harness_lab.budget.durable_books import HoldRecord

sys.path.insert(0, str(Path(__file__).parent))
try:
    from durable_worker import FAST, read_log
finally:
    sys.path.pop(0)

WORKER = Path(__file__).with_name("durable_worker.py")
CAP_USD = 500.0
SLOTS = 3


class Slot:
    """One worker after another, each with a log of its own."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder, self.number, self.turn = folder, number, 0
        self.process: subprocess.Popen[str] | None = None

    def log(self, turn: int) -> Path:
        return self.folder / f"w{self.number}.{turn}.log"

    def start(self, account: str, seed: int) -> None:
        self.turn += 1
        arguments = [account, str(self.log(self.turn)), str(self.log(self.turn - 1)), str(seed)]
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def kill(self) -> str:
        """Kill it with SIGKILL once it works; return what it complained about before."""
        process = self.process
        assert process is not None
        process.kill()
        _, complaint = process.communicate()
        assert process.returncode == -9, complaint
        return complaint


def run_and_kill(folder: Path, account: DurableAccount, *, kills: int, seed: int) -> int:
    """Kill workers at random moments; return the most that was ever seen spent and held together, nano-dollars."""
    rng = random.Random(seed)  # noqa: S311 - a test
    slots = [Slot(folder, number) for number in range(SLOTS)]
    most = 0
    for slot in slots:
        slot.start(account.path, rng.randrange(2**31))
    for kill in range(kills):
        slot = slots[kill % SLOTS]
        process = slot.process
        assert process is not None
        assert process.stdout is not None
        if rng.random() < 0.9:  # some are killed while they still start
            assert process.stdout.readline() == "ready\n", process.communicate()
        until = time.monotonic() + rng.expovariate(1 / 0.03)
        while time.monotonic() < until:
            for balance in account.balances():
                assert balance.spent[COST] + balance.held[COST] <= (balance.limits[COST] or 0)
                most = max(most, balance.spent[COST] + balance.held[COST])
        assert slot.kill() == ""
        if kill < kills - SLOTS:
            slot.start(account.path, rng.randrange(2**31))
    return most


def check_books(folder: Path, account: DurableAccount) -> Counter[str]:
    """Hold the account against the logs, after every hold has expired; return what was counted."""
    account.expire(time.time_ns() + 10**12)
    assert account.open_holds() == ()
    records = {record.id: record for record in account.history()}
    bounds: dict[str, int] = {}
    bills: dict[str, set[tuple[int | None, str]]] = {}
    acknowledged: dict[str, set[str]] = {}
    for log in folder.glob("*.log"):
        for what, name, *more in read_log(str(log)):
            if what == "hold":
                bounds[name] = more[0]
            elif what == "settle":
                bills.setdefault(name, set()).add((more[0], more[1]))
            else:
                acknowledged.setdefault(name, set()).add(what)
    assert set(records) <= set(bounds)  # nothing was made up
    check_rolling(account)
    total = 0
    counts: Counter[str] = Counter(operations=len(bounds))
    for name, bound in bounds.items():
        said = acknowledged.get(name, set())
        charge = expected_charge(records.get(name), bound, bills.get(name, set()), said, counts)
        total += charge
    assert total == account.balance().spent[COST]
    assert account.balance().held == (0,) * 5
    assert sum(r.charged[COST] for r in records.values() if r.charged) == total
    counts["spent_nusd"] = total
    return counts


def check_rolling(account: DurableAccount) -> None:
    """Once its window has passed over everything, a rolling budget is as good as new: nothing leaked into it."""
    much_later = time.time_ns() + 2 * 10**12
    everything = FAST.limits
    account.hold("all of it", everything, much_later, periods=[(FAST, "all")])
    (fast,) = (balance for balance in account.balances() if balance.budget == "fast")
    assert (fast.spent, fast.unknown) == ((0,) * 5, (0,) * 5)
    assert fast.held == tuple(amount or 0 for amount in everything)
    account.settle("all of it", amounts(), much_later, status="unsent")


def expected_charge(
    record: HoldRecord | None, bound: int, bills: set[tuple[Any, str]], said: set[str], counts: Counter[str]
) -> int:
    """Return what a call must have been charged by its worker's log, and check what the account says of it."""
    if record is None:
        assert said <= {"refused"}  # a hold that was confirmed is never lost
        counts["refused" if said else "killed before the hold"] += 1
        return 0
    assert "refused" not in said
    assert len(bills) <= 1
    if record.state == "settled":
        ((bill, status),) = bills
        counts["late" if record.late else "settled"] += 1
        charge = 0 if status == "unsent" else bound if bill is None else bill
    else:
        assert not said & {"settled", "was settled"}  # a settlement that was confirmed is never lost
        counts["expired"] += 1
        charge = bound
    assert record.bound[COST] == bound
    assert record.charged is not None
    assert record.charged[COST] == charge
    return charge


def kill_test(folder: Path, *, kills: int, seed: int) -> Counter[str]:
    path = folder / "account.db"
    account = DurableAccount.create(
        path, amounts(cost_usd=CAP_USD), now_ns=time.time_ns(), hold_seconds=0.25, synchronous="normal", busy_seconds=30
    )
    most = run_and_kill(folder, account, kills=kills, seed=seed)
    counts = check_books(folder, account)
    assert most <= nusd(CAP_USD)
    account.close()
    return counts


def test_two_hundred_and_ten_kills_leave_books_that_are_right_to_the_nano_dollar(tmp_path: Path) -> None:
    counts = kill_test(tmp_path, kills=210, seed=20)
    assert counts["operations"] > 210, counts
    assert counts["settled"] > 0, counts
    assert counts["expired"] > 0, counts


@pytest.mark.slow
def test_two_thousand_kills_leave_books_that_are_right_to_the_nano_dollar(tmp_path: Path) -> None:
    counts = kill_test(tmp_path, kills=2000, seed=21)
    assert counts["late"] > 0, counts

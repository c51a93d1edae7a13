"""What a durable account costs: admissions a second, against bare transactions of the same database in the same run."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lab.bench.timing import entry
from harness_lab.budget.durable import DurableAccount
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.budget.durable_store import Synchronous

_BOUND = amounts(calls=1, tokens=4_000, cost_usd=0.05)
_SPENT = amounts(calls=1, input=1200, tokens=1500, fresh=1500, cost_usd=0.0005)


def durable_account_ratio(*, quick: bool = False) -> dict[str, object]:
    """Return admissions a second of a durable account over bare SQLite transactions a second (``synchronous=normal``).

    A bare transaction takes the write lock, updates one row by its key and commits: what any durable counter costs at
    least. With the ratio come both rates, and those of a whole call (admission and settlement: two commits) and of
    commits that survive a loss of power (``full``, the default of an account), medians over the repeats.
    """
    size, repeats = (100, 3) if quick else (2_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        normal = [_rates(Path(folder) / f"n{n}", "normal", size) for n in range(repeats)]
        full = [_rates(Path(folder) / f"f{n}", "full", size // 10) for n in range(repeats)]
    values = [admissions / bare for admissions, _, bare in normal]
    what = "durable admissions a second over bare SQLite transactions a second, one process, synchronous normal"
    durable = statistics.median(admissions / bare for admissions, _, bare in full)
    return (
        entry(values, what)
        | {"value_full": round(durable, 3)}
        | {
            f"{name}_per_s_{mode}": round(statistics.median(rates[i] for rates in measured))
            for mode, measured in (("normal", normal), ("full", full))
            for i, name in enumerate(("admissions", "calls", "bare_transactions"))
        }
    )


def _rates(folder: Path, synchronous: Synchronous, size: int) -> tuple[float, float, float]:
    """Return admissions, whole calls and bare transactions a second."""
    folder.mkdir()
    account = DurableAccount.create(
        folder / "account.db", amounts(cost_usd=1e6), now_ns=0, hold_seconds=1e6, synchronous=synchronous
    )
    bare = _bare(folder / "bare.db", synchronous)
    hold = update = 0.0
    for number in range(size):  # in turn, so that both meet the same load
        hold += _timed(lambda n: account.hold(f"run/{n}", _BOUND, n), number)
        update += _timed(lambda n: _transaction(bare, n), number)
    settle = sum(_timed(lambda n: account.settle(f"run/{n}", _SPENT, n), number) for number in range(size))
    account.close()
    bare.close()
    return size / hold, size / (hold + settle), size / update


def _timed(step: Callable[[int], object], number: int) -> float:
    start = time.perf_counter()
    step(number)
    return time.perf_counter() - start


def _bare(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, spent INTEGER)")
    connection.execute("INSERT INTO account VALUES (1, 0)")
    return connection


def _transaction(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE account SET spent = spent + ? WHERE id = 1", (number,))
    connection.execute("COMMIT")

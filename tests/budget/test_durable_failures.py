"""Whatever is wrong with the file: one clear error, and nothing is admitted."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harness_lab.budget.durable import DurableAccount
from harness_lab.budget.durable_books import HoldRecord
from harness_lab.errors import AccountUnavailable, InputError
from harness_lab.outcome import COST
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from pathlib import Path

BOUND = amounts(cost_usd=0.1)


def make(folder: Path, **options: object) -> DurableAccount:
    path = folder / "account.db"
    return DurableAccount.create(path, amounts(cost_usd=1), now_ns=0, busy_seconds=0, **options)  # type: ignore[arg-type]


def refuses(account: DurableAccount, match: str) -> None:
    with pytest.raises(AccountUnavailable, match=match):
        account.hold("x", BOUND, 5)


def test_a_locked_file_refuses_and_works_again_afterwards(tmp_path: Path) -> None:
    account = make(tmp_path)
    other = sqlite3.connect(account.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    refuses(account, "database is locked")
    other.execute("ROLLBACK")
    other.close()
    assert isinstance(account.hold("x", BOUND, 5), HoldRecord)


def test_a_settlement_that_could_not_be_written_can_be_tried_again(tmp_path: Path) -> None:
    account = make(tmp_path)
    account.hold("a", BOUND, 1)
    other = sqlite3.connect(account.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(AccountUnavailable):
        account.settle("a", BOUND, 2)
    other.execute("ROLLBACK")
    other.close()
    assert account.settle("a", BOUND, 3).charged is not None


def test_a_missing_file_is_not_a_fresh_account(tmp_path: Path) -> None:
    with pytest.raises(AccountUnavailable, match="no such file"):
        DurableAccount(tmp_path / "account.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_removed_or_replaced_while_it_is_open_refuses(tmp_path: Path) -> None:
    account = make(tmp_path)
    copy = tmp_path / "copy.db"
    shutil.copy(account.path, copy)
    os.replace(copy, account.path)
    refuses(account, "was replaced while it was open")
    os.remove(account.path)
    refuses(account, "no such file")


def test_a_file_that_holds_something_else_refuses_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "account.db"
    path.write_bytes(b"not a database, by any means" * 100)
    before = path.read_bytes()
    with pytest.raises(AccountUnavailable, match="not a database"):
        DurableAccount(path)
    with pytest.raises(AccountUnavailable, match="not a database"):
        DurableAccount.create(path, amounts(cost_usd=1), now_ns=0)
    assert path.read_bytes() == before


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "account.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(AccountUnavailable, match="holds no account"):
        DurableAccount.create(path, amounts(cost_usd=1), now_ns=0, if_exists="open")
    assert path.read_bytes() == before


def test_another_schema_version_refuses(tmp_path: Path) -> None:
    account = make(tmp_path)
    account.close()
    with sqlite3.connect(account.path) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(AccountUnavailable, match="schema is version 99, this package reads version 1"):
        DurableAccount(account.path)


def test_a_damaged_file_refuses(tmp_path: Path) -> None:
    account = make(tmp_path)
    for number in range(50):
        account.hold(str(number), amounts(cost_usd=0.001), 1)
    account.close()
    with open(account.path, "r+b") as file:
        size = os.path.getsize(account.path)
        for offset in range(4096, size, 64):
            file.seek(offset)
            file.write(b"\xff" * 32)
    with pytest.raises(AccountUnavailable):
        DurableAccount(account.path).hold("x", BOUND, 5)


def test_a_full_disk_refuses_and_nothing_has_moved(tmp_path: Path) -> None:
    account = make(tmp_path, synchronous="normal")
    account.hold("a", BOUND, 1)
    with account._store.transaction(2) as (db, _):
        pages = db.execute("PRAGMA page_count").fetchone()[0]
    account._store._connection.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[union-attr]
    held = account.balance().held[COST]
    admitted = 1

    def fill() -> None:
        nonlocal admitted
        for number in range(10_000):
            account.hold(f"{number}", amounts(cost_usd=0), 3, note="x" * 500)
            admitted += 1

    with pytest.raises(AccountUnavailable, match="full"):
        fill()
    assert account.balance().held[COST] == held
    assert len(account.open_holds()) == admitted


@pytest.mark.skipif(
    os.geteuid() != 0 and not os.access("/", os.W_OK), reason="a read-only file is set by its mode here"
)
def test_a_read_only_database_refuses_as_root_too(tmp_path: Path) -> None:
    account = make(tmp_path)
    account.balance()
    account._store._connection.execute("PRAGMA query_only = on")  # type: ignore[union-attr]
    refuses(account, "readonly")


def test_a_read_only_file_refuses_for_everybody_else(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes to read-only files")
    account = make(tmp_path)
    account.close()
    os.chmod(account.path, 0o444)
    refuses(DurableAccount(account.path), "readonly")


def test_amounts_beyond_64_bits_refuse_and_nothing_has_moved(tmp_path: Path) -> None:
    account = DurableAccount.create(tmp_path / "a.db", amounts(), now_ns=0)
    for name in ("a", "b"):
        account.hold(name, (1, None, None, None, None), 1)
    account.settle("a", (1, None, None, None, 9 * 10**18), 2)
    with pytest.raises(AccountUnavailable):
        account.settle("b", (1, None, None, None, 9 * 10**18), 3)
    assert account.balance().spent[COST] == 9 * 10**18


def test_an_account_is_created_once_and_with_one_meaning(tmp_path: Path) -> None:
    account = make(tmp_path)
    with pytest.raises(InputError, match=r"^path: expected no account there yet"):
        make(tmp_path)
    assert make(tmp_path, if_exists="open").limits == account.limits
    with pytest.raises(InputError, match=r"^limits and unknown_usage: expected those of the account"):
        make(tmp_path, if_exists="open", unknown_usage="release")


def test_eight_processes_that_create_it_at_once_make_one_account(tmp_path: Path) -> None:
    program = (
        "import sys; from harness_lab.budget.durable import DurableAccount; from harness_lab.usage import amounts;"
        "a = DurableAccount.create(sys.argv[1], amounts(cost_usd=1), now_ns=0, if_exists='open', busy_seconds=30);"
        "sys.stdin.readline(); a.hold(sys.argv[2], amounts(cost_usd=0.1), 1)"
    )
    path = str(tmp_path / "account.db")
    workers = [
        subprocess.Popen([sys.executable, "-c", program, path, str(n)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in range(8)
    ]
    assert [worker.communicate(b"\n")[1] for worker in workers] == [b""] * 8
    assert len(DurableAccount(path).open_holds()) == 8


def test_a_child_after_a_fork_uses_a_connection_of_its_own(tmp_path: Path) -> None:
    program = (
        "import os, sys; from harness_lab.budget.durable import DurableAccount; from harness_lab.usage import amounts;"
        "a = DurableAccount.create(sys.argv[1], amounts(cost_usd=1), now_ns=0);"
        "a.hold('parent', amounts(cost_usd=0.1), 1);"
        "child = os.fork(); a.hold('child' if not child else 'after', amounts(cost_usd=0.1), 2);"
        "code = os.waitpid(child, 0)[1] if child else os._exit(0); sys.exit(code)"
    )
    path = str(tmp_path / "account.db")
    subprocess.run([sys.executable, "-c", program, path], check=True)
    assert {hold.id for hold in DurableAccount(path).open_holds()} == {"parent", "child", "after"}


def test_the_error_survives_a_worker_process() -> None:
    error = AccountUnavailable("/var/account.db", "database is locked")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - what joblib does
    assert (str(again), again.path, again.reason) == (str(error), error.path, error.reason)
    assert str(error) == "account /var/account.db is unavailable: database is locked"

"""Killed processes: the journal is the commit point, and resuming brings ledger and audit log up to it."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_lab.delegation import missing_entries, read_journal

if sys.platform == "win32":  # pragma: no cover
    pytest.skip("kills processes by POSIX signals", allow_module_level=True)

SCRIPT = Path(__file__).with_name("killed_dispatcher.py")
_spec = importlib.util.spec_from_file_location("killed_dispatcher", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
killed: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(killed)


def check(folder: Path) -> dict[str, int]:
    """Resume, and hold journal, ledger and audit log against each other; return what resuming did."""
    ledger = killed.SpendLedger(file=folder / "ledger.jsonl", sync=False)
    chain = killed.AuditChainStore(folder / "audit", key=killed.KEY, sync=False)
    done = killed.resume("run-1", folder, ledger=ledger, chain=chain, sync=False)
    rows = read_journal(done.journal.path) if done.journal.path.exists() else []
    assert [row["node_name"] for row in rows] == [f"node-{i}" for i in range(len(rows))]
    assert [charge.event_hash for charge in ledger.charges] == [row["event_hash"] for row in rows]
    assert ledger.status().spent_nusd == sum(125_000_000 * (1 + (row["tier"] != "batch")) for row in rows)
    assert missing_entries(rows, chain.entries(), run_id="run-1") == []
    assert not rows or chain.verify().intact
    assert not (done.journal.path.parent / "journal.intent").exists()
    again = killed.resume("run-1", folder, ledger=ledger, chain=chain, sync=False)
    assert (again.undone, again.charged, again.audited, again.torn_bytes) == (0, 0, 0, 0)
    assert again.journal.head() == done.journal.head()
    return {
        "rows": len(rows),
        "undone": done.undone,
        "charged": done.charged,
        "audited": done.audited,
        "torn": done.torn_bytes,
    }


def in_a_child(work: Any) -> int:
    """Run something in a forked child; return the signal that ended it, 0 if none did."""
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] & 0x7F


def in_forks(code: str, *arguments: str) -> str:
    """Run code in a fresh, thread-free interpreter that may fork; return what it prints."""
    command = [sys.executable, "-W", "error", "-c", code, str(SCRIPT.parent), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


RANDOM_KILLS = """
import json, os, random, signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_killed_runs as t
kills, seed = int(sys.argv[3]), int(sys.argv[4])
luck, done = random.Random(seed), {}
for kill in range(kills):
    if kill % 100 == 0:
        folder = Path(sys.argv[2]) / str(kill)  # checking reads all of it
        folder.mkdir()
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        sinks = t.killed.opened(str(folder))
        os.write(tell, b"!")
        while True:
            t.killed.one_more(*sinks, size=1 + sinks[0].event_count() % 3)
    os.read(ready, 1)
    time.sleep(luck.random() * 0.01)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] & 0x7F == signal.SIGKILL
    os.close(ready), os.close(tell)
    for name, n in t.check(folder).items():
        done[name] = max(done.get(name, 0), n) if name == "rows" else done.get(name, 0) + (n > 0)
print(json.dumps(done))
"""

EVERY_STEP = """
import json, os, shutil, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_killed_runs as t
root, died = Path(sys.argv[2]), {"dispatch": 0, "resume": 0, "undone": 0, "charged": 0, "audited": 0, "torn": 0}
for step, torn in [(step, torn) for step in range(1, 30) for torn in (0, 1)]:
    folder = root / f"{step}-{torn}"
    folder.mkdir()
    t.killed.one_more(*t.killed.opened(str(folder)), size=2)
    ended = t.in_a_child(lambda: t.killed.main([str(folder), str(step), str(torn)]))
    died["dispatch"] += ended == signal.SIGKILL
    for again in range(1, 30):
        copy = Path(f"{folder}-{again}")
        shutil.copytree(folder, copy)
        stopped = t.in_a_child(lambda: t.killed.resume_and_die(str(copy), again, torn=torn == 1))
        died["resume"] += stopped == signal.SIGKILL
        t.check(copy)
        if stopped == 0:
            break
    did = t.check(folder)
    assert did["rows"] in (2, 5), did
    for name in ("undone", "charged", "audited", "torn"):
        died[name] += did[name] > 0
    if ended == 0:
        assert did["rows"] == 5
print(json.dumps(died))
"""


def test_a_kill_at_every_call_that_touches_the_disk_leaves_all_three_agreeing(tmp_path: Path) -> None:
    died = json.loads(in_forks(EVERY_STEP, str(tmp_path)).splitlines()[-1])
    assert min(died.values()) > 0, died
    assert died["dispatch"] >= 16
    assert died["resume"] >= 16


def test_a_hundred_kills_at_random_moments_leave_all_three_agreeing(tmp_path: Path) -> None:
    done = json.loads(in_forks(RANDOM_KILLS, str(tmp_path), "120", "1"))
    assert done["rows"] > 100
    assert done["charged"] + done["audited"] + done["torn"] + done["undone"] > 0, done


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_thousands_of_kills_at_random_moments_leave_all_three_agreeing(tmp_path: Path, seed: int) -> None:
    assert json.loads(in_forks(RANDOM_KILLS, str(tmp_path), "400", str(seed)))["rows"] > 100


def test_a_process_that_is_killed_from_outside_can_be_resumed(tmp_path: Path) -> None:
    for wait in range(5):
        child = subprocess.Popen([sys.executable, str(SCRIPT), str(tmp_path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.read(5)
        sum(range(wait * 20_000))  # some later moment
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        child.stdout.close()
        check(tmp_path)

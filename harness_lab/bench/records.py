"""What reading records costs: megabytes a second and memory, and the same files read by ccusage in the same run.

As a command: ``python -m harness_lab.bench.records --size-mb 1024 --ccusage PATH``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lab.bench.timing import entry
from harness_lab.bench.transcripts import write_transcripts

if TYPE_CHECKING:
    from collections.abc import Iterator

_READ = """
import json, resource, sys, time
from harness_lab.settlements import read
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start, cpu = time.perf_counter(), time.process_time()
table = read(sys.argv[1], ids="kept")
spent = {"wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - cpu}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
total = int(table.nodes["input_total"].sum() + table.nodes["output"].sum())
print(json.dumps({**spent, "calls": len(table.calls), "tokens": total, "before_kib": before, "peak_kib": peak}))
"""


def records_speed(
    *, quick: bool = False, size_mb: float | None = None, ccusage: str | None = None
) -> dict[str, object]:
    """Return how fast transcripts are read, on one core.

    Parameters
    ----------
    quick : bool
        A smaller set and fewer repeats: a smoke test.
    size_mb : float, optional
        Size of the set, megabytes; None: 4 (quick) or 256.
    ccusage : str, optional
        The program to compare with; None: the one on PATH, if there is one.

    Returns
    -------
    dict
        `value`, `low`, `high`: megabytes a second of processor time (reading alone, without the interpreter's start);
        `ratio_to_ccusage`: ccusage's processor time over ours, whole process with start (above 1: we are faster), or
        None without it; `calls`, and `same_tokens`: whether both found as many tokens.
    """
    size = size_mb if size_mb is not None else 4.0 if quick else 256.0
    program = ccusage or shutil.which("ccusage")
    with tempfile.TemporaryDirectory() as folder, _one_core():
        place = Path(folder)
        write_transcripts(place, size_mb=size)
        size = sum(path.stat().st_size for path in place.rglob("*.jsonl")) / 2**20
        ours, theirs = [], []
        for _ in range(2 if quick else 5):  # in turn, so that both meet the same load
            ours.append(_ours(place))
            if program is not None:
                theirs.append(_ccusage(program, place))
    speeds = [size / run["cpu_s"] for run in ours]
    ratios = [their["cpu_s"] / our["cpu_s"] for our, their in zip(ours, theirs, strict=False)]
    whole = [their["cpu_s"] / our["process_s"] for our, their in zip(ours, theirs, strict=False)]
    beside = f"; {statistics.median(ratios):.2f} times as fast as ccusage" if ratios else "; no ccusage is at hand"
    said = entry(speeds, f"transcripts read, MB a second of processor time, {size:,.0f} MB on one core{beside}")
    return said | {
        "calls": int(ours[0]["calls"]),
        "ratio_to_ccusage": entry(ratios, "ccusage's processor time over that of reading")["value"] if ratios else None,
        "ratio_whole_process": entry(whole, "the same, interpreter's start included")["value"] if whole else None,
        "same_tokens": all(run["tokens"] == theirs[0]["tokens"] for run in ours) if theirs else None,
    }


def records_memory(*, quick: bool = False, size_mb: float | None = None) -> dict[str, object]:
    """Return by how much the peak of memory grows with the size of the input, bytes a call.

    Two sets are read, one four times the other. What grows is the table and one key a call; transcripts themselves are
    never held.
    """
    size = size_mb if size_mb is not None else 4.0 if quick else 128.0
    peaks = []
    for factor in (1, 4):
        with tempfile.TemporaryDirectory() as folder:
            write_transcripts(Path(folder), size_mb=size * factor)
            peaks.append(_ours(Path(folder)))
    small, large = peaks
    calls = large["calls"] - small["calls"]
    grown = (large["peak_kib"] - small["peak_kib"]) * 1_024
    what = f"bytes of peak memory a call, from {size:,.0f} to {4 * size:,.0f} MB"
    share = grown / (3 * size * 2**20)
    return entry([grown / calls], what) | {
        "share_of_input": round(share, 4),
        "peak_mb": round(large["peak_kib"] / 1_024),
    }


@contextlib.contextmanager
def _one_core() -> Iterator[None]:
    """Keep this process and those it starts on one core, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _ours(folder: Path) -> dict[str, float]:
    """Read a folder in a process of its own."""
    spent, out = _timed([sys.executable, "-c", _READ, str(folder / "projects")], {})
    found: dict[str, float] = json.loads(out)
    return {**found, "process_s": spent}


def _ccusage(program: str, folder: Path) -> dict[str, float]:
    command = [program, "claude", "session", "--json", "--offline"]
    spent, out = _timed(command, {"CLAUDE_CONFIG_DIR": str(folder)})
    return {"cpu_s": spent, "tokens": float(json.loads(out)["totals"]["totalTokens"])}


def _timed(command: list[str], variables: dict[str, str]) -> tuple[float, bytes]:
    """Run a command and return its processor time, seconds, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, check=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ran.stdout


def main() -> None:
    """Measure and print as JSON."""
    parser = argparse.ArgumentParser(description="How fast transcripts are read, and how much memory that takes.")
    parser.add_argument("--size-mb", type=float, default=256.0)
    parser.add_argument("--ccusage", default=None, help="the program to compare with; default: the one on PATH")
    parser.add_argument("--memory", action="store_true", help="also measure memory, on a quarter of the size and on it")
    given = parser.parse_args()
    found = {"records_speed": records_speed(size_mb=given.size_mb, ccusage=given.ccusage)}
    if given.memory:
        found["records_memory"] = records_memory(size_mb=given.size_mb / 4)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

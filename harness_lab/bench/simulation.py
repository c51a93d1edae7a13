"""What simulation costs: the same trees on the kernel, on the fast engine and in SimPy, in turn; workers, time, memory.

Times are processor times of one process, so that other work on the machine disturbs the ratios less; the gain of a
second worker is wall time.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from harness_lab.bench.timing import entry
from harness_lab.bench.trees import SLOTS, TIMEOUT_S, money, tree_experiment

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.simulate import Experiment

_SIMPY = "SimPy (processes, Resource, timeouts, interrupts; the same policy objects for money and tokens)"
_STREAM = """
import resource, sys, tempfile
from pathlib import Path
from harness_lab.bench.trees import tree_experiment
engine, runs = sys.argv[1], int(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    tree_experiment(runs).stream(Path(folder) / "rows.parquet", engine=engine, backend="serial", progress=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def engine_ratios(*, quick: bool = False) -> dict[str, dict[str, object]]:
    """Return how many simulated calls a second the engines make in the time in which SimPy makes one.

    Every engine simulates the same trees in turn, and their rows have to be the same.

    Returns
    -------
    dict
        ``kernel_vs_simpy``; ``kernel_engine_only_vs_simpy``, with the time that the policy objects for money and tokens
        take by themselves out of both sides; ``kernel_vs_simpy_events``, against SimPy driving the same loop with bare
        events; ``fast_vs_simpy``. Each with the microseconds that a call takes.
    """
    from harness_lab.bench import simpy_agents, simpy_events
    from harness_lab.bench.conversation import Conversation

    runs, repeats = (20, 2) if quick else (600, 7)
    experiment = tree_experiment(runs)
    world, spec = experiment.world(), experiment.policies[0]
    talk = Conversation(world, money(), range(runs), slots=SLOTS, timeout_s=TIMEOUT_S)
    ways: dict[str, Callable[[], Any]] = {
        "kernel": lambda: world.block(spec, range(runs), engine="kernel", keep_calls=False, keep_decisions=False)[0],
        "simpy": lambda: simpy_agents.simulate(world, money(), range(runs), slots=SLOTS, timeout_s=TIMEOUT_S),
        "events": lambda: simpy_events.simulate(world, spec, range(runs)),
    }
    check_same({name: way() for name, way in ways.items()})
    spent = [{name: _seconds(way) for name, way in ways.items()} | {"money": talk.seconds()} for _ in range(repeats)]
    calls = talk.calls
    found = {
        "kernel_vs_simpy": entry([s["simpy"] / s["kernel"] for s in spent], f"kernel against {_SIMPY}"),
        "kernel_engine_only_vs_simpy": entry(
            [(s["simpy"] - s["money"]) / (s["kernel"] - s["money"]) for s in spent],
            "the same, with the time of the policy objects for money and tokens taken out of both sides",
        ),
        "kernel_vs_simpy_events": entry(
            [s["events"] / s["kernel"] for s in spent], "kernel against SimPy driving the same loop with bare events"
        ),
    }
    if (fast := _fast(quick=quick, simpy=[s["simpy"] / calls for s in spent])) is not None:
        found["fast_vs_simpy"] = fast
    microseconds = {name: round(min(s[name] for s in spent) / calls * 1e6, 2) for name in spent[0]}
    found["kernel_vs_simpy"] |= {"us_per_call": microseconds, "calls": calls, "load": round(os.getloadavg()[0], 1)}
    return found


def conservation_share(*, quick: bool = False) -> dict[str, object]:
    """Return the share of the kernel's time that goes into asserting that the books of each run close."""
    from harness_lab.simulate.conservation import check_conserved
    from harness_lab.simulate.rows import Rows

    runs = 20 if quick else 400
    experiment = tree_experiment(runs)
    world, spec = experiment.world(), experiment.policies[0]
    ended, rows = spec.start("0"), Rows()

    def check() -> None:
        for _ in range(100 * runs):  # a check looks at the same fields, whatever the run was
            check_conserved(ended, rows, spec)

    def simulate() -> None:
        world.block(spec, range(runs), engine="kernel", keep_calls=False, keep_decisions=False)

    shares = [_seconds(check) / 100 / _seconds(simulate) for _ in range(2 if quick else 5)]
    return entry(shares, "time of asserting conservation on every run, as a share of the kernel's time")


def check_same(rows: dict[str, Any]) -> None:
    """Refuse to compare engines whose rows differ.

    Raises
    ------
    AssertionError
        If they do.
    """
    kept = {name: sorted(found.nodes, key=lambda row: row[:2]) for name, found in rows.items()}
    for name, found in kept.items():
        if found != kept["kernel"]:
            raise AssertionError(f"{name} does not give the rows of the kernel")


def _fast(*, quick: bool, simpy: list[float]) -> dict[str, object] | None:
    from harness_lab.simulate import fast

    if not fast.installed():
        return None
    experiment = tree_experiment(50 if quick else 20_000)
    world, spec, runs = experiment.world(fast=True), experiment.policies[0], range(experiment.runs)

    def block(some: range) -> Any:
        return world.block(spec, some, engine="fast", keep_calls=False, keep_decisions=False)[0]

    start = time.perf_counter()
    block(runs[:1])
    loaded = time.perf_counter() - start
    calls = sum(block(runs).attempts())
    values = [_seconds(lambda: block(runs)) / calls for _ in simpy]
    ratios = [mine / own for mine, own in zip(simpy, values, strict=True)]
    more = {"us_per_call": round(min(values) * 1e6, 4), "load_s": round(loaded, 2)}
    return entry(ratios, f"fast engine against {_SIMPY}") | more


def workers2_speedup(*, quick: bool = False) -> dict[str, object]:
    """Return how much faster two worker processes are than one, wall time; start-up is not counted.

    Wall time says little on a busy machine: beside it stand the load of the machine, and the bound that what is not
    parallel (the time of this process while two others work) puts on the gain.
    """
    experiment = tree_experiment(300 if quick else 6_000)
    _wall(experiment, workers=2, runs=range(4))  # starts them
    pairs = [(_wall(experiment, workers=1), _wall(experiment, workers=2)) for _ in range(1 if quick else 5)]
    serial = _seconds(lambda: experiment.run(engine="kernel", backend="serial", progress=False))
    alone = _seconds(lambda: _wall(experiment, workers=2))
    what = "wall time with one worker process over wall time with two, kernel"
    return entry([one / two for one, two in pairs], what) | {
        "bound": round(2 * serial / (serial + alone), 3),
        "load": round(os.getloadavg()[0], 1),
    }


def time_exponent(*, quick: bool = False) -> dict[str, object]:
    """Return the exponent b with which the time of an experiment grows in its runs, time = a runs^b."""
    sizes = (100, 400, 1_600) if quick else (1_000, 4_000, 16_000)
    kernel = [_exponent(sizes, "kernel") for _ in range(1 if quick else 3)]
    more: dict[str, object] = {"runs": list(sizes)}
    from harness_lab.simulate import fast

    if fast.installed():
        large = (1_000, 4_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
        _stream(large[0], "fast")
        more |= {"fast": round(_exponent(large, "fast"), 3), "fast_runs": list(large)}
    return (
        entry(kernel, "exponent of time in runs, streamed to a file, kernel; beside it that of the fast engine") | more
    )


def rss_growth(*, quick: bool = False) -> dict[str, object]:
    """Return peak memory of ten times as many streamed runs over that of one time, each in a process of its own."""
    from harness_lab.simulate import fast

    engine = "fast" if fast.installed() else "kernel"
    few = 1_000 if quick else 100_000
    peaks = [_peak(engine, runs) for runs in (few, 10 * few)]
    what = f"peak memory of {10 * few:,} runs over that of {few:,}, streamed to a file, {engine} engine"
    return entry([peaks[1] / peaks[0]], what) | {"peak_mib": [round(peak / 1024) for peak in peaks]}


def sweep1000_vs_one_run(*, quick: bool = False) -> dict[str, object]:
    """Return the time of a sweep over a thousand ceilings, in times of one simulation of the same runs."""
    import numpy as np

    from harness_lab.policies import shared_ledger
    from harness_lab.simulate.sweep import sweep

    experiment = tree_experiment(50 if quick else 1_500).with_policies(shared_ledger(10_000, 50.0))
    values = np.linspace(0.001, 2.0, 1000)
    one = lambda: experiment.run(engine="kernel", backend="serial", progress=False)  # noqa: E731
    ratios = [
        _seconds(lambda: sweep(experiment, "cost", values, progress=False)) / _seconds(one)
        for _ in range(1 if quick else 5)
    ]
    return entry(ratios, "every outcome under each of 1,000 ceilings on cost, in simulations of the same runs")


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _wall(experiment: Experiment, *, workers: int, runs: range | None = None) -> float:
    start = time.perf_counter()
    experiment.run(engine="kernel", backend="loky", workers=workers, only=runs, progress=False)
    return time.perf_counter() - start


def _stream(runs: int, engine: Any) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        tree_experiment(runs).stream(path, engine=engine, backend="serial", progress=False)


def _exponent(sizes: tuple[int, ...], engine: str) -> float:
    """Return the slope of log time in log runs, by least squares."""
    points = [(math.log(runs), math.log(_seconds(lambda runs=runs: _stream(runs, engine)))) for runs in sizes]  # type: ignore[misc]
    mean_x, mean_y = (math.fsum(values) / len(points) for values in zip(*points, strict=True))
    above = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    return above / math.fsum((x - mean_x) ** 2 for x, _ in points)


def _peak(engine: str, runs: int) -> int:
    """Return the peak resident memory of a process that streams some runs, KiB."""
    done = subprocess.run(  # noqa: S603 - this interpreter, this program
        [sys.executable, "-c", _STREAM, engine, str(runs)], check=True, capture_output=True, text=True
    )
    return int(done.stdout)

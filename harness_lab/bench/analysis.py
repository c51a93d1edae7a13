"""What an interactive question costs on 100,000 settlements, in group-bys of the same frame."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness_lab.analyze import ceiling, ceiling_curve, cheapest_ceiling, compare, flat_price, floors, reprice
from harness_lab.bench.tables import TABLES
from harness_lab.bench.timing import entry, ratios
from harness_lab.pricing import Price, PriceTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.settlements import Settlements


def question_ratios(*, quick: bool = False) -> dict[str, object]:
    """Return the slowest interactive question, in pandas group-bys of the same frame.

    Returns
    -------
    dict
        As :func:`harness_lab.bench.run_all` describes it, of the slowest question on the table on which it is slowest;
        beside it ``unit`` and ``each``, the median ratio of every question on every table, as ``table: question``.
    """
    size, repeats = (4_000, 3) if quick else (100_000, 5)
    found = {}
    for name, make in TABLES.items():
        table = make(size)
        plain = _timed(lambda table=table: group_by(table))  # type: ignore[misc]
        for question, ask in questions(table).items():
            found[f"{name}: {question}"] = entry(ratios(_timed(ask), plain, repeats=repeats), question)
    slowest = max(found, key=lambda name: float(found[name]["value"]))  # type: ignore[arg-type]
    what = f"{slowest}, the slowest interactive question on {size:,} settlements, in pandas group-bys of the same frame"
    each = {name: one["value"] for name, one in found.items()}
    return found[slowest] | {"what": what, "unit": "group-bys", "repeats": repeats, "each": each}


def questions(table: Settlements) -> dict[str, Callable[[], object]]:
    """Return the interactive questions by name."""
    prices = PriceTable({"m": (Price.usd_per_million(input=3, output=15, cache_read=0.3),)})
    policies = two_policies(table)
    return {
        "floor": lambda: floors(table),
        "ceiling": lambda: ceiling(table),
        "ceiling curve": lambda: ceiling_curve(table),
        "cheapest ceiling": lambda: cheapest_ceiling(table, failure_usd=1.0),
        "flat price": lambda: flat_price(table),
        "reprice": lambda: reprice(table, prices),
        "compare": lambda: compare(policies),
    }


def two_policies(table: Settlements) -> pd.DataFrame:
    """Return the nodes as if every second run were the one before it under another policy."""
    run = pd.factorize(table.nodes["run"])[0]
    return table.nodes.assign(policy=np.where(run % 2, "b", "a"), run=(run // 2).astype(str))


def group_by(table: Settlements) -> pd.DataFrame:
    """Group the whole frame once, in the plainest way: the measure of the rest."""
    return table.nodes.groupby("run", sort=False)[["cost_nusd", "input_total", "output", "calls"]].sum()


def _timed(ask: Callable[[], object]) -> Callable[[], float]:
    """Measure the thread that asks: BLAS threads that only wait for work would count in the time of the process."""

    def measure() -> float:
        start = time.thread_time()
        ask()
        return time.thread_time() - start

    return measure

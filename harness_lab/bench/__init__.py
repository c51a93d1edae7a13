"""Measured speed, as ratios within one run: machines differ, ratios less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.bench.analysis import question_ratios
from harness_lab.bench.durable import durable_account_ratio
from harness_lab.bench.enforcement import admit_settle_ratio, admit_settle_vs_prism
from harness_lab.bench.records import records_memory, records_speed
from harness_lab.bench.simulation import (
    conservation_share,
    engine_ratios,
    rss_growth,
    sweep1000_vs_one_run,
    time_exponent,
    workers2_speedup,
)
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["BENCHES", "run_all"]


BENCHES: tuple[Callable[..., dict[str, Any]], ...] = (
    admit_settle_ratio,
    admit_settle_vs_prism,
    durable_account_ratio,
    conservation_share,
    workers2_speedup,
    sweep1000_vs_one_run,
    time_exponent,
    rss_growth,
    question_ratios,
    records_speed,
    records_memory,
    engine_ratios,
)
_MANY = {
    engine_ratios: ("kernel_vs_simpy", "kernel_engine_only_vs_simpy", "kernel_vs_simpy_events", "fast_vs_simpy"),
}
"""Those that measure several things at once, and the name of each."""


def run_all(*, quick: bool = False, only: Sequence[str] = ()) -> dict[str, dict[str, object]]:
    """Run every benchmark, or some.

    Parameters
    ----------
    only : sequence of str
        Names of benchmarks, or of single figures of those that measure several; none: all.
    quick : bool
        Smaller sizes and fewer repeats: a smoke test, not a figure to quote.

    Returns
    -------
    dict
        By name: `value` (median), `low`, `high` (over repeats), `what` it is.

    Raises
    ------
    InputError
        If there is no benchmark of a name.
    """
    named = {bench: (bench.__name__, *_MANY.get(bench, ())) for bench in BENCHES}
    if unknown := set(only).difference(*named.values()):
        known = ", ".join(name for names in named.values() for name in names)
        raise InputError("only", expected=f"some of {known}", got=min(unknown))
    found: dict[str, dict[str, object]] = {}
    for bench, names in named.items():
        if only and not set(names) & set(only):
            continue
        made = bench(quick=quick)
        figures = made if bench in _MANY else {bench.__name__: made}
        whole = not only or bench.__name__ in only
        found |= {name: figure for name, figure in figures.items() if whole or name in only}
    return found

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
_MANY = (engine_ratios,)
"""Those that measure several things at once, each with its name."""


def run_all(*, quick: bool = False, only: Sequence[str] = ()) -> dict[str, dict[str, object]]:
    """Run every benchmark, or some.

    Parameters
    ----------
    only : sequence of str
        Names of the benchmarks to run; none: all.
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
    names = [bench.__name__ for bench in BENCHES]
    if unknown := [name for name in only if name not in names]:
        raise InputError("only", expected=f"some of {', '.join(names)}", got=unknown[0])
    found: dict[str, dict[str, object]] = {}
    for bench in BENCHES:
        if not only or bench.__name__ in only:
            made = bench(quick=quick)
            found |= made if bench in _MANY else {bench.__name__: made}
    return found

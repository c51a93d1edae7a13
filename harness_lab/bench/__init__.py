"""Measured speed, as ratios within one run: machines differ, ratios less."""

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

__all__ = ["run_all"]


def run_all(*, quick: bool = False) -> dict[str, dict[str, object]]:
    """Run every benchmark.

    Parameters
    ----------
    quick : bool
        Smaller sizes and fewer repeats: a smoke test, not a figure to quote.

    Returns
    -------
    dict
        By name: `value` (median), `low`, `high` (over repeats), `what` it is.
    """
    benches = (
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
    )
    found = {bench.__name__: bench(quick=quick) for bench in benches}
    return found | engine_ratios(quick=quick)

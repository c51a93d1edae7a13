"""Measured speed, as ratios within one run: machines differ, ratios less."""

from harness_lab.bench.analysis import question_ratios
from harness_lab.bench.durable import durable_account_ratio
from harness_lab.bench.enforcement import admit_settle_ratio
from harness_lab.bench.records import records_memory, records_speed
from harness_lab.bench.simulation import call_ratio, workers_speedup

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
        durable_account_ratio,
        call_ratio,
        workers_speedup,
        question_ratios,
        records_speed,
        records_memory,
    )
    return {bench.__name__: bench(quick=quick) for bench in benches}

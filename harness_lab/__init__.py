"""A lab for the budgets of AI agents.

If I give my agents these budgets, floors and limits, what happens? The lab answers with numbers and their uncertainty:
it puts the real enforcement modules into a stochastic world in virtual time, and reads the runs that were recorded.

The names below are what a notebook needs; they are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "harness_lab.analyze": ("ceiling", "ceiling_curve", "compare", "distribution", "run_table"),
    "harness_lab.export": ("TunedConfig", "translate"),
    "harness_lab.floors": ("FloorKey", "FloorTable", "preflight"),
    "harness_lab.policies": (
        "compose",
        "reservation_pool",
        "runtime_floors",
        "shared_ledger",
        "tree_limits",
        "unlimited",
    ),
    "harness_lab.pricing": ("Price", "PriceTable", "from_genai_prices"),
    "harness_lab.providers": ("MockProvider", "ModelProfile"),
    "harness_lab.settlements": ("Settlements", "read"),
    "harness_lab.simulate": (
        "AgentProfile",
        "Experiment",
        "Precision",
        "Scenario",
        "Spawn",
        "Workload",
        "explain",
        "fit_world",
        "load_experiment",
        "replay",
        "sweep",
    ),
    "harness_lab.stats": ("Distribution",),
    "harness_lab.usage": ("amounts",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names} | {
    "derive_floors": "harness_lab.analyze:floors"
}

__all__ = [  # noqa: RUF022 - by what one does with them
    # read
    "Settlements",
    "read",
    # limit
    "FloorKey",
    "FloorTable",
    "amounts",
    "compose",
    "preflight",
    "reservation_pool",
    "runtime_floors",
    "shared_ledger",
    "tree_limits",
    "unlimited",
    # simulate
    "AgentProfile",
    "Distribution",
    "Experiment",
    "MockProvider",
    "ModelProfile",
    "Precision",
    "Price",
    "PriceTable",
    "Scenario",
    "Spawn",
    "Workload",
    "explain",
    "fit_world",
    "from_genai_prices",
    "load_experiment",
    "replay",
    "sweep",
    # analyse
    "ceiling",
    "ceiling_curve",
    "compare",
    "derive_floors",
    "distribution",
    "run_table",
    # hand on
    "TunedConfig",
    "translate",
]

if TYPE_CHECKING:
    # Functions that bear their module's name are taken from there: a package that is half read has only the module.
    from harness_lab.analyze import ceiling, ceiling_curve, run_table
    from harness_lab.analyze.compare import compare
    from harness_lab.analyze.distribution import distribution
    from harness_lab.analyze.floors import floors as derive_floors
    from harness_lab.export import TunedConfig, translate
    from harness_lab.floors import FloorKey, FloorTable, preflight
    from harness_lab.policies import (
        compose,
        reservation_pool,
        runtime_floors,
        shared_ledger,
        tree_limits,
        unlimited,
    )
    from harness_lab.pricing import Price, PriceTable, from_genai_prices
    from harness_lab.providers import MockProvider, ModelProfile
    from harness_lab.settlements import Settlements
    from harness_lab.settlements.read import read
    from harness_lab.simulate import (
        AgentProfile,
        Experiment,
        Precision,
        Scenario,
        Spawn,
        Workload,
        fit_world,
        load_experiment,
    )
    from harness_lab.simulate.explain import explain
    from harness_lab.simulate.incident import replay
    from harness_lab.simulate.sweep import sweep
    from harness_lab.stats import Distribution
    from harness_lab.usage import amounts


def __getattr__(name: str) -> Any:
    """Load a name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'harness_lab' has no attribute {name!r}")
    home, _, attribute = _HOME[name].partition(":")
    value = getattr(import_module(home), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the names, loaded or not."""
    return sorted({*globals(), *__all__})

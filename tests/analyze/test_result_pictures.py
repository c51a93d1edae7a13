"""Results draw themselves through harness_lab.plots; what a picture shows is tested there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from harness_lab.analyze import ceiling, compare, distribution, floors

COST = np.random.default_rng(0).lognormal(20, 0.6, 200).astype(np.int64)
RUNS = pd.DataFrame({
    "run": range(200), "node": "0", "backend": "pi", "model": "m", "input_total": COST // 1000, "cost_nusd": COST,
    "outcome": np.where(np.quantile(COST, 0.8) < COST, "exhausted", "completed"), "delivered": True,
})  # fmt: skip


def test_a_distribution_draws_its_curve_on_the_given_axes() -> None:
    ax = Figure().add_subplot()
    assert distribution(RUNS).plot(ax) is ax
    assert ax.get_ylabel() == "share of all runs completed"


def test_a_choice_of_ceiling_draws_what_it_trades() -> None:
    ax = Figure().add_subplot()
    assert ceiling(RUNS, target=0.5).plot(ax) is ax
    assert ax.lines


@pytest.mark.parametrize("unit", ["input-total", "total"])
def test_floors_draw_the_settlements_they_rest_on(unit: str) -> None:
    ax = Figure().add_subplot()
    assert floors(RUNS.assign(output=1), unit=unit).plot(ax, asks=[8_000]) is ax  # type: ignore[arg-type]


def test_a_comparison_draws_a_figure_of_panels() -> None:
    both = pd.concat([RUNS.assign(policy="a"), RUNS.assign(policy="b", outcome="completed")], ignore_index=True)
    assert len(compare(both).plot(Figure()).axes) > 2

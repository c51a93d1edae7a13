"""Every figure that six published settlements of one path support, and those that they do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import lognorm

from harness_lab.analyze import floors
from harness_lab.stats import quantile, wilks_n

SIX = [31_211, 32_296, 47_365, 47_965, 48_253, 62_616]
NODES = pd.DataFrame(
    {"run": range(6), "outcome": "completed", "input_total": SIX, "backend": "pi", "model": "m"}
)  # fmt: skip


def test_the_minimum_is_a_refusal_floor_and_no_more() -> None:
    found = floors(NODES).records()[0]
    assert (found["floor"], found["n"], found["needs_n"]) == (31_211, 6, 59)
    assert round(found["coverage_at_95"], 3) == 0.607
    assert round(found["p_next_below"], 3) == 0.143
    assert wilks_n(0.9, 0.95) == 29
    assert "95 % confidence 60.7 % of future runs lie above it; chance that the next is below 14.3 %" in (
        floors(NODES).summary().replace("14.3%", "14.3 %")
    )


def test_parametric_shortcuts_are_shown_as_a_range_and_not_as_an_answer() -> None:
    shown = floors(NODES).by_model().set_index("shape")
    assert {name: round(bound) for name, bound in shown["bound"].items()} == {
        "lognormal": 16_162,
        "log-concave (Hanson-Koopmans)": -49_225,
        "log-concave in logarithms (Hanson-Koopmans)": 5_246,
    }
    assert set(shown["floor"]) == {31_211}
    assert "by_model() shows how far apart such formulas lie, and is no floor" in floors(NODES).explain()
    assert floors(NODES.head(1)).by_model().empty


def test_a_naive_p95_of_twenty_covers_95_percent_in_29_percent_of_samples_and_is_declined() -> None:
    runs = lognorm(0.8).rvs((20_000, 20), random_state=0)
    covered = lognorm(0.8).cdf(np.quantile(runs, 0.95, axis=1))
    assert (covered >= 0.95).mean() == pytest.approx(0.29, abs=0.01)
    assert covered.mean() == pytest.approx(0.91, abs=0.005)
    assert quantile(runs[0], 0.95, side="upper").needs_n == 59

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from harness_lab.plots.quantities import QUANTITIES, compact, duration, percent, quantity, tick, write


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("cost_nusd", 368_498_200, "$0.3685"),
        ("cost", 1_200 * 10**9, "$1,200"),
        ("input_total", 31_211, "31,211 tokens"),
        ("calls", 1, "1 call"),
        ("duration_ns", 90 * 10**9, "90 s"),
        ("time", 5_400 * 10**9, "90 min"),
        ("retries", 3, "3"),
    ],
)
def test_values_are_written_with_their_unit(column: str, value: float, text: str) -> None:
    assert quantity(column).write(value) == text


def test_what_is_not_finite_is_unknown_and_never_zero() -> None:
    assert [write(math.nan, unit) for unit in ("$", "%", "s", "tokens")] == ["unknown"] * 4


def test_axis_labels_carry_units() -> None:
    assert quantity("cost_nusd").label == r"spend, \$"
    assert quantity("duration_ns").label_of("until completion") == "time until completion, s"
    assert quantity("input_total").label == "prompt tokens"


def test_dollar_ticks_are_exact_and_are_no_mathematics() -> None:
    ax = Figure().add_subplot()
    quantity("cost").format_axis(ax.xaxis)
    ax.set_xticks([0, 0.125, 0.5])
    assert [label.get_text() for label in ax.get_xticklabels()] == [r"\$0", r"\$0.125", r"\$0.50"]


@given(st.integers(min_value=0, max_value=10**12))
def test_compact_counts_stay_short_and_near(value: int) -> None:
    text = compact(value)
    assert len(text) <= 5
    sizes = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    back = float(text[:-1]) * sizes[text[-1]] if text[-1] in sizes else float(text)
    assert back == pytest.approx(value, rel=0.06)


@given(st.floats(min_value=0, max_value=1))
def test_a_share_is_written_as_whole_only_if_it_is(share: float) -> None:
    text = percent(share)
    assert text.endswith(" %")
    assert float(text[:-2]) == pytest.approx(100 * share, abs=0.51, rel=0.06)


def test_durations_change_their_unit_where_a_person_would() -> None:
    assert [duration(s) for s in (0.25, 119, 120, 7_200, 172_800)] == ["0.25 s", "119 s", "2 min", "2 h", "2 d"]


def test_every_quantity_can_be_written_and_ticked() -> None:
    assert all(shown.write(5) and shown.brief(5) and tick(5, shown.unit) for shown in QUANTITIES.values())

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.plots.quantities import quantity, write
from harness_lab.stats.estimates import with_unit
from harness_lab.writing import dollars, figure, percent


@given(st.floats(min_value=1e-9, max_value=9e9), st.booleans())
def test_dollars_keep_four_digits_or_all_whole_ones_and_have_no_exponent(amount: float, minus: bool) -> None:
    text = dollars(-amount if minus else amount)
    assert text.startswith("-$" if minus else "$")
    assert "e" not in text
    back = float(text.lstrip("-$").replace(",", ""))
    assert back == pytest.approx(amount, rel=0.0006, abs=0.51 if amount >= 1000 else 0)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0"),
        (0.5, "$0.50"),
        (0.9999999, "$1"),
        (9.9996, "$10"),
        (999.96, "$1,000"),
        (12.3456, "$12.35"),
        (0.1, "$0.10"),
    ],
)
def test_cents_are_written_in_full_and_whole_dollars_alone(amount: float, text: str) -> None:
    assert dollars(amount) == text


@given(st.floats(min_value=0, max_value=1e6))
def test_a_picture_writes_money_and_shares_as_a_text_does(value: float) -> None:
    assert write(value, "$") == with_unit(value, "$")
    assert write(value, "%") == percent(value)


def test_a_limit_is_the_same_number_in_the_picture_and_in_the_summary() -> None:
    assert quantity("cost").write(809_191_234) == with_unit(0.809191234, "$") == "$0.8092"


def test_what_has_no_end_is_said() -> None:
    assert figure(math.inf) == dollars(math.inf) == "no end"

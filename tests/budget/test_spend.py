"""Spends: what is charged, what is known, and that both add up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.budget import NOTHING, UNREPORTED, Quantity, Spend
from harness_lab.errors import InputError

COUNT = st.integers(0, 10**6)


@st.composite
def _spends(draw: st.DrawFn) -> Spend:
    fresh, read, written, output = (draw(COUNT) for _ in range(4))
    whole = {"fresh_input": fresh, "cache_read": read, "cache_write": written}
    split: dict[str, Any] = draw(st.sampled_from([whole, {}]))
    cost, known = draw(COUNT), draw(st.booleans())
    return Spend(
        calls=draw(st.integers(0, 9)),
        input=fresh + read + written,
        output=output,
        tokens_known=draw(st.booleans()),
        cost_nusd=cost,
        cost_known=known,
        estimated_nusd=0 if known else draw(st.integers(0, cost)),
        **split,
    )


@given(_spends(), _spends())
def test_the_charge_of_two_together_is_the_sum_of_their_charges(one: Spend, other: Spend) -> None:
    both = one + other
    assert both.newly_presented == one.newly_presented + other.newly_presented
    assert both.total == one.total + other.total
    assert both.cost_nusd == one.cost_nusd + other.cost_nusd


@given(_spends(), _spends())
def test_what_is_unknown_in_one_is_unknown_in_both_together(one: Spend, other: Spend) -> None:
    both = one + other
    assert both.tokens_known == (one.tokens_known and other.tokens_known)
    assert both.cost_known == (one.cost_known and other.cost_known)
    assert (one + NOTHING) == (NOTHING + one)


@given(_spends())
def test_a_cache_is_credited_and_never_more_than_the_prompt(spent: Spend) -> None:
    assert spent.output <= spent.newly_presented <= spent.total


def test_a_prompt_of_which_no_class_is_named_is_charged_in_full() -> None:
    spent = Spend(input=1_000, output=10)
    assert (spent.newly_presented, spent.split_known) == (1_010, False)
    assert Spend(output=10).split_known is True


def test_classes_that_are_more_than_the_prompt_credit_no_cache() -> None:
    assert Spend(input=100, cache_read=150).newly_presented == 100


@pytest.mark.parametrize("split", [{"fresh_input": 3, "cache_read": 6, "cache_write": 2}, {"split_known": True}])
def test_classes_that_do_not_make_up_the_prompt_are_refused(split: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^cache classes: expected a sum of 10 prompt tokens, got "):
        Spend(input=10, **split)


@pytest.mark.parametrize("more", [{"input": -1}, {"tokens_known": "no"}, {"cost_nusd": 5, "estimated_nusd": 5}])
def test_what_is_no_spend_is_one_line(more: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Spend(**more)


@pytest.mark.parametrize(
    ("spent", "source"),
    [
        (Spend.reported(cost_usd=0.25), "reported"),
        (Spend.reported(estimate_usd=0.25), "estimated"),
        (Spend.reported(cost_usd=0.045) + Spend.reported(estimate_usd=0.37), "partial"),
        (UNREPORTED, "unknown"),
    ],
)
def test_a_cost_says_where_it_comes_from(spent: Spend, source: str) -> None:
    assert spent.cost_source == source


def test_a_limited_resource_that_is_left_out_is_unknown_and_not_zero() -> None:
    spent = Spend(resources={"gpu": Quantity(unit="seconds", amount=3)}).complete({"gpu": "seconds", "io": "bytes"})
    assert spent.resources["gpu"] == Quantity(unit="seconds", amount=3)
    assert spent.resources["io"] == Quantity(unit="bytes", amount=0, known=False)
    assert spent.by_channel({"gpu": "seconds", "io": "bytes"})[1] == {6}


def test_two_units_of_one_resource_do_not_add_up() -> None:
    with pytest.raises(InputError, match=r"^unit of gpu: expected seconds, got 'hours'$"):
        Spend(resources={"gpu": Quantity(unit="seconds", amount=1)}) + Spend(
            resources={"gpu": Quantity(unit="hours", amount=1)}
        )

from __future__ import annotations

import math
import pickle

import pytest

from harness_lab.errors import InputError
from harness_lab.stats import Estimate, Interval, NotEstimable

NINETY_FIVE = Interval(low=1.0, high=2.0, confidence=0.95, method="t")


def test_an_estimate_says_its_size_its_clusters_and_its_method() -> None:
    it = Estimate(value=1.5, interval=NINETY_FIVE, n=1007, method="mean", clusters=40, effective_n=283.6, unit="$")
    assert str(it) == "$1.50 [$1, $2] (95 %, n = 1,007, 40 clusters, effective n 284, t)"


def test_an_answer_that_the_data_cannot_give_says_what_would_be_needed() -> None:
    it = Estimate(value=None, interval=NotEstimable(reason="n = 6", needs_n=59), n=6, method="order statistic")
    assert str(it) == "needs n >= 59: n = 6"
    assert (it.low, it.high, it.estimable, it.needs_n, it.holds(3)) == (None, None, False, 59, None)


def test_a_value_without_an_interval_says_so() -> None:
    few = NotEstimable(reason="3 cluster(s)", needs_n=5, of="clusters")
    it = Estimate(value=1.5, interval=few, n=30, method="mean")
    assert str(it) == "1.5, no interval (n = 30); needs clusters >= 5: 3 cluster(s)"


def test_the_ends_belong_to_the_interval() -> None:
    assert 1.0 in NINETY_FIVE
    assert 2.0 in NINETY_FIVE
    assert 2.1 not in NINETY_FIVE


def test_another_unit_scales_value_ends_and_what_lies_above() -> None:
    it = Estimate(value=None, interval=NotEstimable(reason="stopped", above=3e8, supported=0.25), n=9, method="m")
    assert str(it.scaled(1e-9, unit="$")).endswith("it lies above $0.30; the largest quantile supported is 0.250")
    assert Estimate(value=1.5, interval=NINETY_FIVE, n=3, method="m").scaled(2, unit="s").high == 4.0


def test_a_one_sided_interval_has_no_end() -> None:
    assert str(Interval(low=-math.inf, high=3.0, confidence=0.9, method="t")) == "[no end, 3]"


def test_an_interval_upside_down_is_refused() -> None:
    with pytest.raises(InputError, match=r"^low: expected at most high = 1"):
        Interval(low=2, high=1, confidence=0.95, method="t")


@pytest.mark.parametrize("confidence", [0, 1, 95, True, "high"])
def test_a_confidence_outside_zero_to_one_is_refused(confidence: float) -> None:
    with pytest.raises(InputError, match=r"^confidence: expected a number in \(0, 1\)"):
        Interval(low=1, high=2, confidence=confidence, method="t")


def test_an_estimate_survives_pickling() -> None:
    it = Estimate(value=1.5, interval=NINETY_FIVE, n=3, method="m")
    assert pickle.loads(pickle.dumps(it)) == it  # noqa: S301

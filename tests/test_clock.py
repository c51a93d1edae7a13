"""Clocks: whole nanoseconds inside, seconds at the surface, and no way back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.clock import NS_PER_S, ManualClock, MonotonicClock, Time, ns, seconds
from harness_lab.errors import InputError


def test_seconds_add_up_in_nanoseconds_though_not_in_floats() -> None:
    assert 0.7 + 0.1 < 0.8
    assert ns(0.7) + ns(0.1) == ns(0.8)


@given(st.integers(0, 10**15))
@settings(max_examples=200, deadline=None)
def test_nanoseconds_survive_the_way_through_seconds_and_back(time: int) -> None:
    assert ns(seconds(time)) == time


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e10, True, "1", None], ids=repr)
def test_what_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^seconds: expected a finite number"):
        ns(value)


def test_a_manual_clock_moves_only_when_told_to() -> None:
    clock = ManualClock(5)
    assert clock.now() == 5
    clock.advance(2)
    assert clock.now() == 5 + 2 * NS_PER_S
    clock.set(Time(7))
    assert clock.now() == 7


@pytest.mark.parametrize("step", [-1, -0.001, float("nan")])
def test_a_manual_clock_does_not_go_back(step: float) -> None:
    clock = ManualClock(9)
    with pytest.raises(InputError, match=r"^seconds"):
        clock.advance(step)
    assert clock.now() == 9


def test_the_default_clock_never_goes_back() -> None:
    clock = MonotonicClock()
    times = [clock.now() for _ in range(100)]
    assert times == sorted(times)
    assert all(type(time) is int for time in times)

"""Benchmarks are asked for by the name of a figure, or by that of the benchmark that measures several."""

from __future__ import annotations

import pytest

from harness_lab.bench import run_all
from harness_lab.errors import InputError


def test_a_single_figure_is_measured_by_its_own_name_and_several_by_that_of_their_benchmark() -> None:
    one = run_all(quick=True, only=["kernel_vs_simpy_events"])
    both = run_all(quick=True, only=["engine_ratios"])
    assert list(one) == ["kernel_vs_simpy_events"]
    assert list(both)[:3] == ["kernel_vs_simpy", "kernel_engine_only_vs_simpy", "kernel_vs_simpy_events"]
    assert all(figure["low"] <= figure["value"] <= figure["high"] for figure in both.values())  # type: ignore[operator]


def test_a_figure_that_nobody_measures_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"^only: expected some of .*kernel_vs_simpy.*, got 'kernel'$"):
        run_all(only=["sweep1000_vs_one_run", "kernel"])

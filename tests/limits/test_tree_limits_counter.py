"""Tree limits: one counter for the whole tree, checks in one order, and a deadline that no child outlives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import InputError
from harness_lab.limits import HARNESS_DEFAULTS, SubagentBudget, SubagentLimits

CASES = Path(__file__).parents[2] / ".." / "shared" / "vectors" / "tree-limits.json"
MS = 1_000_000


def _cases() -> list[Any]:
    if not CASES.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="the folder with the cases is absent"))]
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["id"]) for case in cases if "ops" in case["when"]]


@pytest.mark.parametrize("case", _cases())
def test_a_case_of_the_peers_counter_is_answered_as_there(case: dict[str, Any]) -> None:
    views = {"root": SubagentBudget.root(_limits(case["given"]["limits"]))}
    results = [_do(views, op) for op in case["when"]["ops"]]
    assert results == case["then"]["results"]
    assert views["root"].calls == case["then"]["calls"]


def _limits(given: dict[str, int]) -> SubagentLimits:
    timeout = given.get("timeoutMs")
    return SubagentLimits(
        max_depth=given.get("maxDepth"),
        max_concurrent=given.get("maxConcurrent"),
        max_calls=given.get("maxCalls"),
        timeout_s=None if timeout is None else timeout / 1000,
    )


def _do(views: dict[str, SubagentBudget], op: dict[str, Any]) -> Any:
    view = views[op["on"]]
    if op["op"] == "reserve":
        return view.reserve(op["active"])
    if op["op"] == "childTimeout":
        left = view.child_timeout(Time(op["now"] * MS))
        return None if left is None else round(left * 1000)
    deadline = op.get("deadline")
    views[op["as"]] = view.child(None if deadline is None else Time(deadline * MS))
    return None


def test_depth_comes_before_starts_and_starts_before_concurrency() -> None:
    root = SubagentBudget.root(SubagentLimits(max_depth=0, max_concurrent=0, max_calls=0))
    assert list(root.reached(0)) == [("max_depth", 0), ("max_calls", 0), ("max_concurrent", 0)]
    assert root.reserve(0) == "subagent limit reached (maxDepth 0)"


def test_a_refusal_counts_nothing() -> None:
    root = SubagentBudget.root(SubagentLimits(max_concurrent=1))
    assert root.reserve(active=1) == "subagent limit reached (maxConcurrent 1)"
    assert root.calls == 0


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(0, 6))
@settings(max_examples=100, deadline=None)
def test_a_tree_never_starts_more_than_its_limit_whoever_asks(askers: list[int], limit: int) -> None:
    root = SubagentBudget.root(SubagentLimits(max_calls=limit))
    views = [root, *(root.child().child() for _ in range(5))]
    allowed = sum(views[asker].reserve(active=0) is None for asker in askers)
    assert allowed == root.calls == min(limit, len(askers))


@given(st.none() | st.integers(0, 100), st.none() | st.integers(0, 100), st.integers(0, 100))
@settings(max_examples=200, deadline=None)
def test_no_child_outlives_its_parent(timeout: int | None, deadline: int | None, now: int) -> None:
    parent = SubagentBudget(
        SubagentLimits(timeout_s=timeout), deadline=None if deadline is None else Time(deadline * NS_PER_S)
    )
    bounds = [t for t in (timeout, None if deadline is None else max(0, deadline - now)) if t is not None]
    assert parent.child_timeout(Time(now * NS_PER_S)) == min(bounds, default=None)


def test_a_start_can_be_given_back_and_only_if_there_was_one() -> None:
    root = SubagentBudget.root(SubagentLimits(max_calls=1))
    root.reserve(0)
    root.release()
    assert root.reserve(0) is None
    root.release()
    with pytest.raises(InputError, match=r"^release: expected a start that was reserved, got 'none'"):
        root.release()


def test_the_defaults_of_a_harness_are_depth_two_three_at_once_twelve_starts() -> None:
    assert SubagentLimits(max_depth=2, max_concurrent=3, max_calls=12) == HARNESS_DEFAULTS


@pytest.mark.parametrize("bad", [-1, 0.5, float("nan"), float("inf"), True, "3"], ids=repr)
@pytest.mark.parametrize("name", ["max_depth", "max_concurrent", "max_calls"])
def test_a_bad_limit_is_refused_by_name(name: str, bad: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name}: expected a whole number"):
        SubagentLimits(**{name: bad})


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), True, "3", 1e10], ids=repr)
def test_a_bad_timeout_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match=r"^(seconds|timeout_s): expected"):
        SubagentLimits(timeout_s=bad)


def test_whole_floats_become_limits_so_that_texts_stay_whole() -> None:
    root = SubagentBudget.root(SubagentLimits(max_calls=0.0))  # type: ignore[arg-type]
    assert root.reserve(0) == "subagent limit reached (maxCalls 0)"

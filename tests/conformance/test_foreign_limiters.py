"""Cases put to somebody else's limiter: the four words, how it deviates, and what shows it."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.adapters import Adapter, NotApplicable, named
from harness_lab.conformance import run, run_adapter, shipped
from harness_lab.conformance.answers import from_data
from harness_lab.conformance.limits import limits_by_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.adapters import Call, Used
    from harness_lab.conformance.foreign import AdapterReport


class Generous(Adapter):
    """Lets one call more through than it should."""

    name = "generous"

    def __init__(self, *, calls: int | None = None) -> None:
        if calls == 0:
            raise ValueError("nothing is no limit here")
        self.left = None if calls is None else calls + 1

    def before_call(self, call: Call) -> str | None:
        return "enough" if self.left == 0 else None

    def after_call(self, call: Call, used: Used) -> None:
        self.left = None if self.left is None else max(0, self.left - 1)


class Broken(Generous):
    """Breaks off."""

    name = "broken"
    areas = ("iteration-budget",)

    def before_call(self, call: Call) -> str | None:
        raise ZeroDivisionError("broken")

    @classmethod
    def answer(cls, case: Mapping[str, Any]) -> Mapping[str, Any]:
        if "ops" not in case["when"]:
            raise NotApplicable("not about the counter")
        return {"results": [], "used": 0, "remaining": 0}


def words(report: AdapterReport) -> dict[str, str]:
    return {result.id: result.word for result in report.results}


def case(name: str, area: str = "ruler") -> dict[str, Any]:
    return next(one for one in shipped(area) if one["id"] == name)


def test_the_four_words() -> None:
    ids = ("limit-of-3", "none", "zero", "cost")
    found = run_adapter(Generous, [case(name) for name in ids])
    assert words(found) == dict(zip(ids, ("deviating", "passed", "deviating", "not_applicable"), strict=True))
    assert [result.reason for result in found.results] == [
        "admitted: 4 instead of 3; refused: 2 instead of 3",
        "",
        "such a limit is refused where it is built: ValueError: nothing is no limit here",
        "it has no limit of cost_usd (it has calls)",
    ]
    assert words(run_adapter(Broken, [case("limit-of-3")])) == {"limit-of-3": "failed"}


def test_every_case_gets_a_word_and_a_reason() -> None:
    found = run_adapter(named("check-then-add"))
    assert len(found.results) == len(shipped("ruler")) + len(shipped("public-cases"))
    assert {result.word for result in found.results} == {"passed", "deviating", "not_applicable"}
    for result in found.results:
        assert bool(result.reason) == (result.word != "passed"), result
        assert bool(result.scenario) == (result.word == "deviating"), result


def test_what_a_limit_of_three_means_to_a_counter_that_adds_afterwards() -> None:
    found = words(run_adapter(named("check-then-add")))
    assert [name for name, word in found.items() if word == "deviating" and not name.startswith("A-")] == [
        "at-once", "at-once-last-unit", "cost", "cost-dimes", "cost-last-call", "cost-at-once", "cost-unknown",
        "tokens", "tokens-at-once", "tokens-unknown",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["check-then-add", "prism-ai-harness"])
def test_every_scenario_prints_what_it_says(name: str) -> None:
    if name == "prism-ai-harness":
        pytest.importorskip("prism_harness")
    scenarios = [r.scenario for r in run_adapter(named(name)).results if r.scenario]
    for scenario in scenarios:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(scenario, {})  # noqa: S102 - that is what a scenario is for
        expected = {line.partition("  # ")[2] for line in scenario.splitlines() if "print(" in line}
        assert set(said.getvalue().splitlines()) == expected, scenario
    assert len(scenarios) >= 15


def test_without_a_scenario_of_its_own_the_command_shows_it() -> None:
    (result,) = run_adapter(Generous, [case("limit-of-3")]).results
    assert result.scenario.startswith("harness-lab conformance --adapter ")
    assert result.scenario.endswith(":Generous --case limit-of-3 --list")


def test_a_package_answers_the_areas_that_are_about_it() -> None:
    cases = [case("c-budget-exhaust", "iteration-budget"), case("c-role-normalise", "iteration-budget")]
    found = run_adapter(Broken, cases)
    assert [(r.word, r.reason) for r in found.results] == [
        ("deviating", "results: [] instead of [True, True, True, False, False]; used: 0 instead of 3"),
        ("not_applicable", "not about the counter"),
    ]


def test_our_own_answer_is_what_the_ruler_says() -> None:
    assert run(shipped("ruler")).to_dict()["ruler"] == {
        "passed": len(shipped("ruler")), "deviating": 0, "not_applicable": 0, "failed": 0
    }  # fmt: skip


def test_our_modules_have_names_that_any_limiter_knows() -> None:
    assert limits_by_name(case("A-15", "public-cases")) == {"calls": 9, "cost_usd": 1.6}
    assert limits_by_name(case("A-04", "public-cases")) == {"tool_calls": 6}
    with pytest.raises(NotApplicable, match="about grants of reservation_pool"):
        limits_by_name(case("A-27", "public-cases"))
    with pytest.raises(NotApplicable, match="period_budget, a mechanism of ours"):
        limits_by_name({"given": {"modules": [{"kind": "period_budget", "calls": 3}]}})


def test_a_report_is_stored_and_read_back() -> None:
    found = run_adapter(named("check-then-add"))
    assert from_data(found.to_data()) == found
    assert "check-then-add: no package" in found.summary()
    assert "no judgement" in found.explain()


def test_what_is_not_asked_is_said() -> None:
    found = run_adapter(named("check-then-add"))
    assert set(found.not_asked) == {
        "prism-budgets",
        "tangle-pool-and-floors",
        "tree-limits",
        "iteration-budget",
        "delegation",
    }
    assert f"delegation ({len(shipped('delegation'))})" in found.summary()
    assert run_adapter(Generous, [case("limit-of-3")]).not_asked == {}

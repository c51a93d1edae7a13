"""Every public result says what it found, as text, table and picture, what it means, what comes next, and as a command.

What a result lacks is written down here with the reason; a reason that is no longer needed fails too.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest
import typer

from harness_lab.cli.app import app

PACKAGES = ("agents", "analyze", "conformance", "delegation", "export", "providers", "settlements", "simulate", "stats",
            "tune")  # fmt: skip
WANTED = ("summary", "to_frame", "plot", "explain", "_repr_html_", "next step")

A_FILE = "a file in another form, and what it cannot say: there is no quantity to draw"
A_TABLE = "the rows themselves: every analysis of them draws its own picture"
A_VERDICT = "yes or no, and the place in the file: one line is the whole answer"
GROUPS = "a holder of one result a group; each of them has what is asked for, and the holder shows all of them"
LACKS: dict[str, dict[str, str]] = {
    "AdapterReport": {"plot": "cases that pass or not, by name: the table is the picture"},
    "AuditVerdict": dict.fromkeys(("to_frame", "plot", "_repr_html_"), A_VERDICT),
    "CacheSavings": dict.fromkeys(("to_frame", "plot", "_repr_html_", "next step"), "two sums, read by the journal"),
    "Export": {"plot": A_FILE},
    "Fit": {"plot": "stats knows no pictures: SettlementDistribution.plot_fit draws it"},
    "FittedWorld": {"plot": "a world, not an answer: check_fit draws how near it is"},
    "JournalVerdict": dict.fromkeys(("to_frame", "plot", "_repr_html_"), A_VERDICT),
    "ModeReport": dict.fromkeys(WANTED[1:], "what a harness tells its operator at the start, in one line"),
    "Parts": dict.fromkeys(("plot", "explain", "_repr_html_", "next step"), GROUPS),
    "Provider": dict.fromkeys(("to_frame", "plot", "next step"), "a part of a world, not an answer"),
    "ReadReport": dict.fromkeys(WANTED[1:], "what a reader set aside: quality(...) is the result to look at"),
    "Reconciled": {"plot": "two totals and their difference"},
    "Recomputed": {"plot": "two totals and their difference"},
    "ReplayResult": {"plot": A_TABLE},
    "Report": {"plot": "cases that pass or not, by name: the table is the picture"},
    "Result": {"plot": A_TABLE},
    "Resumed": dict.fromkeys(WANTED[1:], A_VERDICT),
    "SettlementStore": dict.fromkeys(WANTED[1:], "a place of files, not an answer"),
    "Settlements": {"plot": A_TABLE},
    "StoredResult": dict.fromkeys(("to_frame", "plot"), "rows that are in files and never all in memory"),
    "Translation": {"plot": A_FILE},
}
COMMANDS = {
    "AdapterReport": "conformance", "AuditVerdict": "audit", "BestPolicy": "best", "CapCheck": "caps",
    "CeilingBothWays": "ceiling", "CeilingChoice": "ceiling", "CheapestCeiling": "ceiling", "Comparison": "compare",
    "ConfigCheck": "check", "Drift": "drift", "Export": "export", "Fit": "distribution", "FitCheck": "check-fit",
    "FlatPrice": "price", "FloorCosts": "floor-costs", "Floors": "floors", "Front": "best", "HoldCurve": "holds",
    "Incident": "replay", "JournalVerdict": "journal", "LimitReport": "limits", "PeriodBudget": "period",
    "PriceChanges": "price-changes", "ProbePlan": "floors", "Quality": "quality", "RaceResult": "race",
    "ReadReport": "read", "Repriced": "reprice", "Report": "conformance", "Result": "simulate",
    "Sensitivity": "sensitivity", "SettlementDistribution": "distribution", "Settlements": "read",
    "ShadowReport": "shadow-report", "SpendSplit": "drift", "StepEffects": "steps", "StoredResult": "simulate",
    "Sweep": "sweep", "Symptoms": "symptoms", "Timeline": "explain", "Translation": "translate", "Tuned": "tune",
}  # fmt: skip
"""The command that gives each result."""
NO_COMMAND = {
    "CacheSavings": "the journal command prints it", "FittedWorld": "check-fit and ceiling --simulate fit it",
    "ModeReport": LACKS["ModeReport"]["plot"], "Parts": "--by gives it", "Provider": LACKS["Provider"]["plot"],
    "Recomputed": "needs a bill or a price table in hand", "Reconciled": "needs a bill in hand",
    "ReplayResult": "the replay command gives the incident", "Resumed": A_VERDICT,
    "SettlementStore": LACKS["SettlementStore"]["plot"],
    "TruthCheck": "truth is known of simulated data alone: the tour holds every estimate against it",
}  # fmt: skip
BY = {
    "against_truth": "each truth names its group", "break_even_runs": "price_changes(fee_usd=) asks it by group",
    "plan_probes": "every path is a group of its own", "run_table": "it gives rows",
    "shadow_report": "it reads a log of questions, which names no group",
}  # fmt: skip
"""Questions of records that are not asked by group, and why."""


def results() -> dict[str, type[Any]]:
    found = {}
    for package in PACKAGES:
        module = import_module(f"harness_lab.{package}")
        every = [(name, getattr(module, name)) for name in module.__all__]
        found |= {name: one for name, one in every if inspect.isclass(one) and callable(getattr(one, "summary", None))}
    return found


RESULTS = results()


def lacks(one: type[Any]) -> set[str]:
    missing = {name for name in WANTED[:-1] if not callable(getattr(one, name, None))}
    words = inspect.getsource(one.explain) if callable(getattr(one, "explain", None)) else ""
    says = "Next: " in words or "_NEXT" in words
    return missing | (set() if says else {"next step"})


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_a_result_has_all_that_is_promised_or_a_reason(name: str) -> None:
    assert lacks(RESULTS[name]) == set(LACKS.get(name, {}))


def test_no_reason_stands_for_a_result_that_is_gone() -> None:
    assert set(LACKS) | set(COMMANDS) | set(NO_COMMAND) <= set(RESULTS)


def test_every_result_has_a_command_that_prints_json_or_a_reason() -> None:
    assert set(COMMANDS) | set(NO_COMMAND) == set(RESULTS)
    assert not set(COMMANDS) & set(NO_COMMAND)
    top: Any = typer.main.get_command(app)
    for name, command in COMMANDS.items():
        found = top.commands[command]
        leaves = found.commands.values() if hasattr(found, "commands") else [found]
        assert any("--json" in option.opts for leaf in leaves for option in leaf.params), (name, command)


def test_every_question_of_records_is_asked_by_group_or_a_reason_says_why_not() -> None:
    analyze = import_module("harness_lab.analyze")
    questions = {name: getattr(analyze, name) for name in analyze.__all__ if inspect.isfunction(getattr(analyze, name))}
    without = {name for name, one in questions.items() if "by" not in inspect.signature(one).parameters}
    assert without == set(BY)

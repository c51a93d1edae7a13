"""The tour's report: one page for someone who has never seen the project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from harness_lab.analyze.frames import amount
from harness_lab.cli.tour_words import estimate_of, share_of, truth_of
from harness_lab.export.report import Report
from harness_lab.stats.estimates import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from harness_lab.cli.tour import Findings

Pictures = dict[str, tuple["Figure", str]]


def build_report(found: Findings, pictures: Pictures) -> Report:
    """Put what was found on one page."""
    report = Report(
        "A tuned agent budget, and what it rests on",
        "harness_lab's tour: recorded runs, floors, a simulation with the real limits in the loop, a ceiling, a check",
    )
    _findings(report, found, pictures)
    _records(report, found)
    _floors(report, found, pictures)
    _world(report, found, pictures)
    _policies(report, found, pictures)
    _config(report, found)
    _truth(report, found)
    _yours(report)
    return report


def _findings(report: Report, found: Findings, pictures: Pictures) -> None:
    choice = found.choice
    chosen = amount(choice.column, choice.ceiling or 0)
    report.section("What was found")
    report.paragraph(
        f"A cost ceiling of {chosen} a run lets at least {percent(choice.target)} of further runs like the "
        f"recorded ones complete, said with {percent(choice.confidence)} confidence (n = {choice.bound.n:,} runs). It "
        f"was put into a limit policy, exported, read back and simulated again: {found.check}. On fresh draws "
        f"{share_of(found.completion)} of the simulated runs complete under it."
    )
    report.figure(pictures["ceiling"][0], alt=pictures["ceiling"][1], caption=_caption(found))
    report.paragraph(
        "The larger data set is synthetic, so that every estimate on this page can be held against the truth; the six "
        "settlements behind the first floor are published figures."
    )


def _caption(found: Findings) -> str:
    lines = found.choice.summary().splitlines()
    return " ".join(lines[1:])


def _records(report: Report, found: Findings) -> None:
    report.section("The records")
    report.code(found.records.summary())
    bad = found.messy.report
    report.paragraph(
        f"A bad row is set aside with its file, line and reason, never dropped silently and never fatal. A small messy "
        f"file shows it: {bad.read} rows read, {bad.kept} kept, {bad.duplicates} duplicate, {len(bad.set_aside)} set "
        "aside."
    )
    rows = [{"file": row.file, "line": row.line, "reason": row.reason} for row in bad.set_aside]
    report.table(pd.DataFrame(rows), "Rows that were set aside")


def _floors(report: Report, found: Findings, pictures: Pictures) -> None:
    report.section("What a path costs before it works")
    report.paragraph(
        "A floor is the smallest eligible settlement seen on one path (agent, backend, model, context). An ask below "
        "it is refused before it starts, because a child spends that much on instructions and tools before it can "
        "finish anything. Meeting it promises nothing."
    )
    report.figure(pictures["floors"][0], alt=pictures["floors"][1])
    report.paragraph(_apart(found.floors_of_six.summary()))
    asks = [
        {
            "asked, tokens": answer.asked,
            "answer": "admitted" if answer.admitted else answer.reason,
            "missing": answer.shortfall,
            "what helps": "-" if answer.admitted else "a larger ask, or another path; never a smaller ask",
        }
        for answer in found.asks
    ]
    report.table(pd.DataFrame(asks), "Budgets that parents authored for such a child, and an ask at the floor")
    floors = found.floors.to_frame()
    columns = ["agent", "model", "floor", "second_lowest", "startup_cost", "n", "clusters", "coverage_at_95"]
    shown = floors[columns].rename(columns=lambda name: name.replace("_", " "))
    report.table(shown, "Floors of the synthetic paths, tokens")
    notes = [f"{record['agent']}: {record['note']}." for record in found.floors.records() if record["note"]]
    report.paragraph(_apart("\n".join(notes)))


def _apart(lines: str) -> str:
    """Return lines as paragraphs."""
    return lines.replace("\n", "\n\n")


def _world(report: Report, found: Findings, pictures: Pictures) -> None:
    report.section("A world that behaves like the records")
    report.paragraph(
        "Workload and provider are fitted to the records, with runs that a limit stopped as lower bounds. How near "
        f"they come, simulated without any limit: {found.fit_words}."
    )
    report.figure(pictures["distribution"][0], alt=pictures["distribution"][1])
    fits = found.world.fits[["of", "quantity", "model", "n", "censored", "reason"]]
    report.table(fits, "What was fitted, and why in this form")
    report.paragraph(found.world.explain())


def _policies(report: Report, found: Findings, pictures: Pictures) -> None:
    report.section("Three policies on the same luck")
    report.code(found.result.summary())
    report.figure(pictures["policies"][0], alt=pictures["policies"][1])
    report.paragraph(_apart(found.comparison.verdict()))
    report.paragraph(_apart(found.comparison.explain()))


def _config(report: Report, found: Findings) -> None:
    report.section("The tuned config")
    report.paragraph(
        "The file holds the policy, the evidence behind the tuned value and where it came from. It can be written for "
        "a harness: harness-lab export config.json --target claude-code; harness-lab targets lists all of them."
    )
    report.code(found.config.to_json())


def _truth(report: Report, found: Findings) -> None:
    report.section("Estimates beside the truth")
    report.paragraph(found.truth.summary())
    rows: list[dict[str, Any]] = [
        {
            "quantity": one.what,
            "truth": truth_of(one.truth),
            "estimate": str(estimate_of(one)),
            "interval holds it": {True: "yes", False: "NO", None: "declined"}[one.holds],
        }
        for one in found.truth.checked
    ]
    report.table(pd.DataFrame(rows), "Every question whose answer is known")
    report.paragraph(found.truth.explain())


def _yours(report: Report) -> None:
    report.section("With your own records")
    report.code(
        "harness-lab read                                   # where are agent records on this computer? opens none\n"
        "harness-lab read FILE... --map FIELD=COLUMN --out settlements.parquet\n"
        "harness-lab floors settlements.parquet\n"
        "harness-lab preflight --evidence settlements.parquet --backend B --model M --input-tokens N\n"
        "harness-lab compare experiment.toml"
    )

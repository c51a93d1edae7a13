"""The command that runs behaviour cases: conformance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_lab.cli.output import Json, show

if TYPE_CHECKING:
    from harness_lab.conformance import Report


def conformance(
    cases: Annotated[
        Path | None, typer.Option("--cases", help="A file of cases; those of the package if none.")
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name what deviates, does not apply or failed.")] = False,
    as_json: Json = False,
) -> int:
    """Run behaviour cases of the systems brought together here. Exit code 1 if any failed."""
    from harness_lab.conformance import read_cases, run

    report = run() if cases is None else run(read_cases(cases), area=cases.stem)
    text = report.summary() + ("\n\n" + _listing(report) if list_them else "")
    counts = report.to_dict()
    rows = {"rows": [row for row in report.rows() if row["word"] != "passed"]}
    show(text, {**counts, **rows} if list_them else counts, as_json=as_json)
    return 1 if report.failed else 0


def _listing(report: Report) -> str:
    lines = [f"{r.area}  {r.id}  {r.word}: {r.reason}" for r in report.results if r.word != "passed"]
    return "\n".join(lines) if lines else "every case passed"

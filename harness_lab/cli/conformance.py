"""The command that runs behaviour cases: conformance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_lab.cli.output import Json, show
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from harness_lab.conformance import Report


def conformance(
    cases: Annotated[
        Path | None, typer.Option("--cases", help="A file of cases; those of the package if none.")
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option(
            "--adapter", help="Ask somebody else's limiter: a name (docs/adapters.md), module:Class or file.py:Class."
        ),
    ] = None,
    case: Annotated[str | None, typer.Option("--case", help="Only the case with this id.")] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name what deviates, does not apply or failed.")] = False,
    table: Annotated[
        Path | None, typer.Option("--table", help="Write this table from stored answers of other people's limiters.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option("--answers", help="Folder of those answers; 'conformance' beside the table if none.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run behaviour cases of the systems brought together here. Exit code 1 if any failed."""
    if table is not None:
        return _write_table(table, table.parent / "conformance" if answers is None else answers)
    report = _run(cases, adapter, case)
    text = report.summary() + ("\n\n" + _listing(report) if list_them else "")
    if adapter is not None:
        show(text, report.to_data(), as_json=as_json)  # type: ignore[attr-defined]
        return 1 if report.failed else 0
    counts = report.to_dict()
    rows = {"rows": [row for row in report.rows() if row["word"] != "passed"]}
    show(text, {**counts, **rows} if list_them else counts, as_json=as_json)
    return 1 if report.failed else 0


def _run(cases: Path | None, adapter: str | None, case: str | None) -> Report:
    from harness_lab.conformance import picked, read_cases, run, run_adapter

    if cases is not None and case is not None:
        raise InputError("--case", expected="--cases or --case", got="both")
    given = None if cases is None else read_cases(cases)
    given = given if case is None else picked(case)
    if adapter is not None:
        from harness_lab.adapters import named

        return run_adapter(named(adapter), given)
    return run(given, area="unknown" if cases is None else cases.stem)


def _write_table(file: Path, folder: Path) -> int:
    """Write the table, and a page for each stored report beside it."""
    from harness_lab.conformance.answers import read_answers
    from harness_lab.conformance.table import page, table
    from harness_lab.files import write_text

    reports = read_answers(folder)
    write_text(file, table(reports))
    for report in reports:
        write_text(folder / f"{report.adapter}.md", page(report))
    return 0


def _listing(report: Report) -> str:
    lines = []
    for r in report.results:
        if r.word != "passed":
            lines += [f"{r.area}  {r.id}  {r.word}: {r.reason}", *(f"    {one}" for one in r.scenario.splitlines())]
    return "\n".join(lines) if lines else "every case passed"

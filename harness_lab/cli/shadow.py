"""The command that reads what a shadowed policy answered: shadow-report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness_lab.cli.output import Json, show


def shadow_report(
    file: Annotated[Path, typer.Argument(help="Rows of a shadowed policy (JSONL), of one run or of many.")],
    as_json: Json = False,
) -> int:
    """Say what a limit would have refused, and what that then cost."""
    from harness_lab.analyze.shadow import shadow_report as report_on

    report = report_on(file)
    show(f"{report.summary()}\n\n{report.explain()}", report.to_dict(), as_json=as_json)
    return 0

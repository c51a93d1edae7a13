"""Commands about what records say of a path: floors, preflight."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from harness_lab.cli.output import Json, show, whole_number
from harness_lab.cli.records import load
from harness_lab.errors import InputError

Unit = Annotated[str, typer.Option(help="input-total, total or newly-presented.")]
File = Annotated[Path, typer.Argument(help="Settlements (Parquet), or records in a known format.")]


def floors(
    file: File,
    unit: Unit = "input-total",
    stale_days: Annotated[float | None, typer.Option(help="Age in days from which evidence is stale.")] = None,
    as_json: Json = False,
) -> None:
    """Derive the runtime floor of each path, and say what the evidence supports."""
    found = _derive(file, unit, stale_days=stale_days)
    show(f"{found.summary()}\n\n{found.explain()}", found.records(), as_json=as_json)


def preflight(
    evidence: Annotated[Path, typer.Option("--evidence", help="Settlements behind the floors.")],
    backend: Annotated[str, typer.Option(help="Execution path.")],
    model: Annotated[str, typer.Option(help="Model, as requested.")],
    input_tokens: Annotated[str, typer.Option("--input-tokens", help="The ask, tokens in the unit.")],
    agent: Annotated[str | None, typer.Option(help="Role; any if not given.")] = None,
    context: Annotated[str | None, typer.Option(help="Context digest; unknown if not given.")] = None,
    unit: Unit = "input-total",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when the ask is refused.")] = False,
    as_json: Json = False,
) -> None:
    """Hold an ask against the floor of its path, before anything starts."""
    from harness_lab.floors import FloorKey
    from harness_lab.floors import preflight as hold_against

    asked = whole_number(input_tokens, what="--input-tokens")
    table = _derive(evidence, unit, stale_days=None).to_table()
    key = FloorKey(agent=agent, backend=backend, model=model, context=context, unit=unit)  # type: ignore[arg-type]
    answer = hold_against(table, key, asked)
    row_note = f"\n{answer.row.note}" if answer.row and answer.row.note else ""
    show(f"{answer}{row_note}", answer.to_dict(time.time_ns()), as_json=as_json)
    if strict and not answer.admitted:
        sys.exit(1)


def _derive(file: Path, unit: str, *, stale_days: float | None) -> Any:
    from datetime import timedelta

    from harness_lab.analyze import floors as derive

    if stale_days is not None and not 0 <= stale_days < 1e6:
        raise InputError("--stale-days", expected="days >= 0", got=stale_days)
    stale = None if stale_days is None else timedelta(days=stale_days)
    return derive(load(file), unit=unit, stale_after=stale, now_ns=time.time_ns())  # type: ignore[arg-type]

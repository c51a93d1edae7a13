"""Commands about what records say of a path: floors, preflight."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from harness_lab.cli.output import Json, pairs, show, whole_number, with_next
from harness_lab.cli.records import load
from harness_lab.errors import InputError

Unit = Annotated[str, typer.Option(help="input-total, total or newly-presented.")]
File = Annotated[Path, typer.Argument(help="Settlements (Parquet), or records in a known format.")]


def floors(
    file: File,
    unit: Unit = "input-total",
    stale_days: Annotated[float | None, typer.Option(help="Age in days from which evidence is stale.")] = None,
    probes: Annotated[
        bool, typer.Option("--plan-probes", help="Say which paths need cheap runs, and their cost.")
    ] = False,
    coverage: Annotated[float, typer.Option(help="Share of future runs a floor shall hold for (--plan-probes).")] = 0.8,
    want: Annotated[
        list[str] | None,
        typer.Option("--want", help="A path to measure: backend=B,model=M[,agent=A][,context=C]; repeat."),
    ] = None,
    results: Annotated[Path | None, typer.Option("--results", help="What probes left; stale rows are retired.")] = None,
    as_json: Json = False,
) -> None:
    """Derive the runtime floor of each path, and say what the evidence supports; or plan the runs that are missing."""
    from harness_lab.analyze.probes import plan_probes, with_results

    if want and not probes:
        raise InputError("--want", expected="--plan-probes beside it", got=want)
    settlements = load(file)
    found = _derive(settlements, unit, stale_days=stale_days)
    if results is not None:
        settlements = with_results(settlements, load(results), found)
        found = _derive(settlements, unit, stale_days=stale_days)
    if not probes:
        show(f"{found.summary()}\n\n{_after_floors(found, file, unit)}", found.records(), as_json=as_json)
        return
    plan = plan_probes(settlements, found, wanted=[_path(text, unit) for text in want or ()], coverage=coverage)
    show(f"{plan.summary()}\n\n{plan.explain()}", plan.records(), as_json=as_json)


def preflight(
    evidence: Annotated[Path, typer.Option("--evidence", help="Settlements behind the floors.")],
    backend: Annotated[str, typer.Option(help="Execution path.")],
    model: Annotated[str, typer.Option(help="Model, as requested.")],
    input_tokens: Annotated[str, typer.Option("--input-tokens", help="The ask, tokens in the unit.")],
    agent: Annotated[str | None, typer.Option(help="Role; any if not given.")] = None,
    context: Annotated[str | None, typer.Option(help="Context digest; unknown if not given.")] = None,
    fields: Annotated[
        list[str] | None, typer.Option("--context-field", help="NAME=VALUE of the starting context; repeat.")
    ] = None,
    stale: Annotated[str, typer.Option(help="What stale evidence does: warn, enforce or ignore.")] = "warn",
    stale_days: Annotated[float | None, typer.Option(help="Age in days from which evidence is stale.")] = None,
    unit: Unit = "input-total",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 when the ask is refused, or its path was never measured.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Hold an ask against the floor of its path, before anything starts."""
    from harness_lab.floors import FloorKey
    from harness_lab.floors import preflight as hold_against

    asked = whole_number(input_tokens, what="--input-tokens")
    table = _derive(load(evidence), unit, stale_days=stale_days).to_table()
    key = FloorKey(agent=agent, backend=backend, model=model, context=context, unit=unit)  # type: ignore[arg-type]
    known = pairs(fields or [], what="--context-field")
    answer = hold_against(table, key, asked, stale=stale, now_ns=time.time_ns(), context_fields=known)  # type: ignore[arg-type]
    unmeasured = answer.row is None
    near, others = _near(key, table) if unmeasured else ([], [])
    words = [str(answer), "" if answer.row is None else answer.row.note]
    words += [f"--strict: nothing was measured on this path. {_hint(near, others)}"] if unmeasured and strict else []
    words += [_hint(near, others)] if unmeasured and not strict and near else []
    show(
        "\n".join(filter(None, words)),
        answer.to_dict(time.time_ns()) | ({"did_you_mean": near} if unmeasured else {}),
        as_json=as_json,
    )
    if strict and (unmeasured or not answer.admitted):
        sys.exit(1)


def _after_floors(found: Any, file: Path, unit: str) -> str:
    """Return what floors mean, with the next command: an ask held against the first floor, or probes."""
    rows = [row for row in found.records() if row["floor"] is not None and row["backend"] and row["model"]]
    if not rows:
        return with_next(found.explain(), "floors", file, "--plan-probes", why="which paths need cheap runs")
    row = rows[0]
    ask = ["preflight", "--evidence", file, "--backend", row["backend"], "--model", row["model"]]
    ask += ["--agent", row["agent"]] if row["agent"] else []
    ask += ["--context", row["context"]] if row["context"] else []
    ask += [] if unit == "input-total" else ["--unit", unit]
    return with_next(found.explain(), *ask, "--input-tokens", row["floor"], why="holds an ask against its floor")


def _derive(settlements: Any, unit: str, *, stale_days: float | None) -> Any:
    from datetime import timedelta

    from harness_lab.analyze import floors as derive

    if stale_days is not None and not 0 <= stale_days < 1e6:
        raise InputError("--stale-days", expected="days >= 0", got=stale_days)
    stale = None if stale_days is None else timedelta(days=stale_days)
    return derive(settlements, unit=unit, stale_after=stale, now_ns=time.time_ns())  # type: ignore[arg-type]


def _near(key: Any, table: Any) -> tuple[list[str], list[str]]:
    """Return the measured paths that are spelled most like one that was not measured, and all of them."""
    from difflib import get_close_matches

    known = {f"{row.key.backend} / {row.key.model}": str(row.key) for row in table if row.floor is not None}
    close = get_close_matches(f"{key.backend} / {key.model}", list(known), n=3, cutoff=0.7)
    return [known[name] for name in close], list(known.values())


def _hint(near: list[str], others: list[str]) -> str:
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return f"Measured: {'; '.join(others[:5]) or 'no path'}"


def _path(text: str, unit: str) -> Any:
    """Read ``backend=B,model=M,agent=A``."""
    from harness_lab.floors import FloorKey

    parts = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if not {"backend", "model"} <= set(parts) <= {"backend", "model", "agent", "context"}:
        raise InputError("--want", expected="backend=B,model=M and maybe agent=A,context=C", got=text)
    return FloorKey(unit=unit, **parts)  # type: ignore[arg-type]

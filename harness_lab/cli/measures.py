"""Commands that measure records: what runs use, symptoms, recorded limits, costs of a floor, holds, what matters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness_lab.cli.output import Json, by_group, show, with_next
from harness_lab.cli.records import load

Records = Annotated[Path, typer.Argument(help="Settlements (Parquet), or records in a known format.")]
By = Annotated[list[str] | None, typer.Option("--by", help="Column whose groups are taken apart; repeat.")]
Column = Annotated[
    str, typer.Option("--column", help="cost_nusd, calls, tokens, input_total, duration_ns or another number.")
]


def distribution(
    records: Records,
    column: Column = "cost_nusd",
    level: Annotated[str, typer.Option(help="What a row is: run or node.")] = "run",
    fit: Annotated[bool, typer.Option("--fit", help="Choose a family too, or name the mixture it is made of.")] = False,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say what runs (or nodes) use until they complete: quantiles that know stops, failures and clusters."""
    from harness_lab.analyze import distribution as find
    from harness_lab.analyze.frames import display, label, stored_unit

    found = find(load(records, by=by), column, by=by, level=level)  # type: ignore[arg-type]
    parts = {label(key): part for key, part in (found.parts or {(): found}).items()} if fit else {}
    fits = {name: part.fit() for name, part in parts.items() if part.sample.n}
    told = [f"{name}: {fits[name].summary() if name in fits else 'no fit, no value is known'}" for name in parts]
    text = "\n\n".join([found.summary(), *told, _to_ceiling(found.explain(), records, column)])
    rows = [{"group": name, **row} for name, one in fits.items() for row in one.to_frame().to_dict("records")]
    tests = {name: {"reason": one.reason, "goodness_of_fit": one.goodness()} for name, one in fits.items()}
    data = {
        "column": column, "unit": stored_unit(column), "quantiles": found.to_frame(), "fifths": found.fifths(),
        "completed": found.completion().record() if found.sample.n else None, "endings": found.by_ending(),
        "fits": rows, "tests_of_fits": tests, "unit_of_fits": display(column)[0],
    }  # fmt: skip
    show(text, data, as_json=as_json)


def _to_ceiling(text: str, records: Path, column: str) -> str:
    """Name the next step after a distribution: a ceiling on what is distributed, where there is such a channel."""
    from harness_lab.analyze.ceilings import COLUMNS

    channel = {name: key for key, name in COLUMNS.items()}.get(column)
    if channel is None:
        return with_next(text, "ceiling", records, "--curve", why="what every ceiling on cost would have done")
    why = "the smallest ceiling that lets this share complete"
    return with_next(text, "ceiling", records, "--channel", channel, "--target", 0.9, why=why)


def symptoms(records: Records, by: By = None, as_json: Json = False) -> None:
    """Look for patterns that cost money or end runs, with what they spent."""
    from harness_lab.analyze import symptoms as find

    found = find(load(records, by=by), by=by)
    more = with_next(
        found.explain(), "limits", records, why="which limit ended how much, and what was spent without result"
    )
    data = {"found": by_group(found), "value_is": "share of the rows", "not_looked_for": found.not_looked_for}
    show(f"{found.summary()}\n\n{more}", data, as_json=as_json)


def caps(
    records: Records,
    channel: Annotated[str, typer.Option(help="cost, calls, input, tokens or time.")] = "cost",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Test whether recorded limits depend on the task, and bound quantiles however they were set."""
    from harness_lab.analyze import cap_check
    from harness_lab.analyze.ceilings import COLUMNS
    from harness_lab.analyze.frames import stored_unit

    found = cap_check(load(records, by=by), channel, by=by)  # type: ignore[arg-type]
    data = {
        "dependent": found.dependent, "tests": found.tests, "unit": stored_unit(COLUMNS[found.channel]),
        "quantiles": by_group(found),
    }  # fmt: skip
    by_what = [str(row["group"]) for row in found.tests.to_dict("records") if row["p_adjusted"] < 0.05][:1]
    apart = ["--by", by_what[0]] if found.dependent and by_what else []
    why = "quantiles within the groups that the limits go with" if apart else "quantiles, stopped runs allowed for"
    column = COLUMNS[found.channel]
    more = with_next(found.explain(), "distribution", records, "--column", column, *apart, why=why)
    show(f"{found.summary()}\n\n{more}", data, as_json=as_json)


def floor_costs(
    records: Records,
    unit: Annotated[str, typer.Option(help="input-total, total or newly-presented.")] = "input-total",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say what each floor costs: good runs falsely refused against doomed runs let through."""
    from harness_lab.analyze import floor_costs as find

    found = find(load(records, by=by), unit=unit, by=by)  # type: ignore[arg-type]
    more = with_next(
        found.explain(), "floors", records, "--unit", unit, why="the floor of each path, and what n supports"
    )
    show(f"{found.summary()}\n\n{more}", by_group(found, unit=f"{unit} tokens"), as_json=as_json)


def holds(
    records: Records,
    pool: Annotated[float, typer.Option(help="What the pool has for all at once, in the column's unit.")],
    at_once: Annotated[int, typer.Option(help="Holds open at the same time.")],
    column: Column = "input_total",
    level: Annotated[str, typer.Option(help="What a hold is for: run or node.")] = "node",
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say what each size of a hold does: overshoot against false refusals."""
    from harness_lab.analyze import hold_sizes
    from harness_lab.analyze.frames import stored_unit

    found = hold_sizes(load(records, by=by), column, pool=pool, at_once=at_once, level=level, by=by)  # type: ignore[arg-type]
    rows = by_group(found, unit=stored_unit(column))
    ask = ["distribution", records, "--column", column, "--level", level]
    more = with_next(
        found.explain(), *ask, why="what one use takes; a pool that stops inside is simulated: docs/experiment.md"
    )
    show(f"{found.summary()}\n\n{more}", rows, as_json=as_json)


def matters(
    records: Records,
    inputs: Annotated[list[str] | None, typer.Option("--input", help="Recorded column of a run; repeat.")] = None,
    metric: Annotated[str, typer.Option(help="What they shall move.")] = "cost_nusd",
    seed: Annotated[int, typer.Option(help="Of the dealing of runs into folds.")] = 0,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Rank recorded inputs of runs by how far knowing them moves a metric (given-data sensitivity)."""
    from harness_lab.tune import sensitivity_of_records

    names = tuple(inputs or ("calls", "input_total", "output", "nodes"))
    found = sensitivity_of_records(load(records, by=by), names, metric=metric, by=by, seed=seed)
    data = {
        "metric": metric, "n": found.n, "clusters": found.clusters, "left_out": found.left_out, "note": found.note,
        "factors": by_group(found),
    }  # fmt: skip
    first = str(found.frame["factor"].iloc[0])
    more = with_next(found.explain(), "distribution", records, "--column", first, why="how the first input is spread")
    show(f"{found.summary()}\n\n{more}", data, as_json=as_json)

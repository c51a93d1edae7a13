"""Commands about records as such: read them, and say how good they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from harness_lab.cli.ids import say_hashed
from harness_lab.cli.output import Json, note, pairs, show
from harness_lab.errors import InputError

MAP_HELP = (
    "FIELD=COLUMN of a flat table; repeat. Fields: run, outcome, cost_usd, input_total, output, duration_s, start, "
    "calls, agent, model, user, repo ...; all with --fields."
)
VALUE_HELP = "What your own words mean, FIELD:VALUE=MEANING, such as outcome:gave_up=failed; repeat."


def read(
    paths: Annotated[list[Path] | None, typer.Argument(help="Files and folders; none: look on this computer.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the settlement table (Parquet).")] = None,
    store: Annotated[Path | None, typer.Option("--store", help="Folder of a store to add them to, once each.")] = None,
    format: Annotated[str, typer.Option("--format", help="Format of the records; auto tells by content.")] = "auto",
    map: Annotated[list[str] | None, typer.Option("--map", help=MAP_HELP)] = None,
    map_value: Annotated[list[str] | None, typer.Option("--map-value", help=VALUE_HELP)] = None,
    preset: Annotated[str | None, typer.Option("--preset", help="Named column map of a flat table.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Table of outcomes and groups to join by run.")] = None,
    unit: Annotated[str | None, typer.Option(help="What a run is where it can be either: session or turn.")] = None,
    placeholders: Annotated[str, typer.Option(help="Placeholder outputs: recorded, unknown, estimated.")] = "recorded",
    id_key: Annotated[Path | None, typer.Option("--id-key", help="Key file that ids are hashed with.")] = None,
    keep_ids: Annotated[bool, typer.Option("--keep-ids", help="Keep ids as they are.")] = False,
    recompute: Annotated[bool, typer.Option("--recompute", help="Fill unknown costs with list prices.")] = False,
    fields: Annotated[bool, typer.Option("--fields", help="List the fields that --map knows, and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Without paths: read what is found, without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Read recorded runs into a settlement table or a store; ids are hashed with a local key.

    Exits with 1, and writes nothing, when no row can be read.
    """
    from harness_lab.settlements import read as read_records
    from harness_lab.settlements.readers.words import parse_values

    if fields:
        _list_fields(as_json=as_json)
        return
    if map and preset:
        raise InputError("--map", expected="a map or a preset, not both", got=preset)
    chosen = paths or _look(as_json=as_json, yes=yes)
    if not chosen:
        return
    columns: Any = preset if preset else pairs(map, what="--map") if map else None
    table = read_records(
        chosen,
        format=format,
        columns=columns,
        values=parse_values(map_value) if map_value else None,
        labels=labels,
        unit=unit,  # type: ignore[arg-type]
        placeholders=placeholders,  # type: ignore[arg-type]
        ids="kept" if keep_ids else "hashed",
        id_key=id_key,
    )
    if table.nodes.empty:
        show(table.summary(), {**_counts(table), "out": None}, as_json=as_json)
        note("no row could be read" + ("; nothing was written" if out or store else ""))
        raise typer.Exit(1)
    _keep(table, out=out, store=store, recompute=recompute, as_json=as_json)


def _list_fields(*, as_json: bool) -> None:
    """Say which fields a column map may name, and what each means."""
    from harness_lab.settlements.columns import NODE_COLUMNS
    from harness_lab.settlements.convert import TARGETS

    rows = [{"field": one.name, "meaning": one.meaning} for one in NODE_COLUMNS]
    ways = {"usd": "dollars", "s": "seconds"}
    for name, (column, _) in TARGETS.items():
        way = ways.get(name.rpartition("_")[2], "an instant: ISO 8601, or seconds since 1970")
        rows.append({"field": name, "meaning": f"{column} given in {way}" if "_" in name else way})
    width = max(len(row["field"]) for row in rows)
    show("\n".join(f"{row['field']:{width}}  {row['meaning']}" for row in rows), rows, as_json=as_json)


def _keep(table: Any, *, out: Path | None, store: Path | None, recompute: bool, as_json: bool) -> None:
    """Write what was read, and say how reading went."""
    from harness_lab.settlements import SettlementStore
    from harness_lab.settlements import recompute as price

    text = table.summary()
    data = _counts(table)
    if recompute:
        costs = price(table)
        table = costs.fill()
        text, data["costs"] = f"{text}\n{costs.summary()}", costs.to_frame()
    if out is not None:
        table.to_parquet(out)
        note(f"wrote {out}")
    if store is not None:
        done = SettlementStore(store).append(table)
        note(f"{store}: {done}")
        data["store"] = {"path": store, "added": done.added, "replaced": done.replaced, "unchanged": done.unchanged}
    show(text, {**data, "out": out}, as_json=as_json)


def _counts(table: Any) -> dict[str, Any]:
    """Return how reading went, and how much there is."""
    data = {**table.report.to_dict(), "nodes": len(table.nodes), "runs": int(table.nodes["run"].nunique())}
    data["set_aside"] = [{"file": s.file, "line": s.line, "reason": s.reason} for s in table.report.set_aside]
    data["calls"] = None if table.calls is None else len(table.calls)
    return data


def _look(*, as_json: bool, yes: bool) -> list[Path]:
    """Say where records are, opening none, and return those to read: none unless somebody says so."""
    from harness_lab.settlements.discover import discover

    found = discover()
    readable = [place.path for place in found if place.readable]
    ask = bool(readable) and not as_json and sys.stdin.isatty() and not yes
    if not yes or not readable:
        lines = [str(place) for place in found] or ["no agent records were found in the usual places"]
        data = [
            {"tool": f.tool, "path": f.path, "files": f.files, "readable": f.readable, "command": f.command}
            for f in found
        ]
        show("\n".join(lines), {"found": data}, as_json=as_json)
    if yes or (ask and typer.confirm("Read them now?", default=False)):
        return list(dict.fromkeys(readable))
    return []


def quality(
    file: Annotated[Path, typer.Argument(help="Settlements (Parquet), a store, or records in a known format.")],
    recompute: Annotated[bool, typer.Option("--recompute", help="Hold recorded costs against list prices.")] = False,
    bill: Annotated[Path | None, typer.Option("--bill", help="A provider's usage or cost export.")] = None,
    bill_map: Annotated[list[str] | None, typer.Option("--bill-map", help="FIELD=COLUMN of the bill; repeat.")] = None,
    bill_preset: Annotated[str | None, typer.Option("--bill-preset", help="Named column map of the bill.")] = None,
    as_json: Json = False,
) -> None:
    """Say how good recorded settlements are, and what each flaw does to which analysis."""
    from harness_lab.settlements import quality as look_at
    from harness_lab.settlements import recompute as price
    from harness_lab.settlements import reconcile

    if bill is None and (bill_map or bill_preset):
        raise InputError("--bill", expected="the export that the map is for", got="none")
    table = load(file)
    columns: Any = bill_preset or (pairs(bill_map, what="--bill-map") if bill_map else None)
    report = look_at(
        table,
        costs=price(table) if recompute else None,
        bill=None if bill is None else reconcile(table, bill, columns=columns),
    )
    show(report.summary(), report.to_dict(), as_json=as_json)


def load(path: Path, *, by: list[str] | None = None) -> Any:
    """Return the settlements of a table, a store, or records; say on standard error what the answer will not cover.

    Parameters
    ----------
    path : Path
        What to read.
    by : list of str, optional
        Columns of the groups that will be told apart: where those are hashed ids, that is said too.
    """
    from harness_lab.settlements import SettlementStore
    from harness_lab.settlements import read as read_records

    table = SettlementStore(path).read() if (path / "store.json").is_file() else read_records(path)
    for text in _gaps(table):
        note(f"{path.name}: {text}; see harness-lab quality")
    say_hashed(table, by)
    return table


def _gaps(table: Any) -> list[str]:
    """Return what of the records is not in the table, and what of the table cannot be told."""
    report = table.report
    found = [one.partition(" was made of ")[2] for one in report.notes if one.endswith(" set aside then")]
    gaps = [f"made of {one}" for one in found]
    if report.set_aside:
        gaps.append(f"{len(report.set_aside):,} of {report.read:,} record(s) were set aside")
    judged = table.nodes["eligible"].notna()  # a person has decided what such a row is good for
    unknown = int(((table.nodes["outcome"] == "unknown") & ~judged).sum())
    if unknown:
        gaps.append(f"how {unknown:,} of {len(table.nodes):,} row(s) ended is unknown")
    return gaps

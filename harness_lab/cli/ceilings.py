"""The command that chooses a ceiling: for a target, the cheapest, or by replay beside simulation."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness_lab.cli.ids import runs_of
from harness_lab.cli.output import Json, by_group, show, with_next
from harness_lab.cli.records import load
from harness_lab.cli.tuned import write_config
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from harness_lab.analyze import CeilingChoice
    from harness_lab.settlements import Settlements

Records = Annotated[Path, typer.Argument(help="Settlements (Parquet), or records in a known format.")]
By = Annotated[list[str] | None, typer.Option("--by", help="Column whose groups are taken apart; repeat.")]
TARGET = 0.95


def ceiling(
    records: Records,
    channel: Annotated[
        str, typer.Option(help="cost, calls, input, tokens, time, depth, starts or concurrency.")
    ] = "cost",
    target: Annotated[float | None, typer.Option(help="Share of runs that shall complete; 0.95 if not given.")] = None,
    failure_usd: Annotated[
        float | None, typer.Option(help="Price of a run that does not complete, dollars: the cheapest ceiling then.")
    ] = None,
    retries: Annotated[int | None, typer.Option(help="How often such a run is started again (--failure-usd).")] = None,
    curve: Annotated[bool, typer.Option("--curve", help="Say of every ceiling what it would have done.")] = False,
    runaways: Annotated[
        Path | None, typer.Option(help="Text file with the ids of runs labelled as runaways, one a line.")
    ] = None,
    id_key: Annotated[Path | None, typer.Option("--id-key", help="Key that ids were hashed with (--runaways).")] = None,
    by: By = None,
    write: Annotated[Path | None, typer.Option("--write", help="Write it as a tuned config (JSON).")] = None,
    policy: Annotated[
        Path | None, typer.Option("--into", help="Experiment (TOML) whose last policy it goes into, for --write.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="Sign the config with this key (--write).")
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate it beside: where replay and simulation differ, and why.")
    ] = False,
    experiment: Annotated[
        Path | None, typer.Option(help="World and policy (TOML) for --simulate; fitted to the records if not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose a ceiling: the smallest for a target (exits with 1 if declined), or with --failure-usd the cheapest."""
    given = {
        "--target": target, "--failure-usd": failure_usd, "--retries": retries, "--curve": curve or None,
        "--runaways": runaways, "--id-key": id_key, "--by": by or None, "--write": write, "--into": policy,
        "--key-file": key_file, "--simulate": simulate or None, "--experiment": experiment,
    }  # fmt: skip
    _agree({name for name, value in given.items() if value is not None})
    table, goal = load(records, by=by), TARGET if target is None else target
    if simulate:
        _both_ways(table, records, channel, goal, experiment, as_json=as_json)
    elif failure_usd is not None:
        _cheapest(table, records, channel, failure_usd, retries or 0, by, as_json=as_json)
    else:
        labels = None if runaways is None else runs_of(table, _ids(runaways), what="--runaways", id_key=id_key)
        into = (
            None if write is None else partial(write_config, records=table, path=write, into=policy, key_file=key_file)
        )
        _for_target(table, records, channel, goal, labels, by, into, curve=curve, as_json=as_json)


_ALONE = {
    "--failure-usd": {"--target", "--write", "--runaways", "--curve"},
    "--simulate": {"--failure-usd", "--by", "--write", "--runaways", "--curve"},
    "--curve": {"--write"},
    "--by": {"--write"},
}
"""What an option cannot have beside it: the other would be left out of the answer."""
_NEEDS = {
    "--retries": "--failure-usd", "--into": "--write", "--key-file": "--write", "--experiment": "--simulate",
    "--id-key": "--runaways",
}  # fmt: skip


def _agree(given: set[str]) -> None:
    """Raise where an option would be ignored in silence."""
    for one, others in _ALONE.items():
        if one in given and others & given:
            expected = "a target alone beside it" if one == "--simulate" else "no other question beside it"
            raise InputError(one, expected=expected, got=", ".join(sorted(others & given)))
    for one, other in _NEEDS.items():
        if one in given and other not in given:
            raise InputError(one, expected=f"{other} beside it", got="none")


def _ids(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("--runaways", expected="a text file of run ids, one a line", got=str(error)) from None


def _for_target(
    table: Settlements, records: Path, channel: str, target: float, labels: list[str] | None, by: list[str] | None,
    write: Any, *, curve: bool, as_json: bool,
) -> None:  # fmt: skip
    from harness_lab.analyze import ceiling as choose
    from harness_lab.analyze.ceiling_effect import curve_text
    from harness_lab.analyze.frames import amount, label, stored_unit

    found = choose(table, channel, target=target, by=by, runaways=labels)  # type: ignore[arg-type]
    if write is not None and found.declined is None:
        write(found)
    parts = {label(key): part for key, part in (found.parts or {(): found}).items()}
    text, data = f"{found.summary()}\n\n{_next(found, records, write)}", by_group(found)
    if not curve:
        show(text, data, as_json=as_json)
    else:
        curves = {name: part.curve() for name, part in parts.items()}
        tables = [f"{name}: {curve_text(one, partial(amount, found.column))}" for name, one in curves.items()]
        rows = [{"group": name, **row} for name, one in curves.items() for row in one.to_dict("records")]
        answer = {"chosen": data, "unit": stored_unit(found.column), "curve": rows}
        show("\n\n".join([*tables, text]), answer, as_json=as_json)
    if all(part.declined is not None for part in parts.values()):
        raise typer.Exit(1)


def _next(found: CeilingChoice, records: Path, write: Any) -> str:
    """Return what the choice means, with the next command: write it, ask for less, or look at the records."""
    if found.channel == "cost" and not found.sample.n:
        ask = ["ceiling", records, "--channel", "input", "--target", found.target]
        return with_next(found.explain(), *ask, why="a ceiling that needs no costs")
    ask = ["ceiling", records, "--channel", found.channel]
    if found.ceiling is None and found.largest_target >= 0.01:
        share = math.floor(found.largest_target * 100) / 100
        return with_next(found.explain(), *ask, "--target", share, why="a target that these runs do support")
    if found.ceiling is None:
        return with_next(found.explain(), "quality", records, why="what is missing in the records")
    if write is not None:
        config = write.keywords["path"]
        return with_next(found.explain(), "check", config, "--against", records, why="and later, against newer records")
    if found.parts:
        return with_next(found.explain(), *ask, "--target", found.target, "--curve", why="every ceiling beside it")
    why = "as a config, to export and to check"
    return with_next(found.explain(), *ask, "--target", found.target, "--write", "config.json", why=why)


def _cheapest(
    table: Settlements,
    records: Path,
    channel: str,
    failure_usd: float,
    retries: int,
    by: list[str] | None,
    *,
    as_json: bool,
) -> None:
    from harness_lab.analyze import cheapest_ceiling

    found = cheapest_ceiling(table, channel, failure_usd=failure_usd, retries=retries, by=by)  # type: ignore[arg-type]
    why = "what each would cut, avoid and sink"
    more = with_next(found.explain(), "ceiling", records, "--channel", channel, "--curve", why=why)
    show(f"{found.summary()}\n\n{more}", by_group(found), as_json=as_json)
    if all(part.cost.value is None for part in (found.parts or {(): found}).values()):
        raise typer.Exit(1)


def _both_ways(
    table: Settlements, records: Path, channel: str, target: float, file: Path | None, *, as_json: bool
) -> None:
    from harness_lab.analyze.frames import stored_unit
    from harness_lab.simulate import load_experiment
    from harness_lab.tune import ceiling_both_ways

    world = None if file is None else load_experiment(file)
    name = None if world is None else world.policies[-1].name
    found = ceiling_both_ways(table, channel, target=target, experiment=world, policy=name)  # type: ignore[arg-type]
    data = {
        "replayed": found.replayed.to_frame(), "simulated_ceiling": found.simulated_ceiling,
        "unit": stored_unit(found.replayed.column), "world": found.world, "trust": found.trust(),
        "ceilings": found.to_frame(),
    }  # fmt: skip
    ask = ["ceiling", records, "--channel", channel, "--target", target, "--write", "config.json"]
    more = with_next(found.explain(), *ask, why="the replayed ceiling, as a config to hold against later records")
    show(f"{found.summary()}\n\n{more}", data, as_json=as_json)

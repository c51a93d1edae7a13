"""Commands on single runs and single ceilings: sweep, replay and explain."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness_lab.cli.ids import runs_of
from harness_lab.cli.output import Json, end, note, show

if TYPE_CHECKING:
    import pandas as pd

    from harness_lab.policies import PolicySpec

File = Annotated[Path, typer.Argument(help="Experiment file (TOML).")]
Policy = Annotated[str | None, typer.Option(help="Name of the policy; needed where the file has several.")]
Out = Annotated[Path | None, typer.Option("--out", help="Where to write the table: .csv, .parquet or .json.")]


def sweep(
    file: File,
    ceiling: Annotated[str, typer.Argument(help="calls, tokens, input, fresh, cost or time.")],
    policy: Policy = None,
    scenario: Annotated[str | None, typer.Option(help="Name of the scenario; the first if not given.")] = None,
    values: Annotated[
        str | None, typer.Option(help="Ceilings, separated by commas; else where outcomes change.")
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs; the file's if not given.")] = None,
    seed: Annotated[int | None, typer.Option(help="Names the luck; the file's if not given.")] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Say what every value of one ceiling would do, from one simulation without it where that is exact."""
    from harness_lab.simulate import load_experiment
    from harness_lab.simulate import sweep as run_sweep
    from harness_lab.simulate.sweep_table import UNITS

    changes = {name: value for name, value in (("runs", runs), ("seed", seed)) if value is not None}
    experiment: Any = replace(load_experiment(file), **changes)  # type: ignore[arg-type]
    wanted = None if values is None else [_number(part) for part in values.split(",")]
    found = run_sweep(experiment, ceiling, wanted, policy=policy, scenario=scenario)  # type: ignore[arg-type]
    data = {
        "manifest": dict(found.manifest), "ceiling": found.ceiling, "policy": found.policy, "runs": found.runs,
        "unit": UNITS.get(found.ceiling, (found.ceiling, 1))[0], "scenario": found.scenario,
        "read_off": found.exact, "simulated_because": found.reasons,
        "curve": found.to_frame(),
    }  # fmt: skip
    _write(out, found.to_frame(), data)
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)
    end(stopped=found.cancelled)


def replay(
    records: Annotated[Path, typer.Argument(help="Settlements (Parquet), or records in a known format.")],
    run: Annotated[str, typer.Argument(help="The recorded run, as in the column run or as its source names it.")],
    policies: Annotated[Path, typer.Option("--policies", help="File with [[policies]], such as an experiment file.")],
    around_s: Annotated[float | None, typer.Option(help="Period: runs started within so many seconds of it.")] = None,
    id_key: Annotated[Path | None, typer.Option("--id-key", help="Key that the ids were hashed with.")] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Say where each policy would have stopped one recorded run, and which good runs it would have cut as well."""
    from harness_lab.settlements import read
    from harness_lab.simulate import replay as run_replay

    ids: Any = "hashed" if run.startswith("h-") else "kept"  # a run is named as a table shows it, or as its source does
    table = read(records, ids=ids)
    (name,) = runs_of(table, [run], what="run", id_key=id_key)
    found = run_replay(table, name, _policies(policies), around_s=around_s)
    data = {"run": found.run, "period": found.period, "left_out": found.unplaced, "policies": found.to_frame()}
    data["what_the_record_does_not_say"] = found.marks
    _write(out, found.to_frame(), data)
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)


def explain(
    file: File,
    run: Annotated[str, typer.Argument(help="Number of the run, as in the column run.")],
    policy: Policy = None,
    scenario: Annotated[str | None, typer.Option(help="Name of the scenario; the first if not given.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Where to write a trace for ui.perfetto.dev (JSON).")] = None,
    picture: Annotated[Path | None, typer.Option(help="Where to write the tree over time (SVG).")] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Replay one run of an experiment alone: every question, answer, settlement, refusal and stop."""
    from harness_lab.files import write_text
    from harness_lab.simulate import explain as replay_alone
    from harness_lab.simulate import load_experiment

    found = replay_alone(load_experiment(file), run, policy=policy, scenario=scenario)
    if trace is not None:
        note(f"wrote {found.to_chrome_trace(trace)}")
    if picture is not None:
        from harness_lab.plots.svg import to_svg

        figure: Any = found.plot().get_figure()
        note(f"wrote {write_text(picture, to_svg(figure))}")
    data = {"manifest": dict(found.manifest), "run": found.run, "policy": found.policy, "events": found.to_frame()}
    _write(out, found.to_frame(), data)
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)


def _policies(file: Path) -> list[PolicySpec]:
    """Read the policies of a TOML file; whatever else it holds is left alone."""
    from harness_lab.errors import InputError, ReadError
    from harness_lab.simulate.config import read_policy
    from harness_lab.simulate.config_errors import at

    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ReadError(str(file), expected="a TOML file with [[policies]]", got=str(error)) from None
    tables = data.get("policies")
    if not isinstance(tables, list) or not tables:
        raise InputError("--policies", expected="a TOML file with [[policies]]", got=sorted(data))
    return [at(f"policies.{i}", partial(read_policy, table)) for i, table in enumerate(tables)]


def _number(text: str) -> float | int:
    from harness_lab.errors import InputError

    try:
        value = float(text.replace("_", ""))
    except ValueError:
        raise InputError("--values", expected="numbers separated by commas", got=text) from None
    return int(value) if value.is_integer() else value


def _write(out: Path | None, frame: pd.DataFrame, data: dict[str, Any]) -> None:
    """Write a table in the form that its name says."""
    if out is None:
        return
    from harness_lab.cli.output import plain
    from harness_lab.errors import InputError
    from harness_lab.files import replacing, write_text

    if out.suffix == ".csv":
        write_text(out, frame.to_csv(index=False))
    elif out.suffix == ".json":
        import json

        write_text(out, json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    elif out.suffix == ".parquet":
        with replacing(out) as beside:
            frame.to_parquet(beside)
    else:
        raise InputError("--out", expected="a name that ends in .csv, .parquet or .json", got=str(out))
    note(f"wrote {out}")

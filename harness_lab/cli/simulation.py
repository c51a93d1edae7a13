"""Commands that simulate: simulate and compare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness_lab.cli.output import Json, end, note, show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.simulate import Experiment, Result

File = Annotated[Path, typer.Argument(help="Experiment file (TOML).")]
Runs = Annotated[int | None, typer.Option(help="Runs under each policy; the file's if not given.")]
Seed = Annotated[int | None, typer.Option(help="Names the luck; the file's if not given.")]
Engine = Annotated[str, typer.Option(help="auto, kernel, asyncio (the virtual loop, slower) or fast; same results.")]
Backend = Annotated[str, typer.Option(help="auto, serial, loky (worker processes), dask or ray.")]
Workers = Annotated[int | None, typer.Option(help="Worker processes; the number of cores if not given.")]
Out = Annotated[Path | None, typer.Option("--out", help="Where to write the settlement table (Parquet).")]


STREAM_FROM = 100_000
"""Simulated trees from which rows go to the file as they come, and are never all in memory."""


def simulate(
    file: File,
    runs: Runs = None,
    seed: Seed = None,
    engine: Engine = "auto",
    backend: Backend = "auto",
    workers: Workers = None,
    metric: Annotated[str, typer.Option(help="What has to be precise: completed, cost, time or calls.")] = "completed",
    half_width: Annotated[
        float | None, typer.Option(help="Stop when its interval is so narrow (share, dollars, seconds, calls).")
    ] = None,
    relative: Annotated[float | None, typer.Option(help="The same as a share of the estimate.")] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Simulate an experiment and write its settlement table, with what is needed to get it again."""
    from harness_lab.simulate import Precision

    until = None
    if half_width is not None or relative is not None:
        until = Precision(metric=metric, half_width=half_width, relative=relative)  # type: ignore[arg-type]
    how: dict[str, Any] = {"engine": engine, "backend": backend, "workers": workers, "until": until}
    experiment = _experiment(file, runs=runs, seed=seed)
    if out is not None and experiment.runs * len(experiment.policies) * len(experiment.scene()) >= STREAM_FROM:
        stored = experiment.stream(out, **how)
        note(f"wrote {out}")
        data = {"manifest": dict(stored.manifest), "policies": stored.manifest["outcomes"], "digest": None, "out": out}
        show(f"{stored.summary()}\n{stored.explain()}", data, as_json=as_json)
        _end(stored.manifest)
        return
    result = _run(experiment, how, out=out)
    data = {"manifest": dict(result.manifest), "policies": _outcomes(result), "digest": result.digest(), "out": out}
    show(f"{result.summary()}\n{result.explain()}", data, as_json=as_json)
    _end(result.manifest)


def compare(
    file: File,
    baseline: Annotated[str | None, typer.Option(help="Policy to compare with; the first if not given.")] = None,
    runs: Runs = None,
    seed: Seed = None,
    engine: Engine = "auto",
    backend: Backend = "auto",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Simulate an experiment and compare its policies, run by run."""
    from harness_lab.analyze import compare as compare_policies
    from harness_lab.errors import InputError

    experiment = _experiment(file, runs=runs, seed=seed)
    names = [policy.name for policy in experiment.policies]
    if baseline is not None and baseline not in names:
        raise InputError("--baseline", expected=f"one of {', '.join(names)}", got=baseline)
    result = _run(experiment, {"engine": engine, "backend": backend}, out=out)
    found = compare_policies(result, baseline=baseline)
    data = {
        "manifest": dict(result.manifest),
        "baseline": found.baseline,
        "policies": found.to_frame(),
        "switches": found.switches,
        "differences": found.differences(),
        "binding": found.binding,
        "identical_runs": found.identical,
        "paired_runs": found.paired,
        "verdict": found.verdict(),
    }
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)
    _end(result.manifest)


def _end(manifest: Mapping[str, Any]) -> None:
    from harness_lab.simulate.execute import CANCELLED

    end(stopped=manifest["ended"] == CANCELLED)


def _experiment(file: Path, *, runs: int | None, seed: int | None) -> Experiment:
    from harness_lab.simulate import load_experiment

    changes: dict[str, Any] = {name: value for name, value in (("runs", runs), ("seed", seed)) if value is not None}
    return replace(load_experiment(file), **changes)


def _run(experiment: Experiment, how: dict[str, Any], *, out: Path | None) -> Result:
    from harness_lab.simulate.stream import write_result

    result = experiment.run(**how)
    if out is not None:
        write_result(out, result.settlements, result.manifest)
        note(f"wrote {out}")
    return result


def _outcomes(result: Result) -> dict[str, dict[str, int]]:
    nodes = result.settlements.nodes
    roots = nodes[nodes["parent"].isna()]
    return {
        name: {str(word): int(n) for word, n in roots.loc[roots["policy"] == name, "outcome"].value_counts().items()}
        for name in result.policies
    }

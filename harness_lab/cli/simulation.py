"""Commands that simulate: simulate and compare."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness_lab.cli.output import Json, note, show

if TYPE_CHECKING:
    from harness_lab.simulate import Result

File = Annotated[Path, typer.Argument(help="Experiment file (TOML).")]
Runs = Annotated[int | None, typer.Option(help="Runs under each policy; the file's if not given.")]
Seed = Annotated[int | None, typer.Option(help="Names the luck; the file's if not given.")]
Engine = Annotated[str, typer.Option(help="auto, kernel, asyncio (the virtual loop, slower) or fast; same results.")]
Backend = Annotated[str, typer.Option(help="auto, serial or loky (worker processes).")]
Out = Annotated[Path | None, typer.Option("--out", help="Where to write the settlement table (Parquet).")]


def simulate(
    file: File,
    runs: Runs = None,
    seed: Seed = None,
    engine: Engine = "auto",
    backend: Backend = "auto",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Simulate an experiment and write its settlement table."""
    result = _run(file, runs=runs, seed=seed, engine=engine, backend=backend, out=out)
    data = {"manifest": dict(result.manifest), "policies": _outcomes(result), "digest": result.digest(), "out": out}
    show(f"{result.summary()}\n{result.explain()}", data, as_json=as_json)


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

    result = _run(file, runs=runs, seed=seed, engine=engine, backend=backend, out=out, baseline=baseline)
    found = compare_policies(result.settlements, baseline=baseline)
    data = {
        "manifest": dict(result.manifest),
        "baseline": found.baseline,
        "policies": found.to_frame(),
        "differences": found.differences(),
        "binding": found.binding,
        "identical_runs": found.identical,
        "paired_runs": found.paired,
        "verdict": found.verdict(),
    }
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)


def _run(
    file: Path,
    *,
    runs: int | None,
    seed: int | None,
    engine: str,
    backend: str,
    out: Path | None,
    baseline: str | None = None,
) -> Result:
    from harness_lab.errors import InputError
    from harness_lab.simulate.config import load_experiment

    experiment = load_experiment(file)
    names = [policy.name for policy in experiment.policies]
    if baseline is not None and baseline not in names:
        raise InputError("--baseline", expected=f"one of {', '.join(names)}", got=baseline)
    changes: dict[str, Any] = {name: value for name, value in (("runs", runs), ("seed", seed)) if value is not None}
    progress = sys.stderr.isatty()
    result = replace(experiment, **changes).run(engine=engine, backend=backend, progress=progress)  # type: ignore[arg-type]
    if out is not None:
        result.settlements.to_parquet(out)
        note(f"wrote {out}")
    return result


def _outcomes(result: Result) -> dict[str, dict[str, int]]:
    nodes = result.settlements.nodes
    roots = nodes[nodes["parent"].isna()]
    return {
        name: {str(word): int(n) for word, n in roots.loc[roots["policy"] == name, "outcome"].value_counts().items()}
        for name in result.policies
    }

"""Commands about simulated worlds: which policy wins, what a result hangs on, whether a fit gives records back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness_lab.cli.output import Json, pairs, show
from harness_lab.cli.records import load
from harness_lab.errors import InputError

File = Annotated[Path, typer.Argument(help="Experiment file (TOML).")]


def race(
    file: File,
    indifference: Annotated[float, typer.Option(help="Smallest difference worth telling apart (share, $, s).")],
    metric: Annotated[str, typer.Option(help="completed, cost_nusd, wasted_nusd or duration_ns.")] = "completed",
    max_runs: Annotated[int, typer.Option(help="Runs of each policy at most.")] = 20_000,
    as_json: Json = False,
) -> None:
    """Select the best of an experiment's policies, simulating no more than that takes; exits with 1 if undecided."""
    from harness_lab.simulate import load_experiment
    from harness_lab.tune import race as run

    found = run(load_experiment(file), metric, indifference=indifference, max_runs=max_runs)
    data = {"chosen": found.chosen, "simulated": found.simulated, "policies": found.to_frame()}
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)
    if found.chosen is None:
        raise typer.Exit(1)


def sensitivity(
    file: File,
    factor: Annotated[
        list[str], typer.Option("--factor", help="NAME=LOW:HIGH, a range of multipliers, such as prices=0.8:1.5.")
    ],
    metric: Annotated[str, typer.Option(help="completed, cost_nusd, wasted_nusd or duration_ns.")] = "cost_nusd",
    policy: Annotated[str | None, typer.Option(help="Which policy; the last if not given.")] = None,
    method: Annotated[str, typer.Option(help="sobol or morris.")] = "sobol",
    samples: Annotated[int, typer.Option(help="Base samples or trajectories; each costs several evaluations.")] = 16,
    runs: Annotated[int | None, typer.Option(help="Runs of an evaluation; the file's if not given.")] = None,
    as_json: Json = False,
) -> None:
    """Scale assumptions of the world within ranges: which of them matter, and the worst case."""
    from harness_lab.analyze.wide import unit_of
    from harness_lab.simulate import load_experiment
    from harness_lab.tune import sensitivity as find

    ranges = {name: _range(text) for name, text in pairs(factor, what="--factor").items()}
    found = find(
        load_experiment(file), ranges, metric=metric, policy=policy, method=method,  # type: ignore[arg-type]
        samples=samples, runs=runs,
    )  # fmt: skip
    data = {
        "metric": metric, "unit": unit_of(metric), "factors": found.to_frame(), "worst": found.worst,
        "best": found.best, "evaluations": found.n,
    }  # fmt: skip
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)


def check_fit(
    records: Annotated[Path, typer.Argument(help="Settlements (Parquet), or records in a known format.")],
    clusters: Annotated[str | None, typer.Option(help="Column by which runs resemble each other.")] = None,
    as_json: Json = False,
) -> None:
    """Fit a world to half of the runs and hold it against the others; exits with 1 if it does not give them back."""
    from harness_lab.simulate import check_fit as find

    found = find(load(records), clusters=clusters)
    data = {"given_back": found.given_back, "tests": found.to_frame(), "left_out": found.left_out}
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)
    if not found.given_back:
        raise typer.Exit(1)


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise InputError("--factor", expected="NAME=LOW:HIGH", got=text) from None

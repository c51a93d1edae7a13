"""Commands that analyse records and experiments."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_lab.cli.output import Json, named_by_unit, show, with_next
from harness_lab.cli.prices import read_table
from harness_lab.cli.records import load
from harness_lab.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from harness_lab.analyze import ConfigCheck, SpendSplit
    from harness_lab.export import TunedConfig

Records = Annotated[Path, typer.Argument(help="Settlements (Parquet), or records in a known format.")]
By = Annotated[list[str] | None, typer.Option("--by", help="Column whose groups are taken apart; repeat.")]


def check(
    config: Annotated[Path, typer.Argument(help="Tuned config (JSON).")],
    against: Annotated[Path, typer.Option("--against", help="Newer settlements.")],
    reference: Annotated[Path | None, typer.Option("--reference", help="The records behind the config.")] = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Hold a tuned config against newer records; exits with 1 when something of it is stale."""
    from harness_lab.analyze import check_config
    from harness_lab.export import TunedConfig

    tuned = TunedConfig.read(config)
    before = None if reference is None else load(reference)
    found = check_config(tuned, load(against, by=by), reference=before, now_ns=time.time_ns(), by=by)
    data = {
        "stale": bool(found.stale),
        "checked": replace(found, parts=None).to_frame(),
        "groups": None if found.parts is None else found.parts.to_frame(),
        "drift": None if found.drift is None else found.drift.to_frame(),
        **_spend(found.split),
    }
    show(f"{found.summary()}\n\n{_after_check(found, tuned, against)}", data, as_json=as_json)
    if found.stale:
        sys.exit(1)


def _after_check(found: ConfigCheck, tuned: TunedConfig, against: Path) -> str:
    """Return what the verdict means, with the next command: choose again, or check again later."""
    promises = [one.target_share for one in tuned.evidence if one.target_share is not None]
    if found.stale and promises:
        ask = ["ceiling", against, "--target", promises[0], "--write", "newer.json"]
        return with_next(found.explain(), *ask, why="the same promise from the newer records (channel cost)")
    return with_next(found.explain(), "quality", against, why="what in the newer records bends this; check again later")


def _after_steps(text: str, file: Path, frame: pd.DataFrame, policy: str | None) -> str:
    """Name a search over the limits that were stepped, from half to twice each."""
    knobs: list[str] = []
    for name, value in dict(zip(frame["limit"], frame["before"], strict=True)).items():
        low, high = (round(value / 2), round(value * 2)) if float(value).is_integer() else (value / 2, value * 2)
        knobs += ["--knob", f"{name}={low}:{max(high, low + 1)}"]
    which = [] if policy is None else ["--policy", policy]
    return with_next(text, "tune", file, *which, *knobs, why="several limits at once") if knobs else text


def drift(
    old: Annotated[Path, typer.Argument(help="Earlier settlements.")],
    new: Annotated[Path, typer.Argument(help="Later settlements.")],
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say what moved between two sets of records, and split a change of spend into mix, tokens and price."""
    from harness_lab.analyze import drift as find
    from harness_lab.analyze import spend_split

    earlier, later = load(old), load(new, by=by)
    found = find(earlier, later, by=by)
    try:
        split = spend_split(earlier, later)
    except InputError as error:
        split, why = None, str(error)
    text = f"{found.summary()}\n\n{split.summary() if split is not None else f'No split of spend: {why}'}"
    contexts = [{"path": one.path, "gone": one.gone, "new": one.new, "fields": one.fields} for one in found.contexts]
    data = {
        "moves": found.to_frame(), "contexts": contexts, **_spend(split),
        "later_nodes": found.later_nodes, "shared_nodes": found.shared,
    }  # fmt: skip
    more = with_next(found.explain(), "ceiling", new, "--target", 0.9, why="a ceiling from the later records")
    show(f"{text}\n\n{more}", data, as_json=as_json)


def _spend(split: SpendSplit | None) -> dict[str, object]:
    """Return the split of a change of spend: totals of all runs, the parts of the change per run, and by group."""
    if split is None:
        return {"spend": None}
    totals = {"earlier_usd": split.totals_usd[0], "later_usd": split.totals_usd[1], "volume_usd": split.volume_usd}
    return {"spend": split.to_frame(), "spend_totals": totals, "spend_groups": split.groups}


def limits(records: Records, by: By = None, as_json: Json = False) -> None:
    """Say how often each limit ended, refused or starved, and what was spent without result."""
    from harness_lab.analyze import limit_report

    found = limit_report(load(records, by=by), by=by)
    more = with_next(found.explain(), "ceiling", records, "--curve", why="what every ceiling on cost would have done")
    show(f"{found.summary()}\n\n{more}", found.to_frame(), as_json=as_json)


def steps(
    file: Annotated[Path, typer.Argument(help="Experiment file (TOML).")],
    policy: Annotated[str | None, typer.Option(help="Policy whose limits are turned; the last if not given.")] = None,
    step: Annotated[float, typer.Option(help="A step, as a share of the value.")] = 0.1,
    runs: Annotated[int | None, typer.Option(help="Runs under each policy; the file's if not given.")] = None,
    as_json: Json = False,
) -> None:
    """Simulate one step more and less of each limit of a policy, on the same luck."""
    from harness_lab.simulate import load_experiment
    from harness_lab.tune import one_step_more

    experiment = load_experiment(file)
    experiment = experiment if runs is None else replace(experiment, runs=runs)
    found = one_step_more(experiment, policy=policy, step=step)
    frame = found.to_frame()
    show(f"{found.summary()}\n\n{_after_steps(found.explain(), file, frame, policy)}", frame, as_json=as_json)


def best(
    records: Annotated[Path, typer.Argument(help="Settlements of several policies on the same runs.")],
    metric: Annotated[str, typer.Option(help="completed, cost_nusd, wasted_nusd or duration_ns.")] = "completed",
    indifference: Annotated[
        float | None, typer.Option(help="Smallest difference worth telling apart (share, dollars, seconds).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which policy is best, which cannot be told from it, and which lie on the Pareto front."""
    from harness_lab.analyze import best_policy, pareto

    table = load(records)
    found, front = best_policy(table, metric, indifference=indifference), pareto(table)
    data = {
        "policies": found.to_frame(),
        "chosen": found.chosen,
        "maybe_best": found.maybe,
        "front": named_by_unit(front.to_frame()),
    }
    show(f"{found.summary()}\n\n{front.summary()}\n\n{found.explain()}", data, as_json=as_json)


def price(
    records: Records,
    margin: Annotated[float, typer.Option(help="Wanted margin, as a share of the price.")] = 0.2,
    price_usd: Annotated[float | None, typer.Option(help="A flat price per run to judge; else one is set.")] = None,
    month_runs: Annotated[int, typer.Option(help="Runs of a month.")] = 1000,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Set or judge a flat price per run: margin, chance and size of a loss, for a run and a month (1: declined)."""
    from harness_lab.analyze import flat_price

    found = flat_price(load(records, by=by), margin=margin, price_usd=price_usd, month_runs=month_runs, by=by)
    more = with_next(
        found.explain(), "ceiling", records, "--curve", why="what would cut the tail that the loss comes from"
    )
    show(f"{found.summary()}\n\n{more}", found.to_frame(), as_json=as_json)
    if found.cost.value is None and not found.parts:
        raise typer.Exit(1)


def reprice(
    records: Records,
    model: Annotated[str | None, typer.Option(help="Prices of another model (price effect only).")] = None,
    table: Annotated[Path | None, typer.Option(help="Price table, ours or LiteLLM's (JSON); else list prices.")] = None,
    batch_share: Annotated[float, typer.Option(help="Share of the spend that goes through batch.")] = 0.0,
    cache_hit: Annotated[float | None, typer.Option(help="Share of prompt tokens read from the cache.")] = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Price recorded tokens under another table, model, batch share or cache hit rate."""
    from harness_lab.analyze import reprice as again
    from harness_lab.pricing import from_genai_prices

    data = load(records, by=by)
    names = [model] if model is not None else [str(name) for name in data.nodes["model"].dropna().unique()]
    prices = from_genai_prices(names) if table is None else read_table(table)
    found = again(data, prices, models=model, batch_share=batch_share, cache_hit=cache_hit, by=by)
    answer = {"figures": found.to_frame(), "shares": found.shares, "notes": found.notes, "prices": prices.source}
    more = with_next(found.explain(), "price", records, why="a flat price per run, at the recorded costs")
    show(f"{found.summary()}\n\n{more}", answer, as_json=as_json)

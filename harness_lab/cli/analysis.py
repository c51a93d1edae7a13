"""Commands that analyse records and experiments."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_lab.cli.output import Json, note, pairs, show
from harness_lab.cli.prices import read_table
from harness_lab.cli.records import load
from harness_lab.cli.tuned import write_config
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from harness_lab.settlements import Settlements
    from harness_lab.tune import Knob

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
    found = check_config(tuned, load(against), reference=before, now_ns=time.time_ns(), by=by)
    data = {
        "stale": bool(found.stale),
        "checked": replace(found, parts=None).to_frame(),
        "groups": None if found.parts is None else found.parts.to_frame(),
        "drift": None if found.drift is None else found.drift.to_frame(),
        "spend": None if found.split is None else found.split.to_frame(),
    }
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)
    if found.stale:
        sys.exit(1)


def drift(
    old: Annotated[Path, typer.Argument(help="Earlier settlements.")],
    new: Annotated[Path, typer.Argument(help="Later settlements.")],
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say what moved between two sets of records, and split a change of spend into mix, tokens and price."""
    from harness_lab.analyze import drift as find
    from harness_lab.analyze import spend_split

    earlier, later = load(old), load(new)
    found = find(earlier, later, by=by)
    try:
        split = spend_split(earlier, later)
    except InputError as error:
        split, why = None, str(error)
    text = f"{found.summary()}\n\n{split.summary() if split is not None else f'No split of spend: {why}'}"
    contexts = [{"path": one.path, "gone": one.gone, "new": one.new, "fields": one.fields} for one in found.contexts]
    data = {"moves": found.to_frame(), "contexts": contexts, "spend": None if split is None else split.to_frame()}
    show(f"{text}\n\n{found.explain()}", data, as_json=as_json)


def limits(records: Records, by: By = None, as_json: Json = False) -> None:
    """Say how often each limit ended, refused or starved, and what was spent without result."""
    from harness_lab.analyze import limit_report

    found = limit_report(load(records), by=by)
    show(f"{found.summary()}\n\n{found.explain()}", found.to_frame(), as_json=as_json)


def steps(
    file: Annotated[Path, typer.Argument(help="Experiment file (TOML).")],
    policy: Annotated[str | None, typer.Option(help="Policy whose limits are turned; the last if not given.")] = None,
    step: Annotated[float, typer.Option(help="A step, as a share of the value.")] = 0.1,
    runs: Annotated[int | None, typer.Option(help="Runs under each policy; the file's if not given.")] = None,
    as_json: Json = False,
) -> None:
    """Simulate one step more and less of each limit of a policy, on the same luck."""
    from harness_lab.cli.experiments import load_experiment
    from harness_lab.tune import one_step_more

    experiment = load_experiment(file)
    experiment = experiment if runs is None else replace(experiment, runs=runs)
    found = one_step_more(experiment, policy=policy, step=step)
    show(f"{found.summary()}\n\n{found.explain()}", found.to_frame(), as_json=as_json)


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
    data = {"policies": found.to_frame(), "chosen": found.chosen, "maybe_best": found.maybe, "front": front.to_frame()}
    show(f"{found.summary()}\n\n{front.summary()}\n\n{found.explain()}", data, as_json=as_json)


def ceiling(
    records: Records,
    channel: Annotated[
        str, typer.Option(help="cost, calls, input, tokens, time, depth, starts or concurrency.")
    ] = "cost",
    target: Annotated[float, typer.Option(help="Share of runs that shall complete.")] = 0.95,
    failure_usd: Annotated[float | None, typer.Option(help="Price of a run that does not complete, dollars.")] = None,
    retries: Annotated[int, typer.Option(help="How often such a run is started again.")] = 0,
    runaways: Annotated[
        Path | None, typer.Option(help="Text file with the ids of runs labelled as runaways, one a line.")
    ] = None,
    by: By = None,
    write: Annotated[Path | None, typer.Option("--write", help="Write it as a tuned config (JSON).")] = None,
    policy: Annotated[
        Path | None, typer.Option("--into", help="Experiment (TOML) whose last policy it goes into, for --write.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option("--key-file", help="Sign the config with this key.")] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate it beside: where replay and simulation differ, and why.")
    ] = False,
    experiment: Annotated[
        Path | None, typer.Option(help="World and policy (TOML) for --simulate; fitted to the records if not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose a ceiling: the smallest for a target (exits with 1 if declined), or with --failure-usd the cheapest."""
    from harness_lab.analyze import ceiling as choose
    from harness_lab.analyze import cheapest_ceiling

    table = load(records)
    if write is not None and failure_usd is not None:
        raise InputError("--write", expected="a ceiling for a target", got="--failure-usd")
    if experiment is not None and not simulate:
        raise InputError("--experiment", expected="--simulate beside it", got=str(experiment))
    if simulate:
        given = {"--failure-usd": failure_usd, "--by": by or None, "--write": write}
        other = [name for name, value in given.items() if value is not None]
        if other:
            raise InputError("--simulate", expected="a target alone beside it", got=", ".join(other))
        _both_ways(table, channel, target, experiment, as_json=as_json)
        return
    if failure_usd is None:
        labels = None if runaways is None else runaways.read_text("utf-8").split()
        found = choose(table, channel, target=target, by=by, runaways=labels)  # type: ignore[arg-type]
        if write is not None and found.declined is None:
            write_config(found, table, write, into=policy, key_file=key_file)
        show(f"{found.summary()}\n\n{found.explain()}", found.to_frame(), as_json=as_json)
        if found.declined is not None:
            raise typer.Exit(1)
        return
    cheapest = cheapest_ceiling(table, channel, failure_usd=failure_usd, retries=retries, by=by)  # type: ignore[arg-type]
    show(f"{cheapest.summary()}\n\n{cheapest.explain()}", cheapest.to_frame(), as_json=as_json)


def _both_ways(table: Settlements, channel: str, target: float, file: Path | None, *, as_json: bool) -> None:
    from harness_lab.cli.experiments import load_experiment
    from harness_lab.tune import ceiling_both_ways

    world = None if file is None else load_experiment(file)
    name = None if world is None else world.policies[-1].name
    found = ceiling_both_ways(table, channel, target=target, experiment=world, policy=name)  # type: ignore[arg-type]
    data = {
        "replayed": found.replayed.to_frame(), "simulated_ceiling": found.simulated_ceiling, "world": found.world,
        "trust": found.trust(), "ceilings": found.to_frame(),
    }  # fmt: skip
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)


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

    found = flat_price(load(records), margin=margin, price_usd=price_usd, month_runs=month_runs, by=by)
    show(f"{found.summary()}\n\n{found.explain()}", found.to_frame(), as_json=as_json)
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

    data = load(records)
    names = [model] if model is not None else [str(name) for name in data.nodes["model"].dropna().unique()]
    prices = from_genai_prices(names) if table is None else read_table(table)
    found = again(data, prices, models=model, batch_share=batch_share, cache_hit=cache_hit, by=by)
    answer = {"figures": found.to_frame(), "shares": found.shares, "notes": found.notes, "prices": prices.source}
    show(f"{found.summary()}\n\n{found.explain()}", answer, as_json=as_json)


def tune(
    file: Annotated[Path, typer.Argument(help="Experiment file (TOML).")],
    knob: Annotated[
        list[str], typer.Option("--knob", help="PARAMETER=LOW:HIGH, such as shared_ledger.max_steps=5:60.")
    ],
    objective: Annotated[list[str] | None, typer.Option("--objective", help="Metric; repeat for several.")] = None,
    at_least: Annotated[list[str] | None, typer.Option("--at-least", help="METRIC=VALUE that must be reached.")] = None,
    at_most: Annotated[
        list[str] | None, typer.Option("--at-most", help="METRIC=VALUE that must not be passed.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Policy that is turned; the last if not given.")] = None,
    trials: Annotated[int, typer.Option(help="Trials in all.")] = 40,
    runs: Annotated[int | None, typer.Option(help="Runs of a trial; the file's if not given.")] = None,
    storage: Annotated[Path | None, typer.Option(help="Journal file: the study is kept and resumed there.")] = None,
    as_json: Json = False,
) -> None:
    """Search the numbers of a policy, and confirm the winners on fresh draws.

    Completion stays within 0.05 of the policy's as it stands, unless it is an objective or constrained with --at-least
    completed=VALUE (0 asks for nothing). Exits with 1 when no trial meets the constraints, no finalist is shown to keep
    them on fresh draws, or no run completes under the winner; with 130 when it is stopped (Ctrl-C): with --storage the
    same command then goes on.
    """
    from harness_lab.cli.experiments import load_experiment
    from harness_lab.tune import NoTrialFits, SearchStopped
    from harness_lab.tune import tune as search

    experiment = load_experiment(file)
    experiment = experiment if runs is None else replace(experiment, runs=runs)
    try:
        found = search(
            experiment, [_knob(text) for text in knob], objectives=tuple(objective or ("cost_nusd",)),
            at_least=_numbers(at_least, "--at-least"), at_most=_numbers(at_most, "--at-most"), policy=policy,
            trials=trials, storage=storage, progress=_tell if sys.stderr.isatty() else None,
        )  # fmt: skip
    except SearchStopped as stopped:
        show(str(stopped), {"stopped": str(stopped), "best": stopped.best, "trials": stopped.trials}, as_json=as_json)
        raise typer.Exit(130) from None
    except NoTrialFits as none:
        show(str(none), {"values": None, "why": str(none), "trials": none.trials}, as_json=as_json)
        raise typer.Exit(1) from None
    quoted = {name: one.record() | {"unit": one.unit} for name, one in found.quoted.items()}
    data: dict[str, object] = {"values": found.values, "rule": found.rule, "quoted": quoted, "curse": found.curse}
    data |= {
        "seeds": found.seeds,
        "constraints": [str(one) for one in found.constraints],
        "implied": found.implied,
        "safe": found.safe,
    }
    data |= {"policy": found.policy.to_dict(), "finalists": found.finalists, "trials": found.trials}
    show(f"{found.summary()}\n\n{found.explain()}", data, as_json=as_json)
    if found.quoted["completed"].value == 0:
        note("no run completes under it: ask for completion, as in --at-least completed=0.9")
    if found.quoted["completed"].value == 0 or not found.safe:
        raise typer.Exit(1)


def _tell(done: int, trials: int) -> None:
    note(f"trial {done} of {trials}")


def _knob(text: str) -> Knob:
    from harness_lab.tune import Knob

    name, _, ends = text.partition("=")
    low, _, high = ends.partition(":")
    try:
        values = [float(end) if "." in end or "e" in end else int(end) for end in (low, high)]
    except ValueError:
        raise InputError("--knob", expected="PARAMETER=LOW:HIGH", got=text) from None
    return Knob(name=name, low=values[0], high=values[1])


def _numbers(given: list[str] | None, what: str) -> dict[str, float]:

    try:
        return {name: float(value) for name, value in pairs(given or [], what=what).items()}
    except ValueError:
        raise InputError(what, expected="METRIC=NUMBER", got=given) from None

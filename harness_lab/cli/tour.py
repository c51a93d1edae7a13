"""The tour: from recorded runs to a tuned config that was checked, in one command."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from harness_lab.analyze import CeilingChoice, Comparison, Floors, SettlementDistribution, TruthCheck
    from harness_lab.export import TunedConfig
    from harness_lab.floors import Preflight
    from harness_lab.settlements import Settlements
    from harness_lab.settlements.discover import Found
    from harness_lab.simulate import DecisionCheck, Experiment, Result
    from harness_lab.simulate.fit import FittedWorld
    from harness_lab.stats.estimates import Estimate

TARGET, CONFIDENCE = 0.85, 0.95
"""The tour's question: which ceiling lets 85 % of the runs complete, said with 95 % confidence?"""
NOTEBOOK = "notebooks/01_first_look.ipynb"


@dataclass(slots=True, kw_only=True)
class Findings:
    """What the tour has found so far; filled step by step, read by the report."""

    six: Settlements
    records: Settlements
    messy: Settlements
    authored: tuple[int, ...]
    floors_of_six: Floors
    floors: Floors
    asks: tuple[Preflight, ...]
    world: FittedWorld
    recorded: SettlementDistribution
    simulated: SettlementDistribution
    fit_words: str
    experiment: Experiment
    result: Result
    comparison: Comparison
    choice: CeilingChoice
    config: TunedConfig
    check: DecisionCheck
    confirmed: Result
    completion: Estimate
    truth: TruthCheck
    found: list[Found]


def tour(
    out: Annotated[Path, typer.Option("--out", help="Output folder.")] = Path("harness-lab-tour"),
    runs: Annotated[int | None, typer.Option(help="Runs under each policy; 2,000 if not given.")] = None,
    seed: Annotated[int | None, typer.Option(help="Names the luck; the experiment file's if not given.")] = None,
    discover: Annotated[bool, typer.Option(help="Look for agent records on this computer (counts only).")] = True,
) -> None:
    """Take the shipped records through the whole lab: floors, fit, simulation, comparison, ceiling, checked export."""
    from harness_lab.cli.tour_files import write_files

    started = time.monotonic()
    say = _Speaker()
    found = run_tour(say, runs=runs, seed=seed, look=discover and sys.stdout.isatty())
    out.mkdir(parents=True, exist_ok=True)
    say.step("The files")
    for path, what in write_files(found, out):
        say(f"{path}: {what}")
    say(f"\nDone in {time.monotonic() - started:.0f} s. Read {out / 'report.html'} first.")
    say(f"Next: harness-lab lab, and open {NOTEBOOK}.")


class _Speaker:
    """Prints what is found, step by step."""

    def __init__(self) -> None:
        self._step = 0

    def step(self, title: str) -> None:
        """Begin a step."""
        self._step += 1
        print(f"\n{self._step}. {title}\n{'-' * (len(title) + 3)}", flush=True)

    def __call__(self, text: str) -> None:
        """Say something."""
        print(text, flush=True)


def run_tour(say: _Speaker, *, runs: int | None, seed: int | None, look: bool) -> Findings:
    """Take every step that finds something, and say what it found."""
    found: dict[str, Any] = {}
    for step in (_read, _floors, _fit, _simulate, _compare, _tune, _truth):
        found |= step(say, found, runs, seed)
    found |= _discover(say, look=look)
    return Findings(**found)


def _read(say: _Speaker, _found: dict[str, Any], _runs: int | None, _seed: int | None) -> dict[str, Any]:
    from harness_lab import datasets

    say.step("The records: what was read, kept and set aside")
    six, records = datasets.load_six_settlements(), datasets.load_synthetic_runs()
    messy = datasets.load_synthetic_messy()
    say(f"Six published settlements (data/six_settlements.csv): {six.report.summary()}")
    say(f"\nSynthetic records (data/synthetic_runs.parquet):\n{records.summary()}")
    say(f"\nA small file with bad rows (data/synthetic_messy.csv): {messy.report.summary()}")
    say("Nothing is dropped silently and no bad row is fatal; it plays no part in what follows.")
    return {"six": six, "records": records, "messy": messy, "authored": datasets.load_authored_budgets()}


def _floors(say: _Speaker, found: dict[str, Any], _runs: int | None, _seed: int | None) -> dict[str, Any]:
    from harness_lab.analyze import floors
    from harness_lab.floors import FloorKey, preflight

    say.step("The floors: what a path costs before it works, and what the evidence supports")
    now = time.time_ns()
    of_six, of_records = floors(found["six"], now_ns=now), floors(found["records"], now_ns=now)
    say(f"Published settlements. {of_six.summary()}")
    key = FloorKey(backend="pi", model="tangle-router/glm-5.2")
    table = of_six.to_table()
    asks = tuple(preflight(table, key, asked) for asked in (*found["authored"], 31_211))
    say("\nFour budgets that parents really wrote for such a child, and an ask at the floor:")
    for answer in asks:
        say(f"- {answer}")
    say(f"- {preflight(table, FloorKey(backend='codex', model='tangle-router/glm-5.2'), 8_000)}")
    say(f"\nSynthetic records. {of_records.summary()}")
    return {"floors_of_six": of_six, "floors": of_records, "asks": asks}


def _fit(say: _Speaker, found: dict[str, Any], runs: int | None, seed: int | None) -> dict[str, Any]:
    from harness_lab import datasets
    from harness_lab.analyze import distribution
    from harness_lab.policies import unlimited
    from harness_lab.simulate.config import load_experiment
    from harness_lab.simulate.fit import fit_world

    say.step("The world: a workload and a provider fitted to the records")
    changes = {name: value for name, value in (("runs", runs), ("seed", seed)) if value is not None}
    experiment = replace(load_experiment(datasets.data_dir() / "experiment.toml"), **changes)  # type: ignore[arg-type]
    world = fit_world(found["records"], prices=experiment.provider.prices)
    say(world.summary())
    say(world.explain())
    free = experiment.with_policies(unlimited()).run(progress=sys.stderr.isatty())
    recorded, simulated = distribution(found["records"]), distribution(free.settlements)
    words = "; ".join(_beside(recorded, simulated, q) for q in (0.5, 0.8))
    say(f"\nSimulated without limits, held against the records: {words}")
    return {
        "experiment": experiment,
        "world": world,
        "recorded": recorded,
        "simulated": simulated,
        "fit_words": words,
    }


def _beside(recorded: SettlementDistribution, simulated: SettlementDistribution, q: float) -> str:
    ours, theirs = (x.quantile(q).scaled(1e-9, unit="$") for x in (simulated, recorded))
    return f"{100 * q:.0f} % of runs complete within {theirs} as recorded, {ours} as simulated"


def _simulate(say: _Speaker, found: dict[str, Any], _runs: int | None, _seed: int | None) -> dict[str, Any]:
    experiment: Experiment = found["experiment"]
    names = [policy.name for policy in experiment.policies]
    say.step(f"The simulation: {experiment.runs:,} runs under {len(names)} policies made of the real modules")
    result = experiment.run(progress=sys.stderr.isatty())
    say(result.summary())
    say("Every policy met the same luck: a draw is named by run, node, call and purpose, never by the order of use.")
    return {"result": result}


def _compare(say: _Speaker, found: dict[str, Any], _runs: int | None, _seed: int | None) -> dict[str, Any]:
    from harness_lab.analyze import compare

    say.step("The comparison: completion, spend, waste, and which limit was binding how often")
    comparison = compare(found["result"].settlements)
    say(comparison.summary())
    return {"comparison": comparison}


def _tune(say: _Speaker, found: dict[str, Any], _runs: int | None, _seed: int | None) -> dict[str, Any]:
    from harness_lab.analyze import ceiling
    from harness_lab.cli.tour_words import share_of
    from harness_lab.export import TunedConfig
    from harness_lab.export.tuned import config_of

    say.step(f"The ceiling: {100 * TARGET:.0f} % of runs shall complete, said with {100 * CONFIDENCE:.0f} % confidence")
    choice = ceiling(found["records"], "cost", target=TARGET, confidence=CONFIDENCE)
    say(choice.summary())
    experiment: Experiment = found["experiment"]
    config = config_of(choice, found["records"], policy=experiment.policies[-1], experiment=experiment)
    back = TunedConfig.from_json(config.to_json())
    first = experiment.with_policies(config.policy).run(decisions=True)
    again = experiment.with_policies(back.policy).run(decisions=True)
    check = first.same_decisions(again, config.policy.name)
    say(f"\nThe tuned config was written, read back and simulated again on the same draws: {check}.")
    fresh = replace(experiment.with_policies(back.policy), seed=experiment.seed + 1)
    confirmed = fresh.run()
    completion = _completion(confirmed)
    say(f"On fresh draws (seed {fresh.seed}) {share_of(completion)} of the simulated runs complete under it.")
    return {"choice": choice, "config": config, "check": check, "confirmed": confirmed, "completion": completion}


def _completion(result: Result) -> Estimate:
    from harness_lab.analyze import compare

    return compare(result.settlements).policies[0].completed


def _truth(say: _Speaker, found: dict[str, Any], _runs: int | None, _seed: int | None) -> dict[str, Any]:
    from harness_lab import datasets
    from harness_lab.analyze import against_truth
    from harness_lab.cli.tour_words import estimate_of, truth_of

    say.step("The truth: the larger set is synthetic, so every estimate can be held against it")
    truth = against_truth(found["records"], datasets.load_synthetic_truth())
    say(truth.summary())
    say("Each estimate beside the generator's truth:")
    for one in truth.checked:
        word = "holds " if one.holds else "MISSES"
        say(f"  {word}  {one.what}: truth {truth_of(one.truth)}; estimate {estimate_of(one)}")
    return {"truth": truth}


def _discover(say: _Speaker, *, look: bool) -> dict[str, Any]:
    from harness_lab.settlements.discover import discover

    say.step("Your own records: where they would be")
    if not look:
        say("Skipped (in a pipe, or --no-discover). 'harness-lab read' without a path looks for them: it counts files")
        say("and opens none.")
        return {"found": []}
    places = discover()
    for place in places:
        say(f"- {place}")
    if not places:
        say(
            "None were found in the usual places. Any table will do: harness-lab read FILE --map FIELD=COLUMN --out ..."
        )
    say("Files were counted, none was opened.")
    return {"found": places}

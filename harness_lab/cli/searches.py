"""The command that searches the numbers of a policy."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_lab.cli.output import Json, named_by_unit, note, pairs, show, with_next
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from harness_lab.tune import Knob, Tuned


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
    from harness_lab.simulate import load_experiment
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
        data = {"stopped": str(stopped), "best": named_by_unit(stopped.best), "trials": named_by_unit(stopped.trials)}
        show(str(stopped), data, as_json=as_json)
        raise typer.Exit(130) from None
    except NoTrialFits as none:
        data = {"values": None, "why": str(none), "trials": named_by_unit(none.trials)}
        show(str(none), data, as_json=as_json)
        raise typer.Exit(1) from None
    values = ", ".join(f"{name} = {value:g}" for name, value in found.values.items())
    ask = ["compare", file, "--seed", found.seeds[2] + 1]
    more = with_next(found.explain(), *ask, why=f"after {values} is put into that file as a policy of its own")
    show(f"{found.summary()}\n\n{more}", _answer(found), as_json=as_json)
    if found.quoted["completed"].value == 0:
        note("no run completes under it: ask for completion, as in --at-least completed=0.9")
    if found.quoted["completed"].value == 0 or not found.safe:
        raise typer.Exit(1)


def _answer(found: Tuned) -> dict[str, object]:
    quoted = {name: one.record() | {"unit": one.unit} for name, one in found.quoted.items()}
    return {
        "values": found.values, "rule": found.rule, "quoted": named_by_unit(quoted),
        "curse": named_by_unit(found.curse), "seeds": found.seeds, "implied": found.implied,
        "constraints": [str(one) for one in found.constraints], "safe": found.safe,
        "policy": found.policy.to_dict(), "finalists": named_by_unit(found.finalists),
        "trials": named_by_unit(found.trials),
    }  # fmt: skip


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

"""The command that says limits of one system in the settings of another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_lab.cli.export import NOTHING, AllowEmpty, write_files
from harness_lab.cli.output import Json, note, show
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from harness_lab.export import Translation
    from harness_lab.export.targets.base import Target


def translate(
    limits: Annotated[
        Path, typer.Argument(help="Limits: a file or folder of the source's own, or a TOML of its settings.")
    ],
    source: Annotated[str, typer.Option("--from", help="Where they hold now: one of `harness-lab targets`.")],
    target: Annotated[str, typer.Option("--to", help="Where they shall hold.")],
    workload: Annotated[
        str | None, typer.Option(help="A workload of the gallery, an experiment (TOML), or records to fit one to.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs that both systems meet.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Their luck.")] = 0,
    form: Annotated[str | None, typer.Option(help="Language of the file; the target's first if not given.")] = None,
    out: Annotated[str | None, typer.Option("--out", help="File, or folder; standard output if not given.")] = None,
    agent: Annotated[
        list[str] | None, typer.Option(help="A child agent to be named, where the target limits only named ones.")
    ] = None,
    graph_steps: Annotated[
        str | None, typer.Option(help="Super-steps of a LangGraph graph as BASE+EACH, such as 6+4; 0+2 if not given.")
    ] = None,
    allow_empty: AllowEmpty = False,
    as_json: Json = False,
) -> None:
    """Say limits of one system in the settings of another, and how many runs would be treated differently."""
    from harness_lab.export import translate as translated
    from harness_lab.export.translation.worlds import USUAL

    made = translated(
        limits, source=_system(source, graph_steps, "--from"), target=_system(target, graph_steps, "--to"), form=form,
        workload=USUAL if workload is None else workload, runs=runs, seed=seed, agents=agent or (),
    )  # fmt: skip
    empty = made.written.carries_nothing and not allow_empty
    places = [] if out is None or empty else write_files(made.written, out)
    if places:
        _held(made, places)
    if not as_json:
        print(made.summary())
    if as_json or not (places or empty):
        show(f"\n{made.written.text.rstrip()}", made.to_dict() | {"wrote": places}, as_json=as_json)
    if empty:
        note(NOTHING)
        raise typer.Exit(1)


def _held(made: Translation, places: list[Path]) -> None:
    """Read what was written, from where it was written, and hold it against what was simulated."""
    from harness_lab.export import read_back

    texts = dict(zip(made.written.files, (place.read_bytes().decode() for place in places), strict=True))
    if read_back(made.target, texts, form=made.written.form) != made.written.read_back():
        raise InputError("--out", expected="files that read as they were written", got=[str(place) for place in places])
    note("read back: the same limits")


def _system(name: str, graph_steps: str | None, option: str) -> Target:
    from harness_lab.export.writers import target_of

    if graph_steps is None or name != "langgraph":
        return target_of(name, what=option)
    from harness_lab.export.steps import StepModel
    from harness_lab.export.targets.langgraph import langgraph

    base, _, each = graph_steps.partition("+")
    try:
        return langgraph(StepModel(base=int(base), per_unit=int(each)))
    except ValueError:
        raise InputError("--graph-steps", expected="BASE+EACH, such as 6+4", got=graph_steps) from None

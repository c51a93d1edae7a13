"""The command that writes a tuned config for a target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness_lab import files
from harness_lab.cli.output import Json, note, show


def export(
    config: Annotated[Path, typer.Argument(help="Tuned config (JSON).")],
    target: Annotated[str, typer.Option(help="prism, env or toml.")],
    form: Annotated[str | None, typer.Option(help="Language of the file; the target's first if not given.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File or folder; standard output if not given.")] = None,
    as_json: Json = False,
) -> None:
    """Write a tuned config in the form of a target, and say what the target cannot express."""
    from harness_lab.export import TunedConfig
    from harness_lab.export import export as write

    policy = TunedConfig.read(config).policy
    written = write(policy, target, form=form)
    place = out / written.file if out is not None and out.is_dir() else out
    if place is not None:
        files.write_text(place, written.text)
        note(f"wrote {place}")
    for loss in written.losses:
        note(f"cannot be expressed: {loss}")
    data = {
        "target": written.target,
        "form": written.form,
        "file": place or written.file,
        "text": written.text,
        "losses": [{"value": loss.value, "means": loss.means} for loss in written.losses],
        "same_policy_when_read_back": written.read_back() == policy,
    }
    if place is None or as_json:
        show(written.text.rstrip("\n"), data, as_json=as_json)

"""Commands around the lab itself: bench and lab."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from harness_lab.cli.output import Json, show
from harness_lab.errors import InputError


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes and fewer repeats.")] = False,
    as_json: Json = False,
) -> None:
    """Measure speed on this machine, as ratios within one run."""
    from harness_lab.bench import run_all

    results = run_all(quick=quick)
    lines = [
        f"{name}: {entry['value']} [{entry['low']} .. {entry['high']}]  {entry['what']}"
        for name, entry in results.items()
    ]
    show("\n".join(lines), results, as_json=as_json)


def lab(
    notebooks: Annotated[
        Path | None, typer.Argument(help="Folder to open; the shipped notebooks if not given.")
    ] = None,
) -> None:
    """Open JupyterLab on the notebooks."""
    from jupyterlab.labapp import main as open_lab

    folder = notebooks if notebooks is not None else _shipped()
    if not folder.is_dir():
        raise InputError("notebooks", expected="a folder", got=str(folder))
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # in a container, say
    open_lab([f"--ServerApp.root_dir={folder}", *as_root])


def _shipped() -> Path:
    """Return the folder of the shipped notebooks: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_notebooks", package.parent / "notebooks"):
        if folder.is_dir():
            return folder
    raise InputError("notebooks", expected="a folder, since none is installed here", got="none")

"""Commands around the lab itself: bench, lab, report and dashboard."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import copyfile
from typing import Annotated

import typer

from harness_lab.cli.output import Json, note, show
from harness_lab.errors import InputError

INSTALLED = "_notebooks"
"""Name of the folder with the notebooks inside an installed package."""
_FRONT_ENDS = (
    "@jupyter-widgets/jupyterlab-manager",
    "@voila-dashboards/jupyterlab-preview",
    "@voila-dashboards/widgets-manager8",
)
"""What a dashboard loads into the page; what other packages bring for JupyterLab stays out."""


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes and fewer repeats.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Name of a benchmark to run; may be given again.")] = None,
    as_json: Json = False,
) -> None:
    """Measure speed on this machine, as ratios within one run."""
    from harness_lab.bench import run_all

    results = run_all(quick=quick, only=only or ())
    lines = [
        f"{name}: {entry['value']} [{entry['low']} .. {entry['high']}]  {entry['what']}"
        for name, entry in results.items()
    ]
    show("\n".join(lines), results, as_json=as_json)


def lab(
    notebooks: Annotated[
        Path | None,
        typer.Argument(help="Folder to open; the shipped notebooks if not given, as a copy of your own if installed."),
    ] = None,
    port: Annotated[int, typer.Option(help="Where it listens on this machine, or the next free one.")] = 8888,
    open_browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in a browser.")] = True,
) -> None:
    """Open JupyterLab on the notebooks."""
    from jupyterlab.labapp import main as open_lab

    folder = notebooks if notebooks is not None else notebooks_to_edit()
    if not folder.is_dir():
        raise InputError("notebooks", expected="a folder", got=str(folder))
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # in a container, say
    quiet = [] if open_browser else ["--no-browser"]
    open_lab([f"--ServerApp.root_dir={folder}", f"--port={port}", *quiet, *as_root])


def report(
    records: Annotated[Path, typer.Argument(help="Settlements (Parquet), or records in a known format.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the report (HTML).")] = Path("report.html"),
    as_json: Json = False,
) -> None:
    """Run the notebooks that these records can answer, and leave one HTML file."""
    from harness_lab.cli.report_notebooks import report_on

    path, answered, left_out = report_on(records, out, folder=shipped_notebooks())
    for name, reason in left_out.items():
        note(f"not run: {name}: {reason}")
    data = {"report": str(path), "notebooks": answered, "not_run": left_out}
    show(f"wrote {path} from {', '.join(answered) or 'no notebook'}", data, as_json=as_json)


def dashboard(
    port: Annotated[int, typer.Option(help="Where it listens on this machine.")] = 8866,
    open_browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in a browser.")] = True,
    token: Annotated[str | None, typer.Option(help="What its address must carry; a new one if not given.")] = None,
) -> None:
    """Serve the explorer as a page of its own, for people who do not program."""
    try:
        from voila.app import Voila
    except ImportError:
        hint = "pip install 'harness-lab[dashboard]'"
        raise InputError("voila", expected="installed", got="not installed", hint=hint) from None
    page = shipped_notebooks() / "dashboard" / "explorer.ipynb"
    options = [str(page), f"--port={port}", "--Voila.ip=127.0.0.1"]
    options += [f"--VoilaConfiguration.extension_allowlist={name}" for name in _FRONT_ENDS]
    options += [] if open_browser else ["--no-browser"]
    options += ["--Voila.auto_token=True"] if token is None else [f"--token={token}"]
    sys.argv = ["voila"]  # it reads its own name from there
    Voila.launch_instance(options)


def notebooks_to_edit() -> Path:
    """Return the notebooks of a checkout, or a copy of the installed ones in the working folder.

    What is installed belongs to the package and goes with its next version. Files that the copy already has stay as
    they are.
    """
    shipped = shipped_notebooks()
    if shipped.name != INSTALLED:
        return shipped
    own = Path.cwd() / "harness-lab-notebooks"
    for path in sorted(shipped.rglob("*")):
        copy = own / path.relative_to(shipped)
        if path.is_file() and not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copyfile(path, copy)
    note(f"notebooks: {own} (yours to change)")
    return own


def shipped_notebooks() -> Path:
    """Return the folder of the shipped notebooks: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / INSTALLED, package.parent / "notebooks"):
        if folder.is_dir():
            return folder
    raise InputError("notebooks", expected="a folder, since none is installed here", got="none")

"""Build the notebooks from their paired scripts: run them, and make what is stored small and the same each time.

Run ``python notebooks/build.py`` after changing a ``.py`` file; ``--check`` builds nothing and says whether the sources
agree; ``--again`` builds anew, stores nothing, and says whether the bytes are those that are stored.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from PIL import Image

HERE = Path(__file__).parent
TIMEOUT_S = 120
"""For each cell; nothing that runs without a person may wait for ever."""
COLOURS = 64
"""In a stored picture: enough for flat colours and smooth edges."""
KEPT = ("text/plain", "text/html", "image/png")
"""Kinds of output that are stored; live widgets are not, they need a kernel."""

Notebook = Any


def scripts() -> list[Path]:
    """Return the scripts that have a notebook."""
    return sorted(HERE.glob("[0-9]*.py"))


def pages() -> list[Path]:
    """Return the scripts of dashboards: their notebooks are stored without outputs, since a page runs them."""
    return sorted((HERE / "dashboard").glob("*.py"))


def load(script: Path) -> Notebook:
    """Return the notebook of a script, without outputs, its cells numbered."""
    notebook = jupytext.read(script)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell["metadata"] = {"tags": tags} if (tags := cell.metadata.get("tags")) else {}
    language = {"name": "python"}
    notebook["metadata"] = {"kernelspec": dict(notebook.metadata["kernelspec"]), "language_info": language}
    return notebook


def execute(notebook: Notebook, *, folder: Path = HERE) -> Notebook:
    """Run all cells in a fresh kernel; raises at the first that fails or takes too long."""
    NotebookClient(
        notebook, timeout=TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    return notebook


def settle(notebook: Notebook) -> Notebook:
    """Take out of an executed notebook what differs from run to run."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell["outputs"] = [kept for output in cell.outputs if (kept := _output(output)) is not None]
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook["nbformat_minor"] = 5
    return notebook


def _output(output: Any) -> Any:
    if output.output_type == "stream":
        return output if output.name == "stdout" else None
    data = output.get("data", {})
    live = "application/vnd.jupyter.widget-view+json" in data
    kept = {} if live else {kind: data[kind] for kind in KEPT if kind in data}
    if "image/png" in kept:
        kept = {"image/png": _smaller(kept["image/png"])}
    if not kept:
        return None
    return nbformat.v4.new_output("display_data", data=kept)


def _smaller(png: str) -> str:
    """Return a picture with few colours and without notes in it."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def sources(notebook: Notebook) -> list[tuple[str, str]]:
    """Return kind and text of every cell."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def agrees(script: Path) -> bool:
    """Whether a script and its notebook have the same cells."""
    stored = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    return sources(stored) == sources(load(script))


def built(script: Path) -> str:
    """Return the text of a notebook, run from top to bottom; a page's is not run."""
    notebook = settle(load(script) if script in pages() else execute(load(script)))
    return str(nbformat.writes(notebook)) + "\n"


def differing(script: Path) -> list[str]:
    """Build a notebook anew and return the cells whose bytes are not the stored ones."""
    target = script.with_suffix(".ipynb")
    stored, text = target.read_text(encoding="utf-8"), built(script)
    if text == stored:
        return []
    pairs = zip(nbformat.reads(stored, 4).cells, nbformat.reads(text, 4).cells, strict=False)
    return [new["id"] for old, new in pairs if old != new] or ["the frame"]


def main() -> int:
    """Build all notebooks, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of names, such as 03; all if none")
    parser.add_argument("--check", action="store_true", help="say whether scripts and notebooks agree")
    parser.add_argument("--again", action="store_true", help="say whether a new build gives the stored bytes")
    options = parser.parse_args()
    wanted = [one for one in (*scripts(), *pages()) if one.name.startswith(tuple(options.names) or ("",))]
    if options.check or options.again:
        return _say(wanted, again=options.again)
    for script in wanted:
        target = script.with_suffix(".ipynb")
        target.write_text(built(script), encoding="utf-8", newline="\n")
        print(f"{script.stem}: {target.stat().st_size // 1024} kB")
    return 0


def _say(wanted: list[Path], *, again: bool) -> int:
    """Say of each notebook whether it is what a build would store; return the exit code."""
    code = 0
    for script in wanted:
        lost = differing(script) if again else [] if agrees(script) else ["its source"]
        code = 1 if lost else code
        print(f"{script.stem}: " + (f"DIFFERS in {', '.join(lost)}: run notebooks/build.py" if lost else "agrees"))
    return code


if __name__ == "__main__":
    sys.exit(main())

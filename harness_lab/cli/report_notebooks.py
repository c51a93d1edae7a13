"""A report from notebooks: the ones that the records can answer are run on them, and become one HTML file."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_lab.export._page import page
from harness_lab.files import write_text
from harness_lab.settlements import read

if TYPE_CHECKING:
    from harness_lab.settlements import Settlements

TIMEOUT_S: Final = 300
"""For each cell: nothing that runs without a person may wait for ever."""
QUIET: Final = ["--IPKernelApp.log_level=ERROR"]
"""What a kernel logs is not for whoever reads the report."""
NEEDED: Final = {
    "03_fit_floors_from_your_records": "input_total",
    "05_tune_and_export": "input_total",
    "06_replay_an_incident": "cost_nusd",
    "07_price_a_run": "cost_nusd",
}
"""Notebooks on records, and the column without which they have nothing to say."""
_WRAPPED: Final = (
    "<style>main pre { white-space: pre-wrap; overflow-wrap: anywhere; } main img { max-width: 100%; }</style>"
)
_WORDS: Final = {"input_total": "prompt tokens", "cost_nusd": "cost"}


def report_on(records: Path, out: Path, *, folder: Path) -> tuple[Path, list[str], dict[str, str]]:
    """Run notebooks on records and write one HTML file without scripts.

    Parameters
    ----------
    records : Path
        Whatever :func:`harness_lab.read` reads.
    out : Path
        The file to write.
    folder : Path
        Where the notebooks are.

    Returns
    -------
    tuple
        The file, the notebooks that were run, and those that were not, each with the reason.
    """
    given = read(records)
    left_out = {name: reason for name in NEEDED if (reason := _missing(given, NEEDED[name]))}
    titles, parts, answered = [], [], []
    for name in NEEDED:
        if name in left_out:
            continue
        done, error = run_with(folder / f"{name}.ipynb", {"records": str(records.resolve())})
        if error:
            left_out[name] = error
            continue
        title, body = _body(done)
        titles.append(escape(title))
        parts.append(f'<section id="section-{len(titles)}">{body}</section>')
        answered.append(name)
    said = f"{len(given.nodes):,} nodes from {records.name}" + "".join(
        f"; {name} was not run: {reason}" for name, reason in left_out.items()
    )
    text = page(
        title="What these records say", subtitle=escape(said), sections=titles, body="\n".join([_WRAPPED, *parts])
    )
    text = text.replace("default-src 'none';", "default-src 'none'; img-src data:;")  # the pictures are in the file
    return write_text(out, text), answered, left_out


def run_with(notebook: Path, parameters: dict[str, Any]) -> tuple[Any, str]:
    """Run a notebook with other parameters; return it, and the last line of the error that stopped it, if one did."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    given: Any = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    place = next(k for k, cell in enumerate(given.cells) if "parameters" in cell.metadata.get("tags", ()))
    code = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    cell = nbformat.v4.new_code_cell(code)  # type: ignore[no-untyped-call]
    given.cells.insert(place + 1, cell)
    try:
        NotebookClient(given, timeout=TIMEOUT_S, kernel_name="python3", extra_arguments=QUIET).execute()
    except CellExecutionError as error:
        return given, f"{error.ename}: {error.evalue}".splitlines()[0]
    return given, ""


def _missing(given: Settlements, column: str) -> str:
    return "" if given.nodes[column].notna().any() else f"no row tells its {_WORDS[column]}"


def _body(notebook: Any) -> tuple[str, str]:
    """Return a notebook's title, and its text and results as HTML: no code, no script, nothing from elsewhere."""
    from nbconvert import HTMLExporter

    title = next(re.findall(r"^# (.+)$", cell.source, re.M)[0] for cell in notebook.cells if cell.source[:2] == "# ")
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    notebook.cells = [cell for cell in notebook.cells if "Every claim holds" not in cell.source]
    options: Any = {"template_name": "basic", "exclude_input": True, "exclude_input_prompt": True}
    exporter: Any = HTMLExporter(**options)  # type: ignore[no-untyped-call]
    exporter.exclude_output_prompt = True
    body, _ = exporter.from_notebook_node(notebook)
    body = re.sub(r"<script\b.*?</script>", "", body, flags=re.S)
    body = re.sub(r"<(/?)h1\b", r"<\1h2", body)
    return title, body.replace("&#182;", "").replace("¶", "")

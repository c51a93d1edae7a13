from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

if TYPE_CHECKING:
    from types import ModuleType

FOLDER = Path(__file__).parents[2] / "notebooks"
if not FOLDER.is_dir():
    pytest.skip("the notebooks are not part of this installation", allow_module_level=True)


def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebook_build", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILD = builder()
SCRIPTS = BUILD.scripts()
pytestmark = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def stored(script: Path) -> nbformat.NotebookNode:
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


def test_script_and_notebook_have_the_same_cells(script: Path) -> None:
    assert BUILD.agrees(script), "run: python notebooks/build.py"


def test_what_is_stored_is_small_and_holds_no_live_widget(script: Path) -> None:
    text = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert "widget-view" not in text
    assert str(FOLDER.parent) not in text


def test_the_parameters_can_be_replaced_and_the_last_cell_checks_the_claims(script: Path) -> None:
    code = [cell for cell in stored(script).cells if cell.cell_type == "code"]
    assert [cell.metadata.get("tags") for cell in code].count(["parameters"]) == 1
    assert "assert" in code[-1].source
    assert not any("Output(" in cell.source or "interact" in cell.source for cell in code)


@pytest.mark.notebook
def test_the_notebook_runs_and_says_what_is_stored(
    script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    executed = BUILD.settle(BUILD.execute(BUILD.load(script)))
    said, wanted = (
        [
            "".join(output.text for output in cell.get("outputs", ()) if output.output_type == "stream")
            for cell in notebook.cells
        ]
        for notebook in (executed, stored(script))
    )  # by cell: in how many pieces a cell's text comes is a matter of time
    assert said == wanted, "run: python notebooks/build.py"


@pytest.mark.notebook
@pytest.mark.filterwarnings("default")  # of papermill and its parts
def test_papermill_runs_a_notebook_on_records_of_ones_own(
    script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if script.stem not in ("07_price_a_run", "03_fit_floors_from_your_records"):
        pytest.skip("two stand for all that take records: the others differ in what they analyse")
    papermill = pytest.importorskip("papermill", reason="papermill is not installed (pip install '.[dev]')")
    from harness_lab import datasets

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    own = tmp_path / "own.parquet"
    nodes = datasets.load_synthetic_runs().nodes
    nodes[nodes["run"] < "run-1200"].to_parquet(own)
    executed = papermill.execute_notebook(
        script.with_suffix(".ipynb"), tmp_path / "out.ipynb", {"records": str(own)}, execution_timeout=120,
        progress_bar=False, kernel_name="python3",
    )  # fmt: skip
    said = "".join(output.get("text", "") for cell in executed.cells for output in cell.get("outputs", ()))
    assert "Every claim holds." in said
    assert said != "".join(o.get("text", "") for cell in stored(script).cells for o in cell.get("outputs", ()))

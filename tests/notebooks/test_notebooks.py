from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

from harness_lab import datasets

if TYPE_CHECKING:
    from collections.abc import Callable
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
each = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def stored(script: Path) -> nbformat.NotebookNode:
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


@each
def test_script_and_notebook_have_the_same_cells(script: Path) -> None:
    assert BUILD.agrees(script), "run: python notebooks/build.py"


@each
def test_what_is_stored_is_small_and_holds_no_live_widget(script: Path) -> None:
    text = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert "widget-view" not in text
    assert str(FOLDER.parent) not in text


@each
def test_the_parameters_can_be_replaced_and_the_last_cell_checks_the_claims(script: Path) -> None:
    code = [cell for cell in stored(script).cells if cell.cell_type == "code"]
    assert [cell.metadata.get("tags") for cell in code].count(["parameters"]) == 1
    assert "assert" in code[-1].source
    assert not any("Output(" in cell.source or "interact" in cell.source for cell in code)


@each
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


@pytest.fixture
def run_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Run a notebook with other parameters, as papermill does, and return what it says."""
    papermill = pytest.importorskip("papermill", reason="papermill is not installed (pip install '.[dev]')")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

    def run(name: str, **parameters: object) -> str:
        executed = papermill.execute_notebook(
            FOLDER / f"{name}.ipynb", tmp_path / "out.ipynb", parameters, execution_timeout=120, progress_bar=False,
            kernel_name="python3",
        )  # fmt: skip
        return said(executed)

    return run


def said(notebook: nbformat.NotebookNode) -> str:
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()))


@pytest.mark.notebook
@pytest.mark.filterwarnings("default")  # of papermill and its parts
@pytest.mark.parametrize("name", ["07_price_a_run", "03_fit_floors_from_your_records"])
def test_papermill_runs_a_notebook_on_records_of_ones_own(
    name: str, run_with: Callable[..., str], tmp_path: Path
) -> None:
    """Two stand for all that take records: the others differ in what they analyse."""
    own = tmp_path / "own.parquet"
    nodes = datasets.load_synthetic_runs().nodes
    nodes[nodes["run"] < "run-1200"].to_parquet(own)
    words = run_with(name, records=str(own))
    assert "Every claim holds." in words
    assert words != said(stored(FOLDER / f"{name}.py"))


@pytest.mark.notebook
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("backend", "needs"), [("dask", "distributed"), ("ray", "ray")])
def test_the_runs_are_the_same_on_a_cluster_started_here(
    backend: str, needs: str, run_with: Callable[..., str]
) -> None:
    pytest.importorskip(needs, reason=f"{needs} is not installed (pip install '.[{backend}]')")
    words = run_with("08_scale_out_on_a_cluster", backend=backend, n_runs=100)
    assert "one process and 2 workers agree: True" in words
    assert "Every claim holds." in words


@pytest.mark.slow  # all of them, once more
@pytest.mark.notebook
@each
def test_a_new_build_gives_the_stored_bytes(script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert BUILD.differing(script) == [], "run: python notebooks/build.py"

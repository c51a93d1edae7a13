"""What is stored of other people's limiters is what they answer today, where their packages are installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lab.adapters import names

HERE = Path(__file__).parent
STORED = HERE.parents[1] / "docs" / "conformance"
PEERS = os.environ.get("HARNESS_LAB_PEERS", "")
HERE_TOO = ("check-then-add", "prism-ai-harness")  # asked in every run of the tests
APART = {"hermes-agent": "hermes", "bernstein": "bernstein"}
ENVIRONMENTS = {name: APART.get(name, "agents") for name in names() if name not in HERE_TOO}


def python_of(adapter: str) -> Path:
    """Return the interpreter that has a package, or skip."""
    found = Path(PEERS, ENVIRONMENTS[adapter], "bin", "python")
    if not PEERS or not found.exists():
        pytest.skip("HARNESS_LAB_PEERS names no folder with that environment (tests/peers/install makes it)")
    return found


def run(command: list[str], folder: Path, given: str = "", **more: str) -> str:
    """Run a command in a folder of its own and return what it printed."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "HERMES_HOME": str(folder / "hermes"), **more}
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, cwd=folder, env=env)
    assert done.stdout, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("adapter", ENVIRONMENTS)
def test_the_stored_answers_are_todays(adapter: str, tmp_path: Path) -> None:
    python, there = python_of(adapter), {}
    if adapter == "bernstein":  # its Python is another one, which ours asks
        python, there = Path(sys.executable), {"HARNESS_LAB_BERNSTEIN_PYTHON": str(python)}
    if run([str(python), "-c", "import importlib.util as u; print(u.find_spec('harness_lab'))"], tmp_path) == "None\n":
        pytest.skip("that environment does not see this checkout")
    told = run([str(python), "-m", "harness_lab.cli", "conformance", "--adapter", adapter, "--json"], tmp_path, **there)
    assert json.loads(told) == json.loads((STORED / f"{adapter}.json").read_text("utf-8"))


@pytest.mark.parametrize("adapter", ENVIRONMENTS)
def test_every_scenario_prints_what_it_says(adapter: str, tmp_path: Path) -> None:
    stored = (STORED / f"{adapter}.json").read_text("utf-8")
    ran, differing = json.loads(run([str(python_of(adapter)), str(HERE / "run_scenarios.py")], tmp_path, stored))
    assert differing == []
    assert ran > 0

"""The README's Python runs, and its two lines are what the checks run."""

from __future__ import annotations

import re
from pathlib import Path

import harness_lab as lab
from harness_lab.datasets import data_dir

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_notebook_lines_run_on_the_shipped_records() -> None:
    code = BLOCKS[0].replace('"settlements.parquet"', repr(str(data_dir() / "synthetic_runs.parquet")))
    code = code.replace("policies=(ledger, pool))", "policies=(ledger, pool), runs=20)")
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - the README is ours


def test_the_production_lines_run() -> None:
    scope: dict[str, object] = {}
    exec(compile(BLOCKS[1], "README.md", "exec"), scope)  # noqa: S102 - the README is ours
    pool = scope["policy"].modules[1].pool  # type: ignore[attr-defined]
    assert pool.spent()[2] == 1000


def test_every_public_name_is_there() -> None:
    assert all(getattr(lab, name) is not None for name in lab.__all__)
    assert set(lab.__all__) <= set(dir(lab))


def test_the_two_lines_stand_where_the_checks_look_for_them() -> None:
    lines = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert [line.rsplit("/", 1)[-1] for line in lines] == ["harness-lab tour", "pytest -n auto"]

"""The page on running experiments is a program that runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "running.md").read_text("utf-8")


def test_the_program_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    program = "\n".join(blocks).replace("runs=200", "runs=40")
    exec(compile(program, "running.md", "exec", dont_inherit=True), {"__name__": "page"})  # noqa: S102
    said = capsys.readouterr().out
    for words in ("differs from", "not precise enough after all runs 40", "ceilings on cost", "Run 17 under"):
        assert words in said
    assert "Assumes oblivious agents" in said

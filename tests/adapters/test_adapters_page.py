"""The recipe's code runs, and what it says of the limiter that it builds holds."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from pages import DOCS, run_page

import harness_lab.adapters
from harness_lab.adapters import names

PAGE = (DOCS / "adapters.md").read_text("utf-8")


def test_the_page_is_one_program() -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        names = run_page("adapters.md", quicker=("runs=200", "runs=20"))
    assert "allowance against shared ledger" in said.getvalue()
    assert {result.word for result in names["report"].results} == {"passed", "deviating", "not_applicable"}
    assert set(names["result"].settlements.nodes["outcome"]) == {"completed", "exhausted"}
    assert "cost-last-call - admitted: 2 instead of 1" in said.getvalue()


def test_every_adapter_is_named_and_its_file_exists() -> None:
    assert not [name for name in names() if f"`{name}`" not in PAGE]
    room = Path(harness_lab.adapters.__file__).parent
    linked = re.findall(r"\((?:\.\./harness_lab/adapters/)(\w+\.py)\)", PAGE)
    assert linked
    assert all((room / name).exists() for name in linked)
    assert all((DOCS / name).exists() for name in re.findall(r"\((\w[\w.-]+\.md)", PAGE))

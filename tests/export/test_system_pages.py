"""The pages of the systems name things that exist."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "systems").glob("*.md")) + sorted((DOCS / "targets").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_every_name_on_the_page_can_be_imported(page: Path) -> None:
    for name in re.findall(r"`(harness_lab(?:\.\w+)+)`", page.read_text("utf-8")):
        module, _, attribute = name.rpartition(".")
        found = hasattr(import_module(module), attribute)
        assert found or import_module(name), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_every_link_on_the_page_leads_somewhere(page: Path) -> None:
    for link, anchor in re.findall(r"\]\(([\w./-]+)(#[\w-]+)?\)", page.read_text("utf-8")):
        target = page.parent / link
        assert target.exists(), link
        headings = [f"#{line.lstrip('# ').lower().replace(' ', '-')}" for line in target.read_text("utf-8").split("\n")]
        assert not anchor or anchor in headings, f"{link}{anchor}"

"""Every shipped notebook runs top to bottom in a real JupyterLab."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("[0-9]*.ipynb"))


@pytest.mark.parametrize("name", [path.name for path in NOTEBOOKS])
def test_a_notebook_runs_top_to_bottom_without_an_error(open_notebook: Callable[..., Any], name: str) -> None:
    page = open_notebook(name)
    page.evaluate(
        "() => { const c = jupyterapp.shell.currentWidget.content; return c.scrollToItem(c.widgets.length - 1) }"
    )
    page.get_by_text("Every claim holds.").last.wait_for()
    assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.error']").count() == 0
    assert page.seen.errors == []
    assert page.seen.outside == []

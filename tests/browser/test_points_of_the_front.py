"""A point of the front is clicked, with the pointer and by keyboard: the runs behind it are listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from panels_in_a_page import RUNS, quiet

Open = Callable[..., Any]
COMPARE = RUNS + "widgets.compare(experiment.run(progress=False))"


def middle(page: Any, selector: str) -> tuple[float, float]:
    box = page.locator(selector).first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.parametrize("view", ["spend", "wasted spend"])
def test_a_click_on_a_point_lists_the_runs_of_its_policy(open_notebook: Open, view: str) -> None:
    page = open_notebook("points.ipynb", COMPARE)
    page.locator(".hl-compare-readout li").first.wait_for()
    if view != "spend":
        before = page.locator(".hl-compare-picture svg").inner_html()
        page.locator(".hl-compare-across select").select_option(index=1)
        page.wait_for_function("old => document.querySelector('.hl-compare-picture svg').innerHTML !== old", arg=before)
    for place, name in ((1, "ledger"), (0, "few children")):
        page.locator(f"#point-{place}").scroll_into_view_if_needed()
        page.mouse.click(*middle(page, f"#point-{place}"))  # on the picture, not on an element that is asked for
        page.get_by_text(f"40 runs of {name}").wait_for()
        assert page.locator(".hl-compare-policy button.mod-active").text_content() == name
    quiet(page)


def test_the_tabulator_reaches_each_point_and_enter_lists_its_runs(open_notebook: Open) -> None:
    page = open_notebook("points.ipynb", COMPARE)
    page.locator(".hl-compare-across select").focus()
    for name in ("few children", "ledger"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.title") == f"Runs of {name}"
    page.keyboard.press("Enter")
    page.get_by_text("40 runs of ledger").wait_for()
    assert page.locator(".hl-compare-runs tbody tr").count() == 12
    quiet(page)

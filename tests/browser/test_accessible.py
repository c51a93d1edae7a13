"""Every panel for everybody: contrast on light and dark pages, all controls by keyboard, a name for each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from panels_in_a_page import ALL, PANELS

Open = Callable[..., Any]
LEAST = 4.5
CONTRAST = (Path(__file__).parents[1] / "kit" / "contrast.js").read_text(encoding="utf-8")
CONTROLS = "select, input, textarea, button, .noUi-handle"
MARK = f"""root => {{
    const all = [...document.querySelector(root).querySelectorAll({CONTROLS!r})].filter(one => one.offsetParent);
    all.forEach((one, place) => {{ one.dataset.hlPlace = place; }});
    return all.map(one => one.outerHTML.slice(0, 160));
}}"""
FIRST = f"root => document.querySelector(root).querySelector({CONTROLS!r}).focus()"
WHERE = "() => Number(document.activeElement?.dataset.hlPlace ?? -1)"
ROLES = "button|checkbox|combobox|listbox|radio|slider|spinbutton|switch|textbox"


def faint(page: Any, root: str) -> list[str]:
    """Return what has too little contrast, after seeing that there was something to look at."""
    found = page.evaluate(CONTRAST, root)
    assert {"words of a picture", "label"} <= {one["what"] for one in found}
    return [f"{one['ratio']:.2f}: {one['what']} {one['text']!r}" for one in found if one["ratio"] < LEAST]


def not_reached(page: Any, root: str) -> list[str]:
    """Return the controls that the tabulator does not come to, from the first one on."""
    controls = page.evaluate(MARK, root)
    assert len(controls) >= 1
    page.evaluate(FIRST, root)
    reached = set()
    for _ in range(3 * len(controls)):
        reached.add(page.evaluate(WHERE))
        page.keyboard.press("Tab")
    return [control for place, control in enumerate(controls) if place not in reached]


def without_name(page: Any, root: str) -> list[str]:
    """Return what the browser tells an aid about a control that has no name."""
    lines = page.locator(root).aria_snapshot().splitlines()
    controls = [line.strip() for line in lines if re.match(rf"\s*- ({ROLES})\b", line)]
    assert controls
    return [line for line in controls if not re.match(rf"- ({ROLES}) \".+\"", line)]


@pytest.fixture
def every_panel(open_notebook: Open) -> Any:
    page = open_notebook("all.ipynb", ALL)
    for name in PANELS:
        page.locator(f".hl-{name} svg").first.wait_for()
    return page


def test_texts_and_controls_have_contrast_in_the_light_and_in_the_dark_theme(every_panel: Any) -> None:
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        every_panel.evaluate("name => jupyterapp.commands.execute('apputils:change-theme', { theme: name })", theme)
        light = "true" if theme.endswith("Light") else "false"
        every_panel.wait_for_function("l => document.body.dataset.jpThemeLight === l", arg=light)
        every_panel.wait_for_timeout(1_000)  # colours glide
        assert {name: low for name in PANELS if (low := faint(every_panel, f".hl-{name}"))} == {}


def test_the_tabulator_reaches_every_control_and_each_has_a_name(every_panel: Any) -> None:
    assert {name: lost for name in PANELS if (lost := not_reached(every_panel, f".hl-{name}"))} == {}
    assert {name: mute for name in PANELS if (mute := without_name(every_panel, f".hl-{name}"))} == {}


def test_a_slider_says_the_label_and_the_value_that_are_shown_beside_it(every_panel: Any) -> None:
    boxes = every_panel.locator(".widget-slider")
    assert boxes.count() == 10
    for box in boxes.all():
        handle = box.get_by_role("slider", name=box.locator("label").text_content(), exact=True)
        assert handle.get_attribute("aria-valuetext", timeout=1_000) == box.locator(".widget-readout").text_content()
    every_panel.get_by_role("slider", name="Budget of a run").press("ArrowLeft")
    every_panel.locator(".hl-cost-usd .noUi-handle[aria-valuetext='$0.75']").wait_for()


def test_the_dashboard_has_contrast_keyboard_and_names(page: Any, dashboard_url: str) -> None:
    page.goto(dashboard_url)
    page.locator(".hl-readout td").first.wait_for()
    page.locator(".hl-explore svg").wait_for()
    page.wait_for_timeout(1_000)
    assert faint(page, ".hl-explore") == []
    assert not_reached(page, ".hl-explore") == []
    assert without_name(page, ".hl-explore") == []

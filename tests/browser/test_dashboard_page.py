"""The explorer as a page of its own, in Voila, for people who do not program."""

from __future__ import annotations

from typing import Any

STYLES = "fontawesome"
"""Voila asks a CDN for two stylesheets of icons that nothing here uses: they are blocked, and do not count."""


def test_the_page_shows_the_explorer_and_a_moved_budget_changes_it(page: Any, dashboard_url: str) -> None:
    page.goto(dashboard_url)
    page.locator(".hl-readout td").first.wait_for()
    before = page.locator(".hl-readout").inner_html()
    page.locator(".hl-cost-usd .noUi-handle").first.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("old => document.querySelector('.hl-readout').innerHTML !== old", arg=before)
    assert page.locator(".hl-cost-usd .widget-readout").text_content() == "$0.75"
    assert page.locator(".hl-explore-picture svg").count() == 1
    assert page.get_by_text("import Settings").count() == 0
    outside = [url for url in page.seen.outside if STYLES not in url]
    assert outside == []
    blocked = len(page.seen.outside)
    assert page.seen.errors == ["Failed to load resource: net::ERR_FAILED"] * blocked

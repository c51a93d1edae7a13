"""What every panel is made in: one look of its controls on light and dark pages, and names for what has none."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as widgets

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOK: Final = """
.hl-panel { --hl-edge: var(--jp-ui-font-color2, #666); --hl-ink: var(--jp-ui-font-color1, #222); }
.hl-panel .noUi-handle { border: 2px solid var(--hl-ink); }
.hl-panel select, .hl-panel input, .hl-panel textarea { border: 1px solid var(--hl-edge) !important; }
.hl-panel :focus-visible { outline: 2px solid var(--hl-ink) !important; outline-offset: 2px; }
.hl-panel .hl-point:focus-visible { outline-color: #555 !important; }
.hl-panel .hl-point { border-radius: 6px; box-shadow: none !important; cursor: pointer; }
.hl-panel .hl-figures td, .hl-panel .hl-figures th, .hl-panel .hl-runs td, .hl-panel .hl-runs th {
    padding: 0 0.8em; text-align: left; }
"""
"""A page's own theme draws fields and handles fainter than 4.5 to 1; here they take the colours of its text."""
_NAMES: Final = """
const panel = this.closest('.hl-panel');
const tell = () => panel.querySelectorAll('.noUi-handle').forEach(handle => {
    const box = handle.closest('.widget-slider');
    handle.setAttribute('aria-label', box.querySelector('label').textContent);
    handle.setAttribute('aria-valuetext', box.querySelector('.widget-readout').textContent);
});
new MutationObserver(tell).observe(panel, { childList: true, subtree: true });
tell();
"""
"""A slider's handle is what has the focus, and ipywidgets gives it neither a name nor what it says: whoever hears the
page would hear a bare number. Where a page forbids such lines all else works."""


class Panel(widgets.VBox):
    """Controls, words and pictures below one another.

    Parameters
    ----------
    parts : sequence of Widget
        From top to bottom.
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        look = widgets.HTML(f'<style onload="{escape(_NAMES)}">{_LOOK}</style>', layout={"display": "none"})
        super().__init__([look, *parts])
        self.add_class("hl-panel")

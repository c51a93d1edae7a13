"""The import report to look at: what is odd in a table of settlements, and which answer that bends."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import ipywidgets as widgets

from harness_lab.plots.quality import plot_quality
from harness_lab.settlements.quality import quality as report_on
from harness_lab.widgets.controls import choice, named
from harness_lab.widgets.frame import Panel
from harness_lab.widgets.panel import FigurePanel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from harness_lab.settlements import Settlements

OVERVIEW = "overview"


class QualityPanel(Panel):
    """What was found in a table. Make it with :func:`quality`.

    Attributes
    ----------
    finding : Dropdown
        Which finding is explained.
    picture : FigurePanel
        The findings that are counted in rows, as shares.
    readout : HTML
        What the finding is, how many rows it covers, and which analysis it bends.
    """

    def __init__(self, settlements: Settlements) -> None:
        self.report = report_on(settlements)
        codes = [(found.what, found.code) for found in self.report.findings]
        self.finding = choice("quality-finding", [(OVERVIEW, OVERVIEW), *codes], OVERVIEW, "Finding")
        self.finding.layout.width = "48em"
        self.readout = named(widgets.HTML(), "quality-readout")
        height = 1.6 + 0.45 * min(max(len(codes), 2), 12)
        self.picture = FigurePanel(self._draw, figsize=(8.4, height), css_class="hl-quality-picture")
        super().__init__([self.finding, self.readout, self.picture])
        named(self, "quality")
        self._say()
        self.finding.observe(lambda _: self._say(), names="value")

    def _draw(self, ax: Axes) -> None:
        plot_quality(self.report.to_frame(), ax=ax)

    def _say(self) -> None:
        found = self.report.finding(self.finding.value)
        if found is None:
            self.readout.value = f"<pre>{escape(self.report.summary())}</pre>"
            return
        parts = (("found", str(found)), ("what it does", found.effect), ("detail", found.detail))
        items = "".join(f"<li><b>{name}</b>: {escape(text)}</li>" for name, text in parts if text)
        self.readout.value = f"<ul>{items}</ul>"


def quality(settlements: Settlements) -> QualityPanel:
    """Make a panel that shows the import report of a table.

    Parameters
    ----------
    settlements : Settlements
        The table.

    Returns
    -------
    QualityPanel
        Shown as the last value of a cell.
    """
    return QualityPanel(settlements)

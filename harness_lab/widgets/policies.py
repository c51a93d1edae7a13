"""The comparison to look at: policies side by side, paired differences, the front, and the runs behind a point."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as widgets
import pandas as pd

from harness_lab.analyze import compare as compared
from harness_lab.analyze import pareto, run_table
from harness_lab.plots.compare import METRICS, plot_differences, plot_metric
from harness_lab.plots.quantities import quantity
from harness_lab.plots.style import draw_empty
from harness_lab.widgets.controls import choice, named
from harness_lab.widgets.frame import Panel
from harness_lab.widgets.panel import FigurePanel
from harness_lab.widgets.points import PointPicture

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from harness_lab.analyze import Front

VIEWS: Final = {"completed": "completed", "spend": "cost_nusd", "wasted": "wasted_nusd", "time": "duration_ns"}
"""Metrics, and the objective that stands for each on the front."""
SHOWN: Final = 12


def _unit(name: str) -> Callable[[Any], str]:
    return lambda value: "unknown" if pd.isna(value) else quantity(name).write(float(value))


def _word(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


COLUMNS: Final[tuple[tuple[str, str, Callable[[Any], str]], ...]] = (
    ("run", "run", _word), ("outcome", "outcome", _word), ("stopped by", "stopped_by", _word),
    ("spend", "cost_nusd", _unit("cost_nusd")), ("time", "duration_ns", _unit("duration_ns")),
    ("model calls", "calls", _unit("count")), ("nodes", "nodes", _unit("count")),
)  # fmt: skip
"""Of the list of runs: its head, the column of the table, and how that is written."""


class PolicyPanel(Panel):
    """Policies compared. Make it with :func:`compare`.

    Attributes
    ----------
    metric : Dropdown
        What is shown of each policy, with its paired differences.
    across : Dropdown
        What completion is held against on the front.
    policy : ToggleButtons
        Whose runs are listed.
    picture : FigurePanel
        The metric, the differences, the front.
    front : PointPicture
        The same picture with a place to click over each point of the front: it lists the runs of that policy.
    readout : HTML
        The verdict, and the figures in words.
    runs : HTML
        The runs of the chosen policy that cost most.
    """

    def __init__(self, settlements: Any, *, baseline: str | None, confidence: float) -> None:
        self.comparison = compared(settlements, baseline=baseline, confidence=confidence)
        self._table = getattr(settlements, "settlements", settlements)
        self._confidence = confidence
        self._runs = run_table(self._table)
        names = [one.policy for one in self.comparison.policies]
        words = [(METRICS[name].name, name) for name in VIEWS]
        self.metric = choice("compare-metric", words, "completed", "Show")
        self.across = choice("compare-across", words[1:], "spend", "Front against")
        buttons = widgets.ToggleButtons(options=names, value=names[0], description="Runs of")
        self.policy = named(buttons, "compare-policy")
        self.readout, self.runs = named(widgets.HTML(), "compare-readout"), named(widgets.HTML(), "compare-runs")
        height = 4.2 + 0.5 * len(names)
        self.picture = FigurePanel(self._draw, figsize=(10.0, height), css_class="hl-compare-picture", whole=True)
        self.front = PointPicture(self.picture, self._pick, told="Runs of")
        super().__init__([self.metric, self.across, self.readout, self.front, self.policy, self.runs])
        named(self, "compare")
        self._say()
        self._put()
        self._list()
        for control in (self.metric, self.across):
            control.observe(self._on_view, names="value")
        self.policy.observe(lambda _: self._list(), names="value")

    def chosen(self) -> pd.DataFrame:
        """Return the runs of the chosen policy, dearest first."""
        mine: pd.DataFrame = self._runs[self._runs["policy"] == self.policy.value]
        return mine.sort_values("cost_nusd", ascending=False, kind="stable")

    def _on_view(self, _change: object) -> None:
        self._say()
        self.picture.redraw()
        self._put()

    def _pick(self, name: str) -> None:
        self.policy.value = name

    def _put(self) -> None:
        """Lay the places over the points of the front as it was last drawn."""
        ax, front = self._drawn
        points = {}
        if front is not None:
            up, across = front.objectives
            frame = front.to_frame().dropna(subset=[up, across])
            points = {str(row["policy"]): (row[across], row[up]) for row in frame.to_dict("records")}
        self.front.put(ax, points)

    def _draw_front(self, ax: Axes) -> None:
        if len(self.comparison.policies) < 2:
            self._drawn: tuple[Axes, Front | None] = draw_empty(ax, "one policy: a front needs two"), None
            return
        objectives = ("completed", VIEWS[self.across.value])
        front = pareto(self._table, objectives, confidence=self._confidence)
        self._drawn = front.plot(ax=ax), front

    def _draw(self, figure: Figure) -> None:
        grid: Any = [["own", "differences"], ["front", "front"]]
        axes = figure.subplot_mosaic(grid, height_ratios=[2, 3])
        name, names = self.metric.value, [one.policy for one in self.comparison.policies]
        plot_metric(self.comparison.to_frame(), name, ax=axes["own"], policies=names)
        plot_differences(
            self.comparison.differences(), VIEWS[name], ax=axes["differences"], policies=names,
            baseline=self.comparison.baseline,
        )  # fmt: skip
        self._draw_front(axes["front"])

    def _say(self) -> None:
        items = [
            f"<li><b>{escape(one.policy)}</b>: {escape(str(getattr(one, self.metric.value)))}</li>"
            for one in self.comparison.policies
        ]
        verdict = escape(self.comparison.verdict()).replace("\n", "<br>")
        self.readout.value = f"<p>{verdict}</p><p><b>{METRICS[self.metric.value].name}</b></p><ul>{''.join(items)}</ul>"

    def _list(self) -> None:
        runs = self.chosen()
        self.front.choose(self.policy.value)
        shown = runs.head(SHOWN)
        head = f"{len(runs):,} runs of {self.policy.value}; the {len(shown):,} that cost most"
        table = pd.DataFrame({words: [write(one) for one in shown[column]] for words, column, write in COLUMNS})
        self.runs.value = f"<p>{escape(head)}</p>{table.to_html(index=False, classes='hl-runs', border=0)}"


def compare(results: Any, *, baseline: str | None = None, confidence: float = 0.95) -> PolicyPanel:
    """Make a panel that shows policies side by side: figures, paired differences, the front, and the runs behind it.

    Parameters
    ----------
    results : Result, Settlements or DataFrame
        What an experiment gave, or rows with the column ``policy``.
    baseline : str, optional
        The policy that the others are compared with; the first if None.
    confidence : float, default 0.95
        As for :func:`harness_lab.compare`.

    Returns
    -------
    PolicyPanel
        Shown as the last value of a cell.

    Raises
    ------
    InputError
        If there is no such policy.
    """
    return PolicyPanel(results, baseline=baseline, confidence=confidence)

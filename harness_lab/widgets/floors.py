"""The floor explorer: move the floor of a path and see both of its costs on recorded settlements."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as widgets

from harness_lab.analyze import FloorCosts, Floors, floor_costs, floors
from harness_lab.analyze.frames import nodes_of
from harness_lab.errors import InputError
from harness_lab.outcome import UNITS
from harness_lab.plots.quantities import percent
from harness_lab.plots.style import draw_empty
from harness_lab.plots.tradeoff import plot_lines
from harness_lab.widgets.controls import choice, named
from harness_lab.widgets.frame import Panel
from harness_lab.widgets.panel import FigurePanel

if TYPE_CHECKING:
    from datetime import timedelta

    import pandas as pd
    from matplotlib.axes import Axes

    from harness_lab.analyze.frames import Data

PATH: Final = ("agent", "backend", "model", "context")
ALL: Final = "all of them"
UNKNOWN: Final = "unknown"
_LABELS: Final = {"agent": "Agent", "backend": "Backend", "model": "Model", "context": "Context"}


class FloorExplorer(Panel):
    """A path, a floor, and what that floor is wrong about. Make it with :func:`floor_explorer`.

    Attributes
    ----------
    pick : dict of str to Dropdown
        ``agent, backend, model, context``: which settlements.
    unit : Dropdown
        What is counted.
    floor : IntSlider
        The floor, tokens.
    picture : FigurePanel
        Both costs against the floor.
    readout : HTML
        Both costs at this floor, with intervals; what the evidence is worth; marks where it is stale or mixed.
    """

    def __init__(self, nodes: pd.DataFrame, *, stale_after: timedelta | None, now_ns: int | None) -> None:
        self._nodes, self._stale_after, self._now_ns = nodes, stale_after, now_ns
        self._quiet = False
        self.pick: dict[str, Any] = {
            name: choice(f"floor-{name}", [ALL, *_values(nodes, name)], ALL, _LABELS[name]) for name in PATH
        }
        self.unit = choice("floor-unit", list(UNITS), "input-total", "Unit")
        layout = widgets.Layout(width="38em", max_width="100%")
        self.floor = named(widgets.IntSlider(value=0, min=0, max=1, description="Floor", layout=layout), "floor-slider")
        self.readout = named(widgets.HTML(), "floor-readout")
        self._look()
        self.picture = FigurePanel(self._draw, figsize=(7.6, 4.2), css_class="hl-floor-picture")
        columns = widgets.HBox(
            [widgets.VBox(list(self.pick.values())[:2]), widgets.VBox([*list(self.pick.values())[2:], self.unit])],
            layout=widgets.Layout(flex_flow="row wrap"),
        )
        super().__init__([columns, self.floor, self.readout, self.picture])
        named(self, "floor-explorer")
        for control in (*self.pick.values(), self.unit):
            control.observe(self._on_path, names="value")
        self.floor.observe(self._on_floor, names="value")

    @property
    def chosen(self) -> pd.DataFrame:
        """The settlements of the path."""
        rows = self._nodes
        for name, control in self.pick.items():
            if control.value != ALL:
                rows = rows[rows[name].isna() if control.value == UNKNOWN else rows[name] == control.value]
        return rows

    def costs(self) -> FloorCosts | None:
        """Return both costs at the floor; None: no run of known usage and outcome."""
        return self._costs([self.floor.value])

    def _costs(self, candidates: list[int] | None) -> FloorCosts | None:
        try:
            return floor_costs(self.chosen, candidates=candidates, unit=self.unit.value)
        except InputError:
            return None

    def _look(self) -> None:
        """Read the path: its floors, the curve, and the slider's range; begin at the floor that applies."""
        self.found: Floors = floors(
            self.chosen, unit=self.unit.value, stale_after=self._stale_after, now_ns=self._now_ns
        )
        self._curve = self._costs(None)
        self._quiet = True
        self.floor.disabled = self._curve is None
        if self._curve is not None:
            self.floor.max = int(self._curve.frame["floor"].max())
            self.floor.step = max(1, self.floor.max // 500)
            known = [one for path in self.found if (one := path.applies.floor) is not None]
            self.floor.value = min(known, default=0)
        self._quiet = False
        self._say()

    def _on_path(self, _change: object) -> None:
        self._look()
        self.picture.redraw()

    def _on_floor(self, _change: object) -> None:
        if not self._quiet:
            self._say()
            self.picture.redraw()

    def _draw(self, ax: Axes) -> None:
        if self._curve is None:
            draw_empty(ax, "no rows: no run of known usage, outcome and ask on this path")
            return
        plot_lines(
            self._curve.frame, "floor", ("falsely_refused", "doomed_through"), ax=ax, mark=self.floor.value,
            xlabel=f"floor, tokens ({self.unit.value})", ylabel="share of the runs it is wrong about",
        )  # fmt: skip

    def _say(self) -> None:
        costs = self.costs()
        if costs is None:
            self.readout.value = "<p>No run of known usage, outcome and ask, so nothing can be said.</p>"
            return
        row = costs.frame.iloc[0]
        words = (
            ("refused although they would have completed", "falsely_refused", "n_good"),
            ("let through although they would not have", "doomed_through", "n_doomed"),
        )
        said = [(text, _share(row, name), int(row[n])) for text, name, n in words]
        items = "".join(f"<li><b>{text}</b>: {share} of {n:,} runs</li>" for text, share, n in said)
        head = f"A floor of {self.floor.value:,} tokens, asks: {costs.asks}"
        marks = "".join(f"<p class='hl-mark'>{escape(text)}</p>" for text in self.marks())
        self.readout.value = f"<p><b>{escape(head)}</b></p><ul>{items}</ul>{marks}"

    def marks(self) -> list[str]:
        """Return what a reader has to know of the evidence: mixed paths, stale or few rows, notes."""
        said = []
        if len(self.found) > 1:
            said.append(f"Mixed evidence: {len(self.found)} paths are taken together; a floor holds for one path.")
        for path in self.found:
            if self.found.is_stale(path):
                said.append(f"Stale evidence: {path.key}")
            if path.note and len(self.found) == 1:
                said.append(path.note)
        lowest = [path.applies for path in self.found if path.applies.floor is not None]
        if len(lowest) == 1:
            said.append(f"Smallest settlement: {lowest[0].floor:,} tokens, n = {lowest[0].n:,}.")
        return said


def floor_explorer(
    settlements: Data, *, stale_after: timedelta | None = None, now_ns: int | None = None
) -> FloorExplorer:  # fmt: skip
    """Make a panel in which the floor of a path is moved and both of its costs are read.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes.
    stale_after : timedelta, optional
        Age of the newest row at which evidence is marked as stale; None: never.
    now_ns : int, optional
        The instant that ages refer to, epoch nanoseconds.

    Returns
    -------
    FloorExplorer
        Shown as the last value of a cell.
    """
    return FloorExplorer(nodes_of(settlements), stale_after=stale_after, now_ns=now_ns)


def _values(nodes: pd.DataFrame, name: str) -> list[str]:
    if name not in nodes.columns:
        return []
    found = sorted(str(value) for value in nodes[name].dropna().unique())
    return [*found, UNKNOWN] if nodes[name].isna().any() else found


def _share(row: pd.Series[Any], name: str) -> str:
    value, low, high = (float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    if value != value:
        return "unknown"
    return percent(value) + ("" if low != low else f" [{percent(low)}, {percent(high)}]")

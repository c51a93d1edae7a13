"""The run viewer: one run's tree over time, stepped through question by question."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import pandas as pd

from harness_lab.plots.run import plot_run
from harness_lab.simulate import Timeline, explain
from harness_lab.widgets.controls import button, choice, named
from harness_lab.widgets.frame import Panel
from harness_lab.widgets.panel import FigurePanel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from harness_lab.simulate import Experiment

ANY = "any"


class RunViewer(Panel):
    """One run over time. Make it with :func:`run_viewer`.

    Attributes
    ----------
    step : IntSlider
        The place of the event that is pointed at.
    only : Dropdown
        Which events the buttons go to: any, refused, waits, cancelled.
    back, on : Button
        To the event before and after.
    picture : FigurePanel
        The tree; hovering over a call or a mark tells its reason.
    readout : HTML
        The event in words: what was asked, the answer and its reason, and what the limits held then.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.events = timeline.to_frame()
        layout = widgets.Layout(width="38em", max_width="100%")
        most = max(0, len(self.events) - 1)
        self.step = named(widgets.IntSlider(value=0, min=0, max=most, description="Event", layout=layout), "run-step")
        kinds = [ANY, *(word for word in ("refused", "waits", "cancelled") if len(self._places(word)))]
        self.only = choice("run-only", kinds, ANY, "Go to")
        self.back = button("run-back", "Back", "To the event before")
        self.on = button("run-on", "On", "To the next event")
        self.readout = named(widgets.HTML(), "run-readout")
        height = 2.2 + 0.34 * min(max(len(timeline.nodes), 2), 30)
        self.picture = _Hovered(self._draw, self._said, figsize=(9.0, height), css_class="hl-run-picture")
        super().__init__([self.step, widgets.HBox([self.only, self.back, self.on]), self.readout, self.picture])
        named(self, "run-viewer")
        self._say()
        self.step.observe(self._on_step, names="value")
        self.back.on_click(lambda _: self._go(-1))
        self.on.on_click(lambda _: self._go(1))

    @property
    def event(self) -> dict[str, Any]:
        """The event that is pointed at: a row of :meth:`harness_lab.simulate.Timeline.to_frame`."""
        row = self.events.iloc[self.step.value]
        return {str(name): row[name] for name in self.events.columns}

    def _places(self, word: str) -> list[int]:
        hits = self.events["event"] == "cancel" if word == "cancelled" else self.events["answer"] == word
        return [int(k) for k in hits.to_numpy().nonzero()[0]] if word != ANY else list(range(len(self.events)))

    def _go(self, way: int) -> None:
        here, places = self.step.value, self._places(self.only.value)
        further = [k for k in places if (k - here) * way > 0]
        if further:
            self.step.value = further[0] if way > 0 else further[-1]

    def _on_step(self, _change: object) -> None:
        self._say()
        self.picture.redraw()

    def _draw(self, ax: Axes) -> None:
        plot_run(self.timeline.nodes, self.events, ax=ax, at=self.step.value, max_nodes=30)

    def _said(self, place: int) -> str:
        return self.timeline._line(self.events.iloc[place].to_dict()).strip()

    def _say(self) -> None:
        if not len(self.events):
            self.readout.value = "<p>Nothing happened in this run.</p>"
            return
        event = self.event
        rows = [("what", self._said(self.step.value)), ("reason", event["reason"]), ("limits then", event["state"])]
        rows += [(name, _amounts(event, name)) for name in ("asked", "granted", "spent")]
        items = "".join(f"<li><b>{escape(name)}</b>: {escape(str(text))}</li>" for name, text in rows if _known(text))
        place = f"event {self.step.value + 1:,} of {len(self.events):,}"
        self.readout.value = f"<p><b>{place}</b></p><ul>{items}</ul>"


class _Hovered(FigurePanel):
    """A picture whose marked events say themselves under the pointer."""

    def __init__(self, draw: Any, said: Any, **options: Any) -> None:
        self._said = said
        super().__init__(draw, **options)

    def redraw(self, _change: object = None) -> None:
        """Draw again, and write each event's words into its group."""
        super().redraw()
        self.value = re.sub(
            r'(<g id="event-(\d+)"[^>]*>)',
            lambda found: f"{found[1]}<title>{escape(self._said(int(found[2])))}</title>",
            self.value,
        )


def run_viewer(
    run: Timeline | Experiment, number: int | str | None = None, *, policy: str | None = None
) -> RunViewer:  # fmt: skip
    """Make a panel that shows one run over time and steps through it.

    Parameters
    ----------
    run : Timeline or Experiment
        What :func:`harness_lab.explain` returned; or an experiment, whose run `number` is explained.
    number : int or str, optional
        Which run of an experiment; the first if None.
    policy : str, optional
        Under which policy, for an experiment with several.

    Raises
    ------
    InputError
        If there is no such run or policy.
    """
    timeline = run if isinstance(run, Timeline) else explain(run, 0 if number is None else number, policy=policy)
    return RunViewer(timeline)


def _known(text: Any) -> bool:
    return not (text is None or text is pd.NA or text != text or str(text) == "")


def _amounts(event: dict[str, Any], what: str) -> str:
    """Return the known amounts of an event in words."""
    parts = []
    for channel in ("calls", "input", "tokens", "fresh", "cost_nusd"):
        value = event.get(f"{what}_{channel}")
        if _known(value) and value is not None:
            shown = f"${value / 1e9:,.4f}" if channel == "cost_nusd" else f"{value:,} {channel}"
            parts.append(shown)
    return ", ".join(parts)

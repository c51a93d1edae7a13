"""The ceiling explorer: move a limit and read, on the recorded runs, what it would have cut, avoided and destroyed."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

import ipywidgets as widgets
import pandas as pd

from harness_lab.analyze.ceilings import COLUMNS, CeilingChannel, CeilingChoice, ceiling
from harness_lab.analyze.grouping import AUTO
from harness_lab.errors import InputError
from harness_lab.plots.ceilings import plot_ceiling_tradeoff
from harness_lab.plots.quantities import DOLLARS, Quantity, percent, quantity
from harness_lab.widgets.frame import Panel
from harness_lab.widgets.panel import FigurePanel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from harness_lab.analyze.frames import Data

_STEPS: Final = 200
_NAMES: Final[dict[str, str]] = {
    "cost": "spend", "calls": "model calls", "input": "prompt tokens", "tokens": "tokens", "time": "time",
}  # fmt: skip


class CeilingExplorer(Panel):
    """Controls, a picture and words about one limit on whole runs. Make it with :func:`ceiling_explorer`.

    Attributes
    ----------
    channel : Dropdown
        What is limited.
    slider : FloatSlider
        The limit, in dollars, calls, tokens or seconds.
    picture : FigurePanel
        Delivered runs cut against spend avoided.
    readout : HTML
        The same in words and figures, with intervals.
    """

    def __init__(self, choices: _Choices, channel: CeilingChannel, channels: Sequence[CeilingChannel]) -> None:
        self._choices = choices
        self._quiet = False
        options = [(_NAMES[name], name) for name in channels]
        style = {"description_width": "5.5em"}
        self.channel = widgets.Dropdown(options=options, value=channel, description="Limit on", style=style)
        layout = widgets.Layout(width="38em", max_width="100%")
        self.slider = widgets.FloatSlider(value=0, min=0, max=1, description="Limit", style=style, layout=layout)
        self.readout = widgets.HTML()
        self._set_range()
        self.picture = FigurePanel(self._draw, figsize=(7.2, 4.6), css_class="hl-ceiling-picture")
        super().__init__([self.channel, self.slider, self.readout, self.picture])
        self._name_for_tests()
        self._say()
        self.channel.observe(self._on_channel, names="value")
        self.slider.observe(self._on_limit, names="value")

    @property
    def choice(self) -> CeilingChoice:
        """The ceiling that the data support for the channel, and the runs it rests on."""
        name: CeilingChannel = self.channel.value
        return self._choices[name]

    @property
    def limit(self) -> int:
        """The limit, in the channel's own unit: nano-dollars, calls, tokens, nanoseconds."""
        return round(float(self.slider.value) / self._shown.factor)

    def effect(self) -> dict[str, float]:
        """Return what the limit does: one row of :func:`harness_lab.analyze.ceilings.ceiling_curve`; NaN is unknown."""
        row = self.choice.curve([self.limit]).astype("Float64").iloc[0]
        return {str(name): float("nan") if pd.isna(value) else float(value) for name, value in row.items()}

    @property
    def _shown(self) -> Quantity:
        return quantity(self.channel.value)

    def _draw(self, ax: Axes) -> None:
        base = self.choice.curve()
        if len(base):
            base = self.choice.curve([*base["ceiling"], self.limit]).drop_duplicates("ceiling")
        title = "What this limit saves, and which runs it costs"
        plot_ceiling_tradeoff(base, ax=ax, channel=self.channel.value, chosen=self.limit, title=title)

    def _on_channel(self, _change: object) -> None:
        self._quiet = True
        self._set_range()
        self._quiet = False
        self._on_limit(None)

    def _on_limit(self, _change: object) -> None:
        if not self._quiet:
            self._say()
            self.picture.redraw()

    def _set_range(self) -> None:
        """Let the slider run over what runs used; start at the supported ceiling, else at nine in ten runs."""
        amounts, factor = self.choice.sample.amounts, self._shown.factor
        self.slider.disabled = not amounts.size
        most = float(amounts.max(initial=0.0)) * factor or 1.0
        start = self.choice.ceiling
        if start is None:
            start = int(pd.Series(amounts).quantile(0.9)) if amounts.size else 0
        self.slider.value = 0.0
        self.slider.max = most
        self.slider.step = _step(most / _STEPS, least=1e-4 if self._shown.unit == "$" else 1.0)
        cents = ".2f" if self.slider.step >= 0.01 else ".4f"
        self.slider.readout_format = cents if self._shown.unit == "$" else ",.0f"
        self.slider.description = {"$": "Limit, $", "s": "Limit, s"}.get(self._shown.unit, "Limit")
        self.slider.value = start * factor

    def _say(self) -> None:
        if self.choice.sample.n:
            self.readout.value = _words(self.effect(), self.choice, self._shown, self.limit)
        else:
            self.readout.value = "<p>No run with a known outcome and known use, so nothing can be said.</p>"

    def _name_for_tests(self) -> None:
        parts = {"channel": self.channel, "slider": self.slider, "readout": self.readout}
        for name, part in parts.items():
            part.add_class(f"hl-ceiling-{name}")
        self.add_class("hl-ceiling-explorer")


class _Choices(dict[CeilingChannel, CeilingChoice]):
    """The choice of each channel, made when it is first looked at."""

    def __init__(self, data: Data, *, target: float, confidence: float, cluster: str | None) -> None:
        super().__init__()
        self._data, self._target, self._confidence, self._cluster = data, target, confidence, cluster

    def __missing__(self, channel: CeilingChannel) -> CeilingChoice:
        found = ceiling(
            self._data, channel, target=self._target, confidence=self._confidence, cluster=self._cluster
        )  # fmt: skip
        self[channel] = found
        return found


def ceiling_explorer(
    settlements: Data,
    channel: CeilingChannel = "cost",
    *,
    channels: Sequence[CeilingChannel] = ("cost", "calls", "tokens", "time"),
    target: float = 0.9,
    confidence: float = 0.95,
    cluster: str | None = AUTO,
) -> CeilingExplorer:
    """Make a panel in which a limit on whole runs is moved and its effect on recorded runs is read.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes.
    channel : {"cost", "calls", "input", "tokens", "time"}
        What is limited at first.
    channels : sequence of str
        What can be chosen; `channel` is among them in any case.
    target, confidence : float
        The slider begins at the smallest ceiling within which a share `target` of runs completes, with this confidence;
        where the data support none, at what nine in ten runs used at most.
    cluster : str or None, default "auto"
        Column whose rows resemble each other; see :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    CeilingExplorer
        Shown as the last value of a cell. Setting ``slider.value`` in code does what a hand does.

    Raises
    ------
    InputError
        If a channel does not exist.
    """
    wanted = list(dict.fromkeys([*channels, channel] if channel not in channels else channels))
    unknown = [name for name in wanted if name not in COLUMNS]
    if unknown:
        raise InputError("channel", expected=f"one of {', '.join(COLUMNS)}", got=unknown[0])
    choices = _Choices(settlements, target=target, confidence=confidence, cluster=cluster)
    return CeilingExplorer(choices, channel, wanted)


def _step(raw: float, *, least: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that is at least `raw` and `least`.

    Examples
    --------
    >>> _step(14_508.5, least=1.0), _step(0.0089, least=1e-4), _step(0.4, least=1.0)
    (20000.0, 0.01, 1.0)
    """
    wanted = max(raw, least)
    power = 10.0 ** math.floor(math.log10(wanted))
    return float(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted * (1 - 1e-9)))


def _words(row: dict[str, float], choice: CeilingChoice, shown: Quantity, limit: int) -> str:
    groups = "" if math.isnan(row["clusters"]) else f", {int(row['clusters']):,} clusters by {choice.sample.cluster}"
    delivered = f"{row['delivered_cut']:,.0f} of them had delivered"
    if row["delivered_unknown_cut"]:
        delivered += f", of {row['delivered_unknown_cut']:,.0f} it is unknown"
    lines = (
        ("runs cut", f"{row['runs_cut']:,.0f}: {_share(row, 'cut_share')}; {delivered}"),
        ("runs completed within it", _share(row, "completed_share")),
        ("spend avoided", f"{DOLLARS.write(row['avoided_nusd'])}: {_share(row, 'avoided_share')}"),
        ("spend sunk in runs cut", f"{DOLLARS.write(row['sunk_nusd'])}: {_share(row, 'sunk_share')}"),
    )
    items = "".join(f"<li><b>{escape(name)}</b>: {escape(text)}</li>" for name, text in lines)
    head = f"A limit of {shown.write(limit)} a run, on {row['n']:,.0f} recorded runs{groups}"
    foot = (
        "In brackets: 95 % intervals, where enough runs are cut for one. Assumes that runs do not adapt to the limit."
    )
    return f"<p><b>{escape(head)}</b></p><ul>{items}</ul><p>{escape(foot)}</p>"


def _share(row: dict[str, float], name: str) -> str:
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    if math.isnan(value):
        return "unknown"
    return (
        f"{percent(value)}, no interval" if math.isnan(low) else f"{percent(value)} [{percent(low)}, {percent(high)}]"
    )

"""The explorer: move limits of simulated agents and see at once what changes, on the same luck."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as widgets
import pandas as pd

from harness_lab.errors import InputError
from harness_lab.plots.board import plot_board
from harness_lab.plots.quantities import duration
from harness_lab.simulate import Experiment, from_gallery, gallery
from harness_lab.widgets.controls import button, choice, limit_of, limit_slider, named, number
from harness_lab.widgets.effect import Effect, effect, in_words
from harness_lab.widgets.frame import Panel
from harness_lab.widgets.panel import FigurePanel
from harness_lab.widgets.runs import FEWEST, Runs
from harness_lab.widgets.settings import OWN, PROVIDERS, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMITS: Final = ("cost_usd", "calls", "time_s", "floor", "depth", "starts", "concurrency")
PRICES: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
PAUSE_S: Final = 0.01
"""Between two pieces of work, so that the page's messages are answered."""
QUIET_S: Final = 0.3
"""Without another move before the rest is begun: a hand that is still moving is not kept waiting."""
PIECE_S: Final = 0.1
"""Seconds of work between two such pauses."""
KEPT: Final = 16
"""Settings whose runs are kept."""
_FORMS: Final = ("nothing", "Python", "TOML (experiment file)", "config (JSON)")


class Explorer(Panel):
    """Limits, a world, and what they do to its runs. Make it with :func:`explore`.

    Attributes
    ----------
    controls : dict of str to Widget
        By name: ``workload, provider, price, cost_usd, calls, time_s, floor, depth, starts, concurrency, run``.
    picture : FigurePanel
        Spend, completion, what stopped runs, and one run over time.
    readout, status : HTML
        Figures with intervals and the change against the baseline; how many runs they rest on.
    pin, stop : Button
        Make the settings the baseline; end the work on further runs and keep what is done.
    show_as, text : Dropdown, Textarea
        The settings as code, TOML or config.
    """

    def __init__(self, base: Experiment | None, settings: Settings, *, runs: int, seed: int) -> None:
        self._base, self._runs_wanted, self._seed = base, runs, seed
        self._kept: dict[Settings, Runs] = {}
        self._task: asyncio.Task[None] | None = None
        self._draw_s = 0.15
        self._quiet = False
        self._make_controls(settings)
        self.pinned = self.settings
        self._start()
        self.picture = FigurePanel(self._draw, figsize=(10.5, 6.6), css_class="hl-explore-picture", whole=True)
        super().__init__([self._panel(), self.readout, self.status, self.picture, self.show_as, self.text])
        named(self, "explore")
        self._say()
        self._observe()
        self._later()

    @property
    def settings(self) -> Settings:
        """What the controls say."""
        world = {name: self.controls[name].value for name in ("workload", "provider", "price")}
        return Settings(**world, **{name: limit_of(self.controls[name]) for name in LIMITS})

    @property
    def runs(self) -> Runs:
        """The runs under the settings, as far as they are simulated."""
        return self._runs_of(self.settings)

    def effect(self) -> Effect:
        """Return the figures that the readout says."""
        baseline = None if self.pinned == self.settings else self._runs_of(self.pinned).table
        return effect(self.runs.table, baseline)

    def finish(self) -> Explorer:
        """Simulate all runs of the settings and of the baseline now, and show them."""
        self._cancel()
        for runs in (self._runs_of(self.pinned), self.runs):
            runs.advance(runs.wanted)
        self._show()
        return self

    # --- the world and its runs

    def _runs_of(self, settings: Settings) -> Runs:
        if settings not in self._kept:
            for old in list(self._kept)[: max(0, len(self._kept) - KEPT)]:
                if old != self.pinned:
                    del self._kept[old]
            made = settings.experiment(self._base, runs=self._runs_wanted, seed=self._seed)
            self._kept[settings] = Runs(made)
        return self._kept[settings]

    def _start(self) -> None:
        """Simulate at once what takes about as long as the picture: the whole then takes twice its time."""
        pinned, runs = self._runs_of(self.pinned), self.runs
        speed = next((one for one in reversed(self._kept.values()) if one.done), runs)
        fits = speed.within(0.2 * self._draw_s)
        if pinned is not runs:
            before = pinned.done
            pinned.advance(max(0, fits // 2 - before))  # so that there are pairs to compare
            fits -= pinned.done - before
        runs.advance(max(0, fits - runs.done))

    async def _refine(self) -> None:
        """Simulate the rest in small pieces; draw when there are four times as many, and at the end."""
        await asyncio.sleep(QUIET_S)
        drawn = self.runs.done
        while (runs := self._unfinished()) is not None:
            await asyncio.sleep(PAUSE_S)
            runs.advance(min(runs.within(PIECE_S), max(runs.done, FEWEST)))
            if self.runs.done >= 4 * drawn or drawn < self.runs.done == self.runs.wanted:
                drawn = self.runs.done
                self._show()
            self._say_status(going=True)
        self._show()
        self._say_status()

    def _unfinished(self) -> Runs | None:
        both = sorted((self.runs, self._runs_of(self.pinned)), key=lambda runs: runs.done)
        return next((runs for runs in both if runs.done < runs.wanted), None)

    def _later(self) -> None:
        """Go on in the background, if there is an event loop: there is one in a notebook, and none in a script."""
        self._cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._unfinished() is not None:
            self._task = loop.create_task(self._refine())
            self._say_status(going=True)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    # --- the page

    def _make_controls(self, settings: Settings) -> None:
        worlds = [name for name in gallery() if from_gallery(name).workload.arrivals is None]
        worlds = [*([] if self._base is None else [OWN]), *worlds]
        prices = [(f"{100 * factor:.0f} %", factor) for factor in PRICES]
        self.controls: dict[str, Any] = {
            "workload": choice("workload", worlds, settings.workload, "Workload"),
            "provider": choice("provider", PROVIDERS, settings.provider, "Provider"),
            "price": choice("price", prices, settings.price, "Prices"),
            **{name: limit_slider(name, getattr(settings, name)) for name in LIMITS},
            "run": number("run", 0, self._runs_wanted - 1, "Run shown"),
        }
        self.pin = button("pin", "Pin as baseline", "Compare what follows with these settings")
        self.stop = button("stop", "Stop", "Simulate no further runs; what is done is kept")
        self.show_as = choice("show-as", _FORMS, _FORMS[0], "Copy settings as")
        layout = widgets.Layout(width="100%", height="12em", display="none")
        self.text = named(widgets.Textarea(layout=layout, description="Settings"), "settings-text")
        self.readout, self.status = named(widgets.HTML(), "readout"), named(widgets.HTML(), "status")

    def _panel(self) -> widgets.HBox:
        parts = list(self.controls.values())
        columns = (parts[:6], [*parts[6:], widgets.HBox([self.pin, self.stop])])
        wrap = widgets.Layout(flex_flow="row wrap")
        return widgets.HBox([widgets.VBox(column) for column in columns], layout=wrap)

    def _observe(self) -> None:
        for name, control in self.controls.items():
            control.observe(self._on_run if name == "run" else self._on_settings, names="value")
        self.pin.on_click(self._on_pin)
        self.stop.on_click(self._on_stop)
        self.show_as.observe(self._on_form, names="value")

    def _on_settings(self, _change: object) -> None:
        if self.controls["workload"].value != self.pinned.workload:
            self.pinned = Settings(workload=self.controls["workload"].value)  # other agents: no pair to compare with
        self._cancel()
        self._start()
        self._show()
        self._later()

    def _on_run(self, _change: object) -> None:
        self.picture.redraw()

    def _on_pin(self, _button: object) -> None:
        self.pinned = self.settings
        self._show()

    def _on_stop(self, _button: object) -> None:
        self._cancel()
        self._show()
        self._say_status(stopped=True)

    def _on_form(self, _change: object) -> None:
        self.text.layout.display = "none" if self.show_as.value == _FORMS[0] else "flex"
        self.text.value = self.settings_as(self.show_as.value)

    def settings_as(self, form: str) -> str:
        """Return the settings as ``Python``, ``TOML (experiment file)`` or ``config (JSON)``; ``nothing`` is empty."""
        if form == _FORMS[1]:
            return self.settings.to_python(runs=self._runs_wanted, seed=self._seed)
        if form == _FORMS[2]:
            return self.settings.to_toml(self._base, runs=self._runs_wanted, seed=self._seed)
        if form == _FORMS[3]:
            today = datetime.now(UTC).date()
            return self.settings.to_config(self._base, runs=self._runs_wanted, seed=self._seed, today=today).to_json()
        return ""

    def _show(self) -> None:
        began = time.perf_counter()
        self.picture.redraw()
        self._draw_s = time.perf_counter() - began
        self._say()

    def board(self) -> tuple[pd.DataFrame, dict[str, pd.DataFrame], pd.DataFrame]:
        """Return what the picture is drawn from: the arguments of :func:`harness_lab.plots.plot_board`."""
        shown = {"pinned": self._runs_of(self.pinned).table} if self.pinned != self.settings else {}
        found = self.effect()
        rows = [_row("now", name, getattr(found, name)) for name in ("completed", "spend")]
        if shown:
            before = effect(shown["pinned"], None)
            rows += [_row("pinned", name, getattr(before, name)) for name in ("completed", "spend")]
        runs = {"now": self.runs.table, **shown}
        return pd.DataFrame(rows), runs, self.runs.tree(self.controls["run"].value)

    def _draw(self, figure: Figure) -> None:
        plot_board(*self.board(), figure=figure)

    def _say(self) -> None:
        self.readout.value = in_words(self.effect())
        self._say_status()
        self.text.value = self.settings_as(self.show_as.value)

    def _say_status(self, *, going: bool = False, stopped: bool = False) -> None:
        runs = self.runs
        words = f"{runs.done:,} of {runs.wanted:,} runs"
        if stopped:
            words += ": stopped; what is done is kept"
        elif runs.done < runs.wanted:
            words += f": a part, to be quick; about {duration(runs.seconds_left)} for the rest"
            words += ", under way" if going else ""
        self.status.value = f"<p role='status'>{escape(words)}</p>"


def explore(
    experiment: Experiment | str = "coding-agent",
    *,
    settings: Settings | None = None,
    runs: int = 2000,
    seed: int = 0,
) -> Explorer:
    """Make a panel in which limits are moved and their effect on simulated runs is seen at once, on the same luck.

    Parameters
    ----------
    experiment : Experiment or str
        A world of your own (its policies are not taken), or a name from :func:`harness_lab.simulate.gallery`.
    settings : Settings, optional
        What the controls say at first, and the baseline; no limits if None.
    runs : int
        Runs in all. A part is simulated at once, the rest in the background: the status says how many are done.
    seed : int
        Names the luck.

    Returns
    -------
    Explorer
        Shown as the last value of a cell. Setting ``controls[...].value`` in code does what a hand does.

    Raises
    ------
    InputError
        If there is no such world.
    """
    base = experiment if isinstance(experiment, Experiment) else None
    name = OWN if base is not None else str(experiment)
    if base is None and from_gallery(name).workload.arrivals is not None:
        raise InputError("experiment", expected="a world whose runs do not meet", got=name)
    if settings is None:
        settings = Settings(workload=name)
    elif settings.workload != name:
        raise InputError("settings.workload", expected=name, got=settings.workload)
    return Explorer(base, settings, runs=runs, seed=seed)


def _row(policy: str, metric: str, found: Any) -> dict[str, Any]:
    ends = {end: getattr(found, end) for end in ("value", "low", "high")}
    return {"policy": policy, "metric": metric, **ends}

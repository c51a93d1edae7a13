"""Controls of the panels: named, labelled, reachable by keyboard; a limit's slider ends in "no limit"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import ipywidgets as widgets

from harness_lab.plots.quantities import write

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_LIMIT: Final = "no limit"
_STYLE: Final = {"description_width": "9.5em"}
_GRIDS: Final[dict[str, tuple[float, ...]]] = {
    "cost_usd": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5,
                 10.0, 20.0, 50.0),
    "calls": (5, 10, 15, 20, 25, 30, 35, 40, 50, 60, 80, 100, 150, 200, 300, 500),
    "time_s": (30, 60, 120, 180, 300, 450, 600, 900, 1_200, 1_800, 3_600, 7_200),
    "floor": (5_000, 10_000, 20_000, 31_211, 50_000, 75_000, 100_000, 200_000, 400_000, 800_000),
    "depth": (0, 1, 2, 3, 4, 6), "starts": (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 48, 96),
    "concurrency": (1, 2, 3, 4, 6, 8, 12, 24),
}  # fmt: skip
"""Values that can be chosen; money in dollars, time in seconds, a floor in tokens."""
UNITS: Final = {"cost_usd": "$", "time_s": "s"}
LABELS: Final = {
    "cost_usd": "Budget of a run", "calls": "Model calls", "time_s": "Time of a run", "floor": "Floor, tokens",
    "depth": "Depth", "starts": "Children started", "concurrency": "Children at once",
}  # fmt: skip


def limit_slider(name: str, value: float | None = None) -> widgets.SelectionSlider:
    """Return the slider of a limit; `value` is among its steps, and the last one is no limit."""
    steps = sorted({*_GRIDS[name], *([] if value is None else [value])})
    options: list[tuple[str, Any]] = [(write(step, UNITS.get(name, "")), step) for step in steps]
    options.append((NO_LIMIT, NO_LIMIT))  # the widget takes None for: nothing is selected
    return named(
        widgets.SelectionSlider(
            options=options,
            value=NO_LIMIT if value is None else value,
            description=LABELS[name],
            style=_STYLE,
            layout=_wide(),
        ),
        name,
    )


def limit_of(slider: widgets.SelectionSlider) -> Any:
    """Return what a limit's slider says; None is no limit."""
    return None if slider.value == NO_LIMIT else slider.value


def choice(name: str, options: Iterable[Any], value: Any, label: str) -> widgets.Dropdown:
    """Return a list to choose from."""
    return named(
        widgets.Dropdown(options=list(options), value=value, description=label, style=_STYLE, layout=_wide()), name
    )


def number(name: str, value: int, most: int, label: str) -> widgets.BoundedIntText:
    """Return a field for a whole number from 0 to `most`."""
    return named(
        widgets.BoundedIntText(value=value, min=0, max=most, description=label, style=_STYLE, layout=_wide()), name
    )


def button(name: str, label: str, tooltip: str) -> widgets.Button:
    """Return a button; it says in words what it does, since an icon would be loaded from elsewhere."""
    return named(widgets.Button(description=label, tooltip=tooltip), name)


def named(widget: Any, name: str) -> Any:
    """Give a widget a class of its own: by it tests, styles and scripts find it."""
    widget.add_class(f"hl-{name.replace('_', '-')}")
    return widget


def _wide() -> widgets.Layout:
    return widgets.Layout(width="30em", max_width="100%")

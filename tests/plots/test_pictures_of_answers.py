"""Pictures of prices, budgets, checks, fits and races: as they were when somebody last looked at them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import style
from matplotlib.figure import Figure
from pictures import TOLERANCE, far_from_stored

from harness_lab.plots import plot_both_ways, plot_price_changes
from harness_lab.plots.bars import plot_bars
from harness_lab.plots.fits import plot_fit
from harness_lab.plots.money import plot_blocked, plot_flat_price, price_text
from harness_lab.plots.quantities import Quantity
from harness_lab.plots.style import ink
from harness_lab.plots.verdicts import STATUSES, plot_bounds, plot_statuses

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "pictures_of_answers"
COUNT = Quantity(name="runs until it was out of the race")


def names(count: int) -> list[str]:
    return [f"policy {k} with a name that is really rather long" for k in range(count)]


def both_ways(count: int = 20) -> pd.DataFrame:
    at = np.linspace(1e8, 2e9, count)
    share = 1 - np.exp(-at / 5e8)
    frame = {"ceiling": at, "replayed": share, "simulated": share + 0.03 * (share < 0.7)}
    ends = {f"{name}_{end}": frame[name] + by for name in ("replayed", "simulated")
            for end, by in (("low", -0.02), ("high", 0.02))}  # fmt: skip
    return pd.DataFrame(frame | ends | {"differs": share < 0.7})


def sample() -> pd.DataFrame:
    value = np.sort(np.concatenate([np.geomspace(0.05, 0.2, 120), np.geomspace(2, 20, 80)]))
    share = np.arange(1, 201) / 200
    return pd.DataFrame({"value": value, "lognorm": share**2, "mixture of 2 lognormals": share})


def dates(count: int) -> pd.DataFrame:
    day = np.datetime64("2026-01-01") + 40 * np.arange(count)
    value = 0.4 + 0.1 * (np.arange(count) % 3)
    return pd.DataFrame({"day": day.astype(str), "value": value, "low": value - 0.05, "high": value + 0.06})


def priced(count: int) -> pd.DataFrame:
    cost = np.linspace(0.4, 1.2, count)
    text = [price_text(0.2, 0.03)] * count
    frame = {"name": names(count), "cost": cost, "low": cost - 0.1, "high": cost + 0.1, "price": cost * 1.3}
    return pd.DataFrame(frame | {"text": text})


def blocked(count: int) -> pd.DataFrame:
    k = np.arange(1, count + 1)
    return pd.DataFrame({"group": names(count), "share_of_runs": 1 / max(count, 1), "share_of_spend": k / k.sum(),
                         "share_of_blocked": k[::-1] / k.sum()})  # fmt: skip


def bounds(count: int) -> pd.DataFrame:
    at = np.linspace(3e8, 9e8, count)
    high = np.where(np.arange(count) == count - 1, np.nan, at * 1.5)
    frame = {"name": [f"{round(100 * (k + 1) / (count + 1))} % complete within" for k in range(count)], "value": at}
    return pd.DataFrame(
        frame | {"low": at * 0.9, "high": at * 1.1, "worst_low": at * 0.7, "worst_high": high}
    )  # fmt: skip


def bars(count: int) -> pd.DataFrame:
    value = [np.nan if k == 3 else 100.0 * (k + 1) for k in range(count)]
    return pd.DataFrame({"name": names(count), "value": value, "marked": [k % 3 == 0 for k in range(count)]})


def statuses(count: int) -> pd.DataFrame:
    return pd.DataFrame({"what": names(count), "status": [list(STATUSES)[k % 3] for k in range(count)]})


DRAWN: dict[str, Callable[[int, Any], Any]] = {
    "both-ways": lambda n, ax: plot_both_ways(both_ways(n), ax=ax, target=0.85),
    "price-changes": lambda n, ax: plot_price_changes(dates(n), ax=ax, price_usd=0.55),
    "flat-price": lambda n, ax: plot_flat_price(priced(n), ax=ax),
    "blocked": lambda n, ax: plot_blocked(blocked(n), ax=ax, title="Does $60.00 last for 100 runs?"),
    "bounds": lambda n, ax: plot_bounds(bounds(n), ax=ax),
    "bars": lambda n, ax: plot_bars(bars(n), ax=ax, shown=COUNT, marked="still in", title="Which is best?"),
    "statuses": lambda n, ax: plot_statuses(statuses(n), ax=ax),
}
PICTURES: dict[str, Callable[[Any], Any]] = {"fit": lambda ax: plot_fit(sample(), ax=ax, unit="$")} | {
    f"{name}-{count}": lambda ax, draw=draw, count=count: draw(count, ax)
    for name, draw in DRAWN.items()
    for count in (3, 20)
}


@pytest.mark.parametrize("name", PICTURES)
def test_an_answer_looks_as_it_did_when_somebody_last_looked_at_it(name: str) -> None:
    assert far_from_stored(PICTURES[name], FOLDER / f"{name}.png") < TOLERANCE


def test_every_picture_of_an_answer_that_is_stored_is_drawn() -> None:
    assert {path.stem for path in FOLDER.glob("*.png")} == set(PICTURES)


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_to_draw_is_said(name: str) -> None:
    ax = Figure().subplots()
    DRAWN[name](0, ax) if name != "both-ways" else plot_both_ways(both_ways().head(0), ax=ax)
    assert any(text.get_text().startswith(("no rows", "no ")) for text in ax.texts)
    assert not ax.lines


@pytest.mark.parametrize("name", DRAWN)
def test_axes_say_what_and_in_which_unit_and_text_takes_their_ink(name: str) -> None:
    with style.context("dark_background"):
        ax = Figure().subplots()
        DRAWN[name](5, ax)
        assert ax.get_xlabel()
        assert {text.get_color() for text in ax.texts} <= {ink(ax)}


def test_a_price_that_is_unknown_is_said() -> None:
    ax = plot_flat_price(priced(2).assign(cost=np.nan, low=np.nan, high=np.nan, price=np.nan), ax=Figure().subplots())
    assert "too few runs" in ax.texts[0].get_text()


def test_an_open_bound_reaches_the_end_of_the_axis_with_an_arrow() -> None:
    ax = plot_bounds(bounds(2), ax=Figure().subplots())
    assert [line.get_marker() for line in ax.lines].count(">") == 1

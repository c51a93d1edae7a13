"""Every picture of the package: of shipped records and a small simulation, and of one, twenty and no policies."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import made_up_policies as made
import numpy as np
import pandas as pd

import harness_lab as lab
from harness_lab import datasets, plots
from harness_lab.analyze import drift, floor_costs, pareto, spend_split, symptoms
from harness_lab.plots.bars import plot_bars
from harness_lab.plots.board import binding_of, board_height, spread_height
from harness_lab.plots.both_ways import plot_both_ways
from harness_lab.plots.choice import front_height, plot_best, plot_front
from harness_lab.plots.fits import plot_fit
from harness_lab.plots.money import plot_blocked, plot_flat_price
from harness_lab.plots.price_changes import plot_price_changes
from harness_lab.plots.quantities import Quantity
from harness_lab.plots.run import plot_run
from harness_lab.plots.tradeoff import plot_lines
from harness_lab.plots.verdicts import plot_bounds, plot_statuses
from harness_lab.settlements.quality import quality
from harness_lab.simulate import from_gallery

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """What draws on an empty figure, and how large that is, in inches."""

    draw: Callable[[Figure], Any]
    size: tuple[float, float] = (8.0, 5.0)


def alone(draw: Callable[[Any], Any], size: tuple[float, float] = (8.0, 5.0)) -> Picture:
    """Return the picture of what draws on axes."""
    return Picture(lambda figure: draw(figure.add_subplot()), size)


@cache
def world() -> tuple[lab.Experiment, Any]:
    """Return a small experiment and its result."""
    scene = from_gallery("deep-research")
    few = lab.compose(lab.tree_limits(1, 2, 8, max_wait_s=60), lab.shared_ledger(30, 2.0), name="few children")
    many = lab.shared_ledger(60, name="ledger")
    experiment = lab.Experiment(workload=scene.workload, provider=scene.provider, policies=(few, many), runs=60)
    return experiment, experiment.run(progress=False, backend="serial")


@cache
def runs() -> Any:
    """Return the shipped synthetic runs."""
    return datasets.load_synthetic_runs()


def halves() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the runs of two times."""
    nodes = runs().nodes
    return nodes.iloc[:3000], nodes.iloc[3000:]


def tables() -> dict[str, pd.DataFrame]:
    """Return the runs of each simulated policy."""
    found = lab.run_table(world()[1].settlements)
    return {name: found[found["policy"] == name] for name in ("few children", "ledger")}


def ceiling(ax: Any, draw: Callable[..., Any]) -> None:
    """Draw the ceiling that the shipped runs support."""
    choice = lab.ceiling(runs(), "cost", target=0.85)
    curve = choice.curve([*choice.curve()["ceiling"], choice.ceiling])
    draw(curve.sort_values("ceiling"), ax=ax, chosen=choice.ceiling)


def explained(ax: Any) -> None:
    """Draw one run with its events."""
    found = lab.explain(world()[0], 1, policy="few children")
    plot_run(found.nodes, found.to_frame(), ax=ax, at=30)


def costs(ax: Any) -> None:
    """Draw both costs of a floor."""
    nodes = runs().nodes
    frame = floor_costs(nodes[nodes["agent"] == "worker"]).to_frame()
    plot_lines(frame, "floor", ("falsely_refused", "doomed_through"), ax=ax, mark=50_000, xlabel="floor, tokens")


def spend(of: dict[str, pd.DataFrame]) -> dict[str, np.ndarray]:
    """Return what each run cost, dollars."""
    return {name: one["cost_nusd"].to_numpy(float) / 1e9 for name, one in of.items()}


def fit(ax: Any) -> None:
    """Draw a sample beside two models of it."""
    value = np.linspace(0.05, 3.0, 200) ** 2
    share = np.arange(1, 201) / 200
    curves = pd.DataFrame({"value": value, "lognormal": share**1.05, "two lognormals, mixed": share**0.98})
    plot_fit(curves, ax=ax, unit="$", censored=12)


def both_ways(ax: Any) -> None:
    """Draw replay beside simulation."""
    frame = pd.DataFrame({"ceiling": np.linspace(1e8, 2e9, 20), "differs": np.arange(20) > 14})
    for name, share in (("replayed", np.linspace(0.1, 0.9, 20)), ("simulated", np.linspace(0.1, 0.8, 20))):
        frame = frame.assign(**{name: share, f"{name}_low": share - 0.03, f"{name}_high": share + 0.03})
    plot_both_ways(frame, ax=ax, target=0.85)


def price_changes(ax: Any) -> None:
    """Draw a run's cost from date to date."""
    days = ["2025-11-01", "2026-02-15", "2026-03-01", "2026-09-30"]
    cost = np.array([0.41, 0.38, 0.52, 0.4711])
    plot_price_changes(
        pd.DataFrame({"day": days, "value": cost, "low": cost - 0.03, "high": cost + 0.03}), ax=ax, price_usd=0.6
    )


REAL: dict[str, Picture] = {
    "ceiling-tradeoff": alone(lambda ax: ceiling(ax, plots.plot_ceiling_tradeoff)),
    "ceiling-curve": alone(lambda ax: ceiling(ax, plots.plot_ceiling_curve)),
    "incidence": alone(lambda ax: lab.distribution(runs(), "cost_nusd").plot(ax=ax)),
    "floors": alone(lambda ax: lab.derive_floors(runs()).plot(ax=ax, asks=[5_000, 40_000])),
    "floor-costs": alone(costs),
    "quality": alone(lambda ax: quality(runs()).plot(ax=ax)),
    "metric": alone(lambda ax: plots.plot_metric(lab.compare(world()[1]).to_frame(), "spend", ax=ax)),
    "differences": alone(lambda ax: plots.plot_differences(lab.compare(world()[1]).differences(), "cost_nusd", ax=ax)),
    "binding": alone(lambda ax: plots.plot_binding(binding_of(tables()), ax=ax)),
    "timeline": alone(lambda ax: lab.explain(world()[0], 1, policy="few children").plot(ax=ax)),
    "run": alone(explained),
    "spread": alone(lambda ax: plots.plot_spread(spend(tables()), ax=ax)),
    "front": alone(lambda ax: pareto(world()[1].settlements).plot(ax=ax)),
    "split": alone(lambda ax: plots.plot_split(spend_split(*halves()).to_frame(), ax=ax)),
    "symptoms": alone(lambda ax: plots.plot_symptoms(symptoms(runs()).to_frame(), ax=ax)),
    "chances": alone(lambda ax: plots.plot_chances(drift(*halves()).to_frame(), ax=ax)),
    "fit": alone(fit),
    "both-ways": alone(both_ways),
    "price-changes": alone(price_changes),
}  # fmt: skip
"""Drawn light and dark."""


def extremes(end: str, count: int) -> dict[str, Picture]:
    """Return the pictures of so many policies, each as large as it makes itself."""
    tall = 1.6 + 0.46 * max(count, 1)
    frames, tables_, up = made.metrics(count), made.runs(count), ("completed", "cost_nusd")
    first = (made.names(count) or ["baseline"])[0]
    found = {
        "metric": alone(lambda ax: plots.plot_metric(frames, "spend", ax=ax), (6.4, tall)),
        "differences": alone(
            lambda ax: plots.plot_differences(made.differences(count), ax=ax, baseline=first), (6.4, tall)
        ),
        "binding": alone(lambda ax: plots.plot_binding(binding_of(tables_), ax=ax), (6.4, tall + 1)),
        "spread": alone(lambda ax: plots.plot_spread(spend(tables_), ax=ax), (6.4, spread_height(count))),
        "front": alone(lambda ax: plot_front(made.front(count), up, ax=ax, labels=up), (6.4, front_height(count))),
        "best": alone(lambda ax: plot_best(made.best(count), ax=ax, metric="completed", filled="best"), (6.4, tall)),
        "estimates": alone(lambda ax: plots.plot_estimates(made.estimates(count), "policy", ax=ax), (7.6, tall)),
        "timeline": alone(lambda ax: plots.plot_timeline(made.tree(count), ax=ax), (8.4, 2 + 0.34 * max(count, 2))),
        "policies": Picture(
            lambda figure: plots.plot_policies(frames, made.differences(count), binding_of(tables_), figure=figure),
            (12, 2 * tall),
        ),
        "board": Picture(
            lambda figure: plots.plot_board(frames, tables_, made.tree(count), figure=figure),
            (10.5, board_height(count)),
        ),
    }
    return {f"{name}-{end}": picture for name, picture in (found | amounts(count, tall)).items()}


def amounts(count: int, tall: float) -> dict[str, Picture]:
    """Return the pictures of names beside amounts, shares, prices and verdicts."""
    frame, size, usd = made.named(count), (7.2, tall + 0.6), Quantity(name="spend", unit="$")
    nano = frame.assign(**frame.filter(regex="value|low|high") * 1e9)
    return {
        "bars": alone(lambda ax: plot_bars(frame, ax=ax, shown=usd, marked="chosen", title="Which is it?"), size),
        "flat-price": alone(lambda ax: plot_flat_price(frame, ax=ax), size),
        "blocked": alone(lambda ax: plot_blocked(frame, ax=ax, title="Whose runs are blocked?"), size),
        "statuses": alone(lambda ax: plot_statuses(frame, ax=ax), (7.6, tall)),
        "bounds": alone(lambda ax: plot_bounds(nano, ax=ax), size),
    }


PICTURES = REAL | {name: one for end, count in made.COUNTS.items() for name, one in extremes(end, count).items()}

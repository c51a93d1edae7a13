"""Every plot against a stored picture, with a tolerance: small, so that fonts and versions may differ a little.

``HARNESS_LAB_PICTURES=write pytest tests/plots/test_pictures.py`` stores them anew; look at each one then.
"""

from __future__ import annotations

import io
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import style
from matplotlib.figure import Figure
from PIL import Image

import harness_lab as lab
from harness_lab import datasets, plots
from harness_lab.analyze import drift, floor_costs, pareto, spend_split, symptoms
from harness_lab.plots.board import binding_of
from harness_lab.plots.choice import plot_best, plot_front
from harness_lab.plots.run import plot_run
from harness_lab.plots.tradeoff import plot_lines
from harness_lab.settlements.quality import quality
from harness_lab.simulate import from_gallery

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "pictures"
TOLERANCE = 12.0
"""Root mean square over all pixels, of 255. Another figure in the picture gives 20 and more; another font below 10."""


@cache
def world() -> tuple[lab.Experiment, Any]:
    scene = from_gallery("deep-research")
    few = lab.compose(lab.tree_limits(1, 2, 8, max_wait_s=60), lab.shared_ledger(30, 2.0), name="few children")
    many = lab.shared_ledger(60, name="ledger")
    made = lab.Experiment(workload=scene.workload, provider=scene.provider, policies=(few, many), runs=60)
    return made, made.run(progress=False, backend="serial")


@cache
def twenty() -> pd.DataFrame:
    names = [f"policy {k} with a name that is really rather long" for k in range(20)]
    value = np.linspace(0.2, 0.9, 20)
    return pd.DataFrame(
        {"policy": names, "metric": "completed", "value": value, "low": value - 0.05, "high": value + 0.05, "unit": "",
         "maybe_best": value > 0.8}
    )  # fmt: skip


def runs() -> Any:
    return datasets.load_synthetic_runs()


def halves() -> tuple[pd.DataFrame, pd.DataFrame]:
    nodes = runs().nodes
    return nodes.iloc[:3000], nodes.iloc[3000:]


def ceiling(ax: Any, draw: Callable[..., Any]) -> None:
    choice = lab.ceiling(runs(), "cost", target=0.85)
    draw(
        choice.curve([*choice.curve()["ceiling"], choice.ceiling]).sort_values("ceiling"), ax=ax, chosen=choice.ceiling
    )


def run_of_events(ax: Any) -> None:
    found = lab.explain(world()[0], 1, policy="few children")
    plot_run(found.nodes, found.to_frame(), ax=ax, at=30)


def tables() -> dict[str, pd.DataFrame]:
    found = lab.run_table(world()[1].settlements)
    return {name: found[found["policy"] == name] for name in ("few children", "ledger")}


def costs(ax: Any) -> None:
    nodes = runs().nodes
    frame = floor_costs(nodes[nodes["agent"] == "worker"]).to_frame()
    plot_lines(frame, "floor", ("falsely_refused", "doomed_through"), ax=ax, mark=50_000, xlabel="floor, tokens")


PICTURES: dict[str, Callable[[Any], Any]] = {
    "ceiling-tradeoff": lambda ax: ceiling(ax, plots.plot_ceiling_tradeoff),
    "ceiling-curve": lambda ax: ceiling(ax, plots.plot_ceiling_curve),
    "incidence": lambda ax: lab.distribution(runs(), "cost_nusd").plot(ax=ax),
    "floors": lambda ax: lab.derive_floors(runs()).plot(ax=ax, asks=[5_000, 40_000]),
    "floor-costs": costs,
    "quality": lambda ax: quality(runs()).plot(ax=ax),
    "metric": lambda ax: plots.plot_metric(lab.compare(world()[1]).to_frame(), "spend", ax=ax),
    "metric-20": lambda ax: plots.plot_metric(twenty(), ax=ax),
    "differences": lambda ax: plots.plot_differences(lab.compare(world()[1]).differences(), "cost_nusd", ax=ax),
    "binding": lambda ax: plots.plot_binding(binding_of(tables()), ax=ax),
    "timeline": lambda ax: lab.explain(world()[0], 1, policy="few children").plot(ax=ax),
    "run": run_of_events,
    "spread": lambda ax: plots.plot_spread(
        {name: one["cost_nusd"].to_numpy(float) / 1e9 for name, one in tables().items()}, ax=ax
    ),
    "front": lambda ax: pareto(world()[1].settlements).plot(ax=ax),
    "best-20": lambda ax: plot_best(twenty(), ax=ax, metric="completed", filled="maybe best"),
    "split": lambda ax: plots.plot_split(spend_split(*halves()).to_frame(), ax=ax),
    "symptoms": lambda ax: plots.plot_symptoms(symptoms(runs()).to_frame(), ax=ax),
    "chances": lambda ax: plots.plot_chances(drift(*halves()).to_frame(), ax=ax),
    "estimates-none": lambda ax: plots.plot_estimates(twenty().head(0), "policy", ax=ax),
    "best-none": lambda ax: plot_best(twenty().head(0), ax=ax),
    "front-none": lambda ax: plot_front(twenty().head(0), ("completed", "cost_nusd"), ax=ax),
}  # fmt: skip


def drawn(draw: Callable[[Any], Any]) -> Image.Image:
    with style.context("default"), mpl.rc_context({"savefig.dpi": 40}):
        figure = Figure(figsize=(8, 5), layout="constrained")
        draw(figure.add_subplot())
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=40, metadata={"Software": None})
    return Image.open(buffer).convert("L")


@pytest.mark.parametrize("name", PICTURES)
def test_a_plot_looks_as_it_did_when_somebody_last_looked_at_it(name: str) -> None:
    found, path = drawn(PICTURES[name]), FOLDER / f"{name}.png"
    if os.environ.get("HARNESS_LAB_PICTURES") == "write":
        found.quantize(16).save(path, optimize=True)
    stored = Image.open(path).convert("L")
    assert stored.size == found.size
    apart = np.asarray(stored, dtype=float) - np.asarray(found, dtype=float)
    assert float(np.sqrt((apart**2).mean())) < TOLERANCE


def test_every_picture_that_is_stored_is_drawn() -> None:
    assert {path.stem for path in FOLDER.glob("*.png")} == set(PICTURES)

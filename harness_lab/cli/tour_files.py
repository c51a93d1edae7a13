"""The files that the tour leaves: tables, config, pictures, and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from harness_lab import files
from harness_lab.cli.tour_report import build_report
from harness_lab.plots.compare import plot_policies
from harness_lab.plots.distribution import plot_incidence
from harness_lab.plots.floors import plot_floors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness_lab.cli.tour import Findings

DPI = 150


def write_files(found: Findings, out: Path) -> Iterator[tuple[Path, str]]:
    """Write everything and yield each file with what it is."""
    yield found.records.to_parquet(out / "settlements.parquet"), "the records as read, one row a node, calls beside it"
    yield found.result.settlements.to_parquet(out / "simulated.parquet"), "every simulated node under every policy"
    yield found.config.write(out / "config.json"), "the tuned config, with evidence and provenance"
    pictures = draw_pictures(found)
    for name, (figure, what) in pictures.items():
        FigureCanvasAgg(figure)
        with files.replacing(out / f"{name}.png") as beside:
            figure.savefig(beside, format="png", dpi=DPI, facecolor="white")
        yield out / f"{name}.png", what
    report = build_report(found, pictures)
    yield report.write(out / "report.html"), "all of it on one page, in words; needs no network"


def draw_pictures(found: Findings) -> dict[str, tuple[Figure, str]]:
    """Draw the four pictures: name, figure, what it says."""
    return {
        "ceiling": (_ceiling(found), "runs lost against spend avoided, for every ceiling"),
        "floors": (_floors(found), "the six published settlements, their floor, and the asks below it"),
        "distribution": (_distribution(found), "what a run costs until it completes: recorded, and simulated"),
        "policies": (_policies(found), "three policies: completion, spend, waste, differences, binding limits"),
    }


def _ceiling(found: Findings) -> Figure:
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    found.choice.plot(ax=figure.add_subplot())
    return figure


def _floors(found: Findings) -> Figure:
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    rows = found.floors_of_six.to_frame()
    plot_floors(found.six.nodes, rows, ax=figure.add_subplot(), asks=list(found.authored))
    return figure


def _distribution(found: Findings) -> Figure:
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    recorded, simulated = found.recorded, found.simulated
    plot_incidence(
        recorded.curve(),
        ax=figure.add_subplot(),
        stopped=recorded.sample.amounts[recorded.sample.stopped],
        other=simulated.curve(),
        other_label="simulated, no limit",
        ceiling=found.choice.ceiling,
    )
    return figure


def _policies(found: Findings) -> Figure:
    comparison = found.comparison
    return plot_policies(
        comparison.to_frame(), comparison.differences(), comparison.binding, baseline=comparison.baseline
    )

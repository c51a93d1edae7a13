"""Panels in a real JupyterLab: a control is moved by keyboard, and the page shows what Python computes."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest
from panels_in_a_page import EXPLORE, RUNS, changed, key, quiet

import harness_lab as lab
from harness_lab import datasets
from harness_lab.analyze import floor_costs
from harness_lab.plots.quantities import percent
from harness_lab.simulate import from_gallery
from harness_lab.widgets import Settings

Open = Callable[..., Any]


def test_a_budget_is_moved_and_picture_and_figures_are_those_of_the_experiment(open_notebook: Open) -> None:
    page = open_notebook("explore.ipynb", EXPLORE.format(runs=60))
    page.locator(".hl-readout td").first.wait_for()
    changed(page, ".hl-explore-picture svg", key(page, ".hl-cost-usd .noUi-handle", "ArrowLeft"))
    result = Settings(cost_usd=0.75, calls=60).experiment(runs=60, seed=3).run(progress=False)
    done = (result.settlements.nodes["outcome"] == "completed").mean()
    page.wait_for_function("() => document.querySelector('.hl-readout').textContent.includes('60 pairs')")
    said = page.locator(".hl-readout td").first.text_content()
    assert said.startswith(percent(float(done)))
    assert said.endswith("n = 60")
    assert "60 pairs" in page.locator(".hl-readout thead").text_content()
    quiet(page)


def test_stop_ends_the_work_and_keeps_what_is_done(open_notebook: Open) -> None:
    page = open_notebook("stop.ipynb", EXPLORE.format(runs=20_000))
    page.wait_for_function("() => document.querySelector('.hl-status').textContent.includes('under way')")
    page.locator("button.hl-stop").click()
    page.wait_for_function("() => document.querySelector('.hl-status').textContent.includes('stopped')")
    said = page.locator(".hl-status").text_content()
    page.wait_for_timeout(500)
    assert page.locator(".hl-status").text_content() == said
    assert not said.startswith("20,000 of")
    quiet(page)


@pytest.mark.slow  # a figure of this machine and hour, not a law
def test_a_moved_slider_takes_at_most_twice_the_time_of_drawing(open_notebook: Open) -> None:
    page = open_notebook("latency.ipynb", EXPLORE.format(runs=2000) + DRAWN)
    page.locator("button.hl-stop").click()
    moves = []
    for count, name in enumerate(("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowRight") * 2):
        page.evaluate(WATCH)
        key(page, ".hl-cost-usd .noUi-handle", name)()
        page.wait_for_function("() => window.hlSeen > 0")
        moves.append(page.evaluate("() => (window.hlSeen - window.hlBegan) / 1000"))
        page.locator("button.hl-stop").click()
        page.locator("button.hl-draw").click()  # by turns, so that both have the same load beside them
        page.wait_for_function(DRAWINGS, arg=count)
    drawings = [float(one) for one in page.locator(".hl-drawn").text_content().split()]
    move, drawing = statistics.median(moves), statistics.median(drawings)
    print(f"median of {len(moves)} moves {move:.3f} s, of as many drawings {drawing:.3f} s: {move / drawing:.2f}")
    assert len(drawings) == len(moves)
    assert move <= 2 * drawing


DRAWINGS = "n => (document.querySelector('.hl-drawn').textContent.match(/[0-9.]+/g) ?? []).length > n"
DRAWN = """
import io, time
import matplotlib as mpl
from IPython.display import display
from ipywidgets import HTML, Button
from matplotlib.figure import Figure
from harness_lab import plots
drawn, draw = HTML(), Button(description="draw")
drawn.add_class("hl-drawn"), draw.add_class("hl-draw")
def measure(_button):
    ready = panel.board()
    began = time.perf_counter()
    figure = Figure(figsize=(10.5, 6.6), layout="constrained")
    with mpl.rc_context({"svg.fonttype": "none"}):  # as the panel's; with letters as shapes it takes longer
        plots.plot_board(*ready, figure=figure).savefig(io.BytesIO(), format="svg")
    drawn.value = f"{drawn.value} {time.perf_counter() - began:.4f}"
draw.on_click(measure)
display(panel, draw, drawn)
"""
"""What matplotlib alone needs for the figure that the panel shows at that moment, from ready data."""
WATCH = """() => {
    window.hlSeen = 0;
    const panel = document.querySelector('.hl-explore-picture');
    new MutationObserver((_, me) => { window.hlSeen = performance.now(); me.disconnect(); })
        .observe(panel, { childList: true, subtree: true });
    addEventListener('keydown', () => { window.hlBegan = performance.now(); }, { once: true, capture: true });
}"""


def test_a_floor_is_moved_and_both_its_costs_are_those_of_the_analysis(open_notebook: Open) -> None:
    code = "from harness_lab import datasets, widgets\nwidgets.floor_explorer(datasets.load_synthetic_runs())"
    page = open_notebook("floors.ipynb", code)
    changed(page, ".hl-floor-readout", lambda: page.locator(".hl-floor-agent select").select_option("worker"))
    changed(page, ".hl-floor-picture svg", key(page, ".hl-floor-slider .noUi-handle", "PageUp"))
    page.wait_for_timeout(300)
    said = page.locator(".hl-floor-readout").text_content()
    floor = int(said.split("A floor of ")[1].split(" tokens")[0].replace(",", ""))
    rows = datasets.load_synthetic_runs().nodes
    wanted = floor_costs(rows[rows["agent"] == "worker"], candidates=[floor]).frame.iloc[0]
    assert said.split("would have completed: ")[1].startswith(percent(float(wanted["falsely_refused"])))
    quiet(page)


def test_another_metric_is_chosen_and_the_comparison_says_its_figures(open_notebook: Open) -> None:
    page = open_notebook("compare.ipynb", RUNS + "widgets.compare(experiment.run(progress=False))")
    page.locator(".hl-compare-readout li").first.wait_for()
    changed(page, ".hl-compare-picture svg", lambda: page.locator(".hl-compare-metric select").select_option(index=1))
    scope: dict[str, Any] = {}
    exec(RUNS, scope)  # noqa: S102 - the same lines as in the notebook
    found = lab.compare(scope["experiment"].run(progress=False))
    assert str(found.policies[0].spend) in page.locator(".hl-compare-readout").text_content()
    page.locator(".hl-compare-policy button").nth(1).click()
    page.get_by_text("40 runs of ledger").wait_for()
    quiet(page)


def test_a_run_is_stepped_through_by_keyboard(open_notebook: Open) -> None:
    page = open_notebook("run.ipynb", RUNS + "widgets.run_viewer(experiment, 1, policy='few children')")
    page.locator(".hl-run-readout li").first.wait_for()
    changed(page, ".hl-run-readout", key(page, ".hl-run-step .noUi-handle", "ArrowRight"))
    scene = from_gallery("deep-research")
    few = lab.compose(lab.tree_limits(2, 2, 4), lab.shared_ledger(30, 2.0), name="few children")
    run = lab.Experiment(workload=scene.workload, provider=scene.provider, policies=(few,), runs=40)
    line = lab.explain(run, 1)._line(lab.explain(run, 1).to_frame().iloc[1].to_dict()).strip()
    assert line in page.locator(".hl-run-readout").text_content()
    changed(page, ".hl-run-picture svg", key(page, ".hl-run-step .noUi-handle", "PageUp"))
    page.locator(".hl-run-only select").select_option("refused")
    page.locator("button.hl-run-on").press("Enter")
    page.locator(".hl-run-readout", has_text="refused: max-concurrent").wait_for()  # moves before it may still come in
    quiet(page)

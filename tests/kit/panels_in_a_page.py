"""Panels in a page: the cells that show them, and how a test moves a control and waits for what it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

EXPLORE = """
from harness_lab.widgets import Settings, explore
panel = explore("coding-agent", settings=Settings(cost_usd=1.0, calls=60), runs={runs}, seed=3)
panel
"""
RUNS = """
import harness_lab as lab
from harness_lab import widgets
from harness_lab.simulate import from_gallery
scene = from_gallery("deep-research")
few = lab.compose(lab.tree_limits(2, 2, 4), lab.shared_ledger(30, 2.0), name="few children")
many = lab.shared_ledger(60, name="ledger")
experiment = lab.Experiment(workload=scene.workload, provider=scene.provider, policies=(few, many), runs=40)
"""


def changed(page: Any, selector: str, act: Callable[[], None]) -> None:
    """Do something and wait until what is shown there is something else."""
    before = page.locator(selector).first.inner_html()
    act()
    page.wait_for_function("([at, old]) => document.querySelector(at).innerHTML !== old", arg=[selector, before])


def key(page: Any, selector: str, name: str) -> Callable[[], None]:
    def press() -> None:
        page.locator(selector).first.focus()
        page.keyboard.press(name)

    return press


def quiet(page: Any) -> None:
    """No error in the console, nothing on standard error, nothing asked of other machines."""
    assert page.seen.errors == []
    assert page.seen.outside == []
    assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0


ALL = (
    RUNS
    + """
from harness_lab import datasets
from harness_lab.widgets import Settings
from IPython.display import display
runs = datasets.load_synthetic_runs()
explorer = widgets.explore("coding-agent", settings=Settings(cost_usd=1.0, calls=60), runs=60)
explorer.show_as.value = "Python"
display(explorer)
display(widgets.compare(experiment.run(progress=False)))
display(widgets.run_viewer(experiment, 1, policy="few children"))
display(widgets.floor_explorer(runs))
display(widgets.ceiling_explorer(runs))
display(widgets.quality(runs))
"""
)
PANELS = ("explore", "compare", "run-viewer", "floor-explorer", "ceiling-explorer", "quality")
"""Every panel, one below the other, and the class of each without its prefix."""

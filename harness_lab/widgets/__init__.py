"""Interactive panels for notebooks: pictures with controls. Nothing here needs a browser to be tested."""

from __future__ import annotations

from harness_lab.widgets.ceilings import CeilingExplorer, ceiling_explorer
from harness_lab.widgets.explore import Explorer, explore
from harness_lab.widgets.floors import FloorExplorer, floor_explorer
from harness_lab.widgets.panel import FigurePanel
from harness_lab.widgets.policies import PolicyPanel, compare
from harness_lab.widgets.quality import QualityPanel, quality
from harness_lab.widgets.run import RunViewer, run_viewer
from harness_lab.widgets.settings import Settings

__all__ = [
    "CeilingExplorer",
    "Explorer",
    "FigurePanel",
    "FloorExplorer",
    "PolicyPanel",
    "QualityPanel",
    "RunViewer",
    "Settings",
    "ceiling_explorer",
    "compare",
    "explore",
    "floor_explorer",
    "quality",
    "run_viewer",
]

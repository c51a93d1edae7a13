"""Interactive panels for notebooks: pictures with controls. Nothing here needs a browser to be tested."""

from __future__ import annotations

from harness_lab.widgets.ceilings import CeilingExplorer, ceiling_explorer
from harness_lab.widgets.explore import Explorer, explore
from harness_lab.widgets.panel import FigurePanel
from harness_lab.widgets.settings import Settings

__all__ = ["CeilingExplorer", "Explorer", "FigurePanel", "Settings", "ceiling_explorer", "explore"]

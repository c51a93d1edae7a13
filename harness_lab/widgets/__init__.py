"""Interactive panels for notebooks: pictures with controls. Nothing here needs a browser to be tested."""

from __future__ import annotations

from harness_lab.widgets.ceilings import CeilingExplorer, ceiling_explorer
from harness_lab.widgets.panel import FigurePanel

__all__ = ["CeilingExplorer", "FigurePanel", "ceiling_explorer"]

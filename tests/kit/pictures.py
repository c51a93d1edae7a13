"""A picture against a stored one, small and in grey, with a tolerance: fonts and versions may differ a little.

``HARNESS_LAB_PICTURES=write`` stores them anew; look at each one then.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib import style
from matplotlib.figure import Figure
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOLERANCE = 12.0
"""Root mean square over all pixels, of 255. Another figure in the picture gives 20 and more; another font below 10."""


def drawn(draw: Callable[[Any], Any]) -> Image.Image:
    """Draw on new axes, 8 by 5 inches."""
    with style.context("default"), mpl.rc_context({"savefig.dpi": 40}):
        figure = Figure(figsize=(8, 5), layout="constrained")
        draw(figure.add_subplot())
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=40, metadata={"Software": None})
    return Image.open(buffer).convert("L")


def far_from_stored(draw: Callable[[Any], Any], path: Path) -> float:
    """Return how far a picture is from the one in `path`; infinite where its size is another."""
    found = drawn(draw)
    if os.environ.get("HARNESS_LAB_PICTURES") == "write":
        path.parent.mkdir(exist_ok=True)
        found.quantize(16).save(path, optimize=True)
    stored = Image.open(path).convert("L")
    if stored.size != found.size:
        return float("inf")
    return float(np.sqrt(((np.asarray(stored, dtype=float) - np.asarray(found, dtype=float)) ** 2).mean()))

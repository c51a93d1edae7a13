"""Every plot against a stored picture, light and dark, with a tolerance: fonts and versions may differ a little.

``HARNESS_LAB_PICTURES=write pytest tests/plots/test_pictures.py`` stores them anew; look at each one then.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from gallery_of_pictures import PICTURES, REAL
from matplotlib import style
from matplotlib.figure import Figure
from PIL import Image

FOLDER = Path(__file__).parent / "pictures"
TOLERANCE = 12.0
"""Root mean square over all pixels, of 255. Another figure in the picture gives 20 and more; another font below 10."""
LOOKS = {"": "default", "-dark": "dark_background"}
STORED = {f"{name}{look}": (name, look) for look in LOOKS for name in (REAL if look else PICTURES)}


def drawn(name: str, look: str) -> Image.Image:
    with style.context(LOOKS[look]), mpl.rc_context({"savefig.dpi": 40}):
        picture = PICTURES[name]
        figure = Figure(figsize=picture.size, layout="constrained")
        picture.draw(figure)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=40, metadata={"Software": None})
    return Image.open(buffer).convert("RGB")


@pytest.mark.parametrize("stored", STORED)
def test_a_plot_looks_as_it_did_when_somebody_last_looked_at_it(stored: str) -> None:
    found, path = drawn(*STORED[stored]), FOLDER / f"{stored}.png"
    if os.environ.get("HARNESS_LAB_PICTURES") == "write":
        found.quantize(32, dither=Image.Dither.NONE).save(path, optimize=True)
    kept = Image.open(path).convert("RGB")
    assert kept.size == found.size
    apart = np.asarray(kept, dtype=float) - np.asarray(found, dtype=float)
    assert float(np.sqrt((apart**2).mean())) < TOLERANCE


def test_every_picture_that_is_stored_is_drawn() -> None:
    assert {path.stem for path in FOLDER.glob("*.png")} == set(STORED)

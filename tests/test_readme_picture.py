"""The first picture of the README and the sentence below it say what the shipped records say today."""

from __future__ import annotations

import io
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import style
from matplotlib.figure import Figure
from PIL import Image

import harness_lab as lab
from harness_lab import datasets, plots
from harness_lab.writing import dollars, percent

HOME = Path(__file__).parents[1]
PICTURE = HOME / "docs" / "pictures" / "ceiling.png"
if not (HOME / "README.md").is_file():
    pytest.skip("the README is not part of this installation", allow_module_level=True)


@cache
def choice() -> Any:
    return lab.ceiling(datasets.load_synthetic_runs(), "cost", target=0.85)


def drawn() -> Image.Image:
    found, buffer = choice(), io.BytesIO()
    curve = found.curve([*found.curve()["ceiling"], found.ceiling]).sort_values("ceiling")
    with style.context("default"):
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
        plots.plot_ceiling_tradeoff(curve, ax=figure.add_subplot(), chosen=found.ceiling)
        figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return Image.open(buffer).convert("RGB")


def test_the_sentence_says_the_figures_of_the_shipped_records() -> None:
    row = choice().curve([choice().ceiling]).iloc[0]
    text = " ".join((HOME / "README.md").read_text(encoding="utf-8").split())
    share, low, high = (percent(row[f"cut_share{end}"]) for end in ("", "_low", "_high"))
    assert (
        f"a limit of {dollars(choice().ceiling / 1e9)} a run would have cut {row['runs_cut']:.0f} of {row['n']:,.0f}"
        in text
    )
    assert f"({share} [{low}, {high}]; {row['delivered_cut']:.0f} of them had delivered)" in text
    assert (
        f"avoid {percent(row['avoided_share'])} of the spend, and {percent(row['sunk_share'])} of the spend is sunk"
        in text
    )


def test_the_picture_is_that_of_the_shipped_records() -> None:
    """``HARNESS_LAB_PICTURES=write`` stores it anew."""
    found = drawn()
    if os.environ.get("HARNESS_LAB_PICTURES") == "write":
        found.quantize(64, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    kept = Image.open(PICTURE).convert("RGB")
    assert kept.size == found.size
    apart = np.asarray(kept, dtype=float) - np.asarray(found, dtype=float)
    assert float(np.sqrt((apart**2).mean())) < 12

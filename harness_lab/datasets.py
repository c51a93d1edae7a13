"""The data that ship with the package: six published settlements, and a larger synthetic set with its truth.

>>> from harness_lab.datasets import load_six_settlements
>>> int(load_six_settlements().nodes["input_total"].min())
31211
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from harness_lab.errors import ReadError
from harness_lab.settlements import Settlements, read

__all__ = [
    "data_dir",
    "load_authored_budgets",
    "load_six_settlements",
    "load_synthetic_messy",
    "load_synthetic_runs",
    "load_synthetic_truth",
]

_MARK = "six_settlements.csv"


def data_dir() -> Path:
    """Return the folder of the shipped data: inside an installed package, or at the top of a checkout.

    Raises
    ------
    ReadError
        If neither is there.
    """
    package = Path(__file__).parent
    for folder in (package / "_data", package.parent / "data"):
        if (folder / _MARK).is_file():
            return folder
    raise ReadError("data", expected=f"a folder with {_MARK} in the package or beside it", got="none")


def load_six_settlements() -> Settlements:
    """Load the six published settlements of the pairing pi / tangle-router/glm-5.2.

    Six node rows, no call rows. Known for all: ``run``, ``node``, ``backend``, ``model``, ``input_total`` (31,211 to
    62,616 tokens), ``eligible`` with its reason, ``source``. Known for the lowest row only: ``source_status``
    (``down``), ``output`` (990), ``iterations`` (2), ``ask_tokens`` (8,000), the day of ``start_ns``. Outcomes are
    unknown, all other columns NA.

    Notes
    -----
    The lowest row is recorded as ``down``. Whatever rests on it has to say: without that row 32,296, n = 5.
    """
    return read(data_dir() / "six_settlements.csv", ids="kept")


def load_authored_budgets() -> tuple[int, ...]:
    """Load the four token budgets authored for children of that pairing: 2,000; 8,000; 12,000; 20,000."""
    with (data_dir() / "authored_budgets.csv").open(newline="", encoding="utf-8") as file:
        return tuple(int(row["ask_tokens"]) for row in csv.DictReader(file))


def load_synthetic_runs() -> Settlements:
    """Load the synthetic settlements: 2,400 runs, 6,360 nodes, 59,376 calls; nothing in them was recorded.

    Paths: ``lead`` (root, 2,400 nodes), ``worker`` and ``reviewer`` (children). Of the nodes 29 % were stopped by a
    ceiling (on cost; for a part of the leads on calls) that was drawn at random, 5 % failed, 3 % have unknown usage.
    ``user`` (60) and ``repo`` (24) shift the number of calls of all nodes of a run. Filled: identity, outcome, the
    token and money columns, ``calls``, ``delivered`` (15 % unknown), times, ``ceiling_calls``, ``ceiling_cost``, for
    children ``ask_calls``, ``ask_cost``.
    """
    return Settlements.from_parquet(data_dir() / "synthetic_runs.parquet")


def load_synthetic_messy() -> Settlements:
    """Load the small synthetic file with bad rows: 60 rows read, 54 kept, 5 set aside for five reasons, 1 duplicate."""
    return read(data_dir() / "synthetic_messy.csv", ids="kept")


def load_synthetic_truth() -> list[dict[str, Any]]:
    """Load what is true of the synthetic paths where no limit touches them, 30 records.

    Each has ``agent, backend, model, context, quantity, value, mc_error, method`` (``mc_error`` is one standard
    error, 0 where the parameters give the value). Quantities:

    - ``startup_cost``: smallest possible first prompt, tokens;
    - ``share`` of ``outcome`` among all nodes;
    - ``mean_calls`` among all nodes, failures up to where they fail;
    - ``quantile`` ``q`` of ``column`` among all: the smallest amount within which a share ``q`` of all nodes,
      failures in the denominator, would have completed.
    """
    text = (data_dir() / "synthetic_truth.json").read_text(encoding="utf-8")
    records: list[dict[str, Any]] = json.loads(text)
    return records

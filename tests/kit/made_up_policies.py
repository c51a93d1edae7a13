"""Made-up policies to draw: one or twenty, with long names, or none; figures of arithmetic, so that they never move."""

from __future__ import annotations

import numpy as np
import pandas as pd

COUNTS = {"1": 1, "20": 20, "none": 0}


def names(count: int) -> list[str]:
    """Return names that are really long, and among them one that looks like mathematics."""
    return [
        f"policy {k} at $0.{k:02d} with a name that is really rather long, longer than a line" for k in range(count)
    ]


def metrics(count: int) -> pd.DataFrame:
    """Return every metric of each policy, as a comparison has them."""
    one = {"completed": np.linspace(0.2, 0.9, count), "spend": np.linspace(0.3, 1.7, count)}
    one |= {"wasted": one["spend"] / 5, "cost_nusd": one["spend"]}
    return pd.concat([_rows(count, name, value, 0.06) for name, value in one.items()], ignore_index=True)


def differences(count: int) -> pd.DataFrame:
    """Return the differences to the first policy."""
    one = {"completed": np.linspace(0.0, -0.3, count), "cost_nusd": np.linspace(0.0, 1.1, count)}
    found = pd.concat([_rows(count, name, value, 0.04) for name, value in one.items()], ignore_index=True)
    return found.assign(n=400, identical=0, p_adjusted=0.01)


def front(count: int) -> pd.DataFrame:
    """Return completion against spend."""
    frame = pd.DataFrame({"policy": names(count), "place": "cannot be told"})
    for name, value in (("completed", np.linspace(0.2, 0.9, count)), ("cost_nusd", np.linspace(0.3, 1.7, count) ** 2)):
        frame = frame.assign(**{name: value, f"{name}_low": value * 0.93, f"{name}_high": value * 1.07})
    return frame


def runs(count: int) -> dict[str, pd.DataFrame]:
    """Return the runs of each policy: a third ends at one of seven limits."""
    codes = [
        "cost-exhausted",
        "steps-exhausted",
        "max-concurrent",
        "max-depth",
        "deadline",
        "max-starts",
        "below-floor",
    ]
    spend = np.linspace(1e8, 2e9, 60)
    stopped = [codes[k % 7] if k % 3 == 0 else None for k in range(60)]
    one = pd.DataFrame({"stopped_by": stopped, "outcome": ["exhausted" if s else "completed" for s in stopped]})
    return {name: one.assign(cost_nusd=spend * (1 + k / 10)) for k, name in enumerate(names(count))}


def estimates(count: int) -> pd.DataFrame:
    """Return rows of figures with intervals."""
    value = np.linspace(0.02, 0.9, count)
    return pd.DataFrame(
        {"policy": names(count), "value": value, "low": value * 0.8, "high": np.minimum(value * 1.2, 1)}
    )


def best(count: int) -> pd.DataFrame:
    """Return means of which some may be the best."""
    return _rows(count, "completed", np.linspace(0.2, 0.9, count), 0.05).assign(
        unit="", maybe_best=np.linspace(0.2, 0.9, count) > 0.8
    )


def tree(count: int) -> pd.DataFrame:
    """Return the nodes of one run, each below the one before."""
    seconds = np.arange(count, dtype=np.float64)
    outcomes = ["completed", "exhausted", "timed_out", "cancelled", "failed", "denied", "awaiting_approval", "unknown"]
    return pd.DataFrame(
        {"node": [str(k) for k in range(count)], "agent": names(count), "depth": np.minimum(np.arange(count), 6),
         "parent": [None if k == 0 else str(k - 1) for k in range(count)], "start_ns": seconds * 5e9,
         "duration_ns": (2 * count - seconds) * 5e9, "outcome": [outcomes[k % 8] for k in range(count)],
         "stopped_by": [None if k % 8 in (0, 7) else "reservation-pool-exhausted" for k in range(count)]}
    )  # fmt: skip


def _rows(count: int, metric: str, value: np.ndarray, half: float) -> pd.DataFrame:
    ends = {"value": value, "low": value - half, "high": value + half}
    return pd.DataFrame({"policy": names(count), "metric": metric, **ends})


def named(count: int) -> pd.DataFrame:
    """Return one row a name with the columns of every picture that draws names beside amounts."""
    value, text = np.linspace(0.3, 1.7, count), "margin 20 %, a month loses with chance 0.04 %"
    amounts = {"value": value, "low": value * 0.9, "high": value * 1.1, "worst_low": value * 0.8}
    prices = {"cost": value, "price": value * 1.25, "text": text}
    prices |= {"worst_high": np.where(np.arange(count) % 3, np.nan, 2.0)}
    shares = {f"share_of_{name}": value / (2 + k) for k, name in enumerate(("runs", "spend", "blocked"))}
    words = {"status": [("holds", "stale", "unknown")[k % 3] for k in range(count)]}
    words |= {"marked": [k % 2 == 1 for k in range(count)]}
    same = {column: names(count) for column in ("name", "group", "what")}
    return pd.DataFrame({**same, **amounts, **prices, **shares, **words})

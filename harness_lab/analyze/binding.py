"""Which limit stopped what, how often: the binding limits of each policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import text
from harness_lab.analyze.runs import root_rows
from harness_lab.stats.shares import wilson

if TYPE_CHECKING:
    from collections.abc import Sequence


def binding_frame(nodes: pd.DataFrame, policies: Sequence[str], *, confidence: float = 0.95) -> pd.DataFrame:
    """Count the first binding limit of roots and of all nodes that did not complete.

    Parameters
    ----------
    nodes : DataFrame
        The nodes.
    policies : sequence of str
        Policies, in the order wanted.
    confidence : float, default 0.95
        Confidence of Wilson's interval of each share; nodes of one run are no independent trials, so for nodes the
        interval is too narrow and is left NA where a run has several nodes.

    Returns
    -------
    DataFrame
        ``policy``, ``level`` (root or node), ``stopped_by`` (reason code), ``count``, ``of`` (roots or nodes of the
        policy), ``share``, ``low``, ``high``. No rows for a policy that stopped nothing.
    """
    roots = nodes.iloc[root_rows(nodes)]
    rows: list[dict[str, object]] = []
    for level, frame in (("root", roots), ("node", nodes)):
        policy, code = text(frame, "policy"), text(frame, "stopped_by")
        single = level == "root" or len(roots) == len(nodes)
        for name in policies:
            mine = code[policy == name]
            found, counts = np.unique(mine[mine != ""].astype(str), return_counts=True)
            low, high = wilson(counts, max(mine.size, 1), confidence=confidence)
            rows += [
                {
                    "policy": name, "level": level, "stopped_by": str(found[place]), "count": int(counts[place]),
                    "of": mine.size, "share": counts[place] / mine.size,
                    "low": low[place] if single else np.nan, "high": high[place] if single else np.nan,
                }
                for place in np.argsort(-counts, kind="stable")
            ]  # fmt: skip
    names = ["policy", "level", "stopped_by", "count", "of", "share", "low", "high"]
    return pd.DataFrame(rows, columns=names)

"""Which limit stopped what, how often: the binding limits of each policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness_lab.analyze.frames import text_codes
from harness_lab.stats.shares import wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.analyze.runs import Trees


def binding_frame(
    nodes: pd.DataFrame, policies: Sequence[str], trees: Trees, *, confidence: float = 0.95
) -> pd.DataFrame:
    """Count the first binding limit of roots and of all nodes that did not complete.

    Parameters
    ----------
    nodes : DataFrame
        The nodes.
    policies : sequence of str
        Policies, in the order wanted.
    trees : Trees
        Which nodes belong together.
    confidence : float, default 0.95
        Confidence of Wilson's interval of each share; nodes of one run are no independent trials, so for nodes the
        interval is too narrow and is left NA where a run has several nodes.

    Returns
    -------
    DataFrame
        ``policy``, ``level`` (root or node), ``stopped_by`` (reason code), ``count``, ``of`` (roots or nodes of the
        policy), ``share``, ``low``, ``high``. No rows for a policy that stopped nothing.
    """
    (policy, known), (code, words) = (text_codes(nodes, name) for name in ("policy", "stopped_by"))
    named = np.asarray([place for place in np.argsort(words) if words[place]], dtype=np.intp)
    rows: list[dict[str, object]] = []
    for level, at in (("root", trees.root), ("node", slice(None))):
        cells = np.bincount(policy[at] * len(words) + code[at], minlength=len(known) * len(words))
        single = level == "root" or trees.single
        for name in policies:
            mine = cells.reshape(len(known), len(words))[known.index(name)]
            of, found = int(mine.sum()), named[mine[named] > 0]
            low, high = wilson(mine[found], max(of, 1), confidence=confidence)
            rows += [
                {
                    "policy": name, "level": level, "stopped_by": words[found[place]], "count": int(mine[found[place]]),
                    "of": of, "share": mine[found[place]] / of,
                    "low": low[place] if single else np.nan, "high": high[place] if single else np.nan,
                }
                for place in np.argsort(-mine[found], kind="stable")
            ]  # fmt: skip
    names = ["policy", "level", "stopped_by", "count", "of", "share", "low", "high"]
    return pd.DataFrame(rows, columns=names)

"""The checks of the quality report: what is odd in a table, and what each oddity does to which analysis."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from harness_lab.clock import NS_PER_S
from harness_lab.settlements.settlements import unknown_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import pandas as pd

    from harness_lab.settlements.settlements import Settlements

ABSURD_NUSD_PER_TOKEN: Final = 1_000_000
"""A thousand dollars per million tokens: dearer than any list price."""
ABSURD_NS: Final = 30 * 86_400 * NS_PER_S
"""A node that took longer than thirty days."""
FIRST_NS: Final = 1_577_836_800 * NS_PER_S
"""2020: no record of an agent is older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a reader of the table should know.

    Parameters
    ----------
    code : str
        Its name, kebab-case, stable.
    what : str
        What was found, in words.
    rows, of : int
        How many of how many; `of` 0: it is not counted in rows.
    effect : str
        What it does to which analysis.
    detail : str
        Figures or examples; may be empty.
    """

    code: str
    what: str
    rows: int
    of: int
    effect: str
    detail: str = ""

    @property
    def share(self) -> float | None:
        """`rows` over `of`; None where it is not counted in rows."""
        return self.rows / self.of if self.of else None

    def __str__(self) -> str:
        share = "" if self.share is None else f" ({self.share:.1%})"
        detail = f" [{self.detail}]" if self.detail else ""
        return f"{self.what}: {self.rows:,}{share}{detail}. {self.effect}"


class _Check(NamedTuple):
    code: str
    what: str
    effect: str
    rows: Callable[[pd.DataFrame], pd.Series]
    among: Callable[[pd.DataFrame], pd.Series] = lambda nodes: nodes["run"].notna()


def _roots(nodes: pd.DataFrame) -> pd.Series:
    return nodes["parent"].isna()


def _tokens(nodes: pd.DataFrame) -> pd.Series:
    return nodes["input_total"] + nodes["output"]


def _started(nodes: pd.DataFrame) -> pd.Series:
    return nodes["outcome"] != "denied"


_CHECKS: Final = (
    _Check(
        "unknown-usage", "token usage unknown or incomplete",
        "Floors and quantiles of tokens rest on the other rows; if the longest runs are the ones without counts, they "
        "are too low.",
        unknown_usage,
    ),
    _Check(
        "unknown-cost", "cost unknown",
        "Ceilings and waste in dollars rest on the other rows, and sums are lower bounds; recompute() prices what has "
        "tokens.",
        lambda nodes: nodes["cost_nusd"].isna(),
        _started,
    ),
    _Check(
        "unknown-outcome", "outcome unknown",
        "Such rows are neither completed nor stopped: ceilings and completion leave them out, floors take them only "
        "where a person said so.",
        lambda nodes: nodes["outcome"] == "unknown",
    ),
    _Check(
        "unknown-delivery", "delivery unknown",
        "Whether a cheap run was a good one cannot be said; join labels=FILE.",
        lambda nodes: nodes["delivered"].isna(),
        _roots,
    ),
    _Check(
        "unknown-start", "start unknown",
        "No drift, no staleness of floors, no price of the day for these rows.",
        lambda nodes: nodes["start_ns"].isna(),
        _started,
    ),
    _Check(
        "absurd-cost", "cost above a thousand dollars per million tokens",
        "One such row can carry a mean, a total and a tail; look at its unit (cents? a running total?).",
        lambda nodes: nodes["cost_nusd"] > ABSURD_NUSD_PER_TOKEN * _tokens(nodes).clip(lower=1),
    ),
    _Check(
        "cost-zero", "cost 0 with tokens used",
        "Clients write 0 for a model that they cannot price, or for a subscription: means and ceilings in dollars are "
        "too low.",
        lambda nodes: (nodes["cost_nusd"] == 0) & (_tokens(nodes) > 0),
    ),
    _Check(
        "prompt-without-output", "prompt without output",
        "A failed or cut call, or a count that was not written: floors of the whole and prices of output are too low.",
        lambda nodes: (nodes["input_total"] > 0) & (nodes["output"] == 0),
    ),
    _Check(
        "placeholder-output", "output counts that are placeholders or cut short",
        "Output, total and computed cost are lower bounds; read(..., placeholders='estimated') estimates them from the "
        "length of the answers.",
        lambda nodes: nodes["placeholder_calls"] > 0,
    ),
    _Check(
        "blended", "only one mixed token figure",
        "Such rows have no prompt tokens: they are evidence for no floor in input-total and have no computed cost.",
        lambda nodes: nodes["blended_tokens"].notna() & nodes["input_total"].isna(),
    ),
    _Check(
        "impossible-time", "started before 2020 or in the future",
        "Milliseconds or local time taken for seconds in UTC: drift, staleness and the price of the day are wrong.",
        lambda nodes: nodes["policy"].isna() & ((nodes["start_ns"] < FIRST_NS) | (nodes["start_ns"] > _tomorrow())),
    ),
    _Check(
        "absurd-duration", "took more than thirty days",
        "Quantiles of time and time limits are governed by it; a session that was left open is no run.",
        lambda nodes: nodes["duration_ns"] > ABSURD_NS,
    ),
    _Check(
        "inferred-context", "starting context inferred, not recorded",
        "A floor may mix configurations that only look alike.",
        lambda nodes: nodes["context_inferred"].fillna(value=False),
    ),
    _Check(
        "unknown-context", "starting context unknown",
        "Its floors match only asks that name no context, and may mix configurations.",
        lambda nodes: nodes["context"].isna(),
        _started,
    ),
    _Check(
        "overspent", "used more than a ceiling allowed",
        "The ceiling was soft: what it would have cut is not what it did cut.",
        lambda nodes: nodes["overspent"].fillna(value=False),
    ),
)  # fmt: skip


def _tomorrow() -> int:
    return time.time_ns() + 86_400 * NS_PER_S


def row_findings(nodes: pd.DataFrame) -> Iterator[Finding]:
    """Yield what was found in the rows, each with its count."""
    for check in _CHECKS:
        among = check.among(nodes).to_numpy(dtype=bool)
        bad = check.rows(nodes).fillna(value=False).to_numpy(dtype=bool) & among
        if bad.any():
            yield Finding(
                code=check.code,
                what=check.what,
                rows=int(bad.sum()),
                of=int(among.sum()),
                effect=check.effect,
                detail=_where(nodes, bad),
            )


def _where(nodes: pd.DataFrame, bad: np.ndarray) -> str:
    """Say how the rows concerned ended, if that differs from the rest: what is missing may be missing for a reason."""
    outcome = nodes["outcome"]
    if bad.all() or outcome[bad].nunique() == 0:
        return ""
    inside, outside = outcome[bad].value_counts(normalize=True), outcome[~bad].value_counts(normalize=True)
    gap = inside.sub(outside, fill_value=0).astype(float)
    most = str(gap.idxmax())
    if int(bad.sum()) < 5 or gap.max() < 0.2:
        return ""
    return f"{inside.get(most, 0.0):.0%} of them {most}, {outside.get(most, 0.0):.0%} of the others"


def table_findings(settlements: Settlements) -> Iterator[Finding]:
    """Yield what was found in the table as a whole: reading, units, contexts, times without a zone."""
    nodes, report = settlements.nodes, settlements.report
    yield from _reading(settlements)
    units = nodes["record_unit"].dropna().value_counts()
    if len(units) > 1:
        yield Finding(
            code="mixed-units",
            what="rows stand for different things",
            rows=len(units),
            of=0,
            effect="Analyses refuse them together: keep one with where(record_unit=...).",
            detail=", ".join(f"{unit} {rows:,}" for unit, rows in units.items()),
        )
    yield from _contexts(nodes)
    naive = [note for note in report.notes if "without a zone" in note]
    if naive:
        yield Finding(
            code="naive-times",
            what="kinds of times without a zone",
            rows=len(naive),
            of=0,
            effect="Where they were read as UTC they may be off by the zone's hours: durations hold, the price of the "
            "day and the load of an hour do not.",
            detail="; ".join(naive[:3]),
        )


def _reading(settlements: Settlements) -> Iterator[Finding]:
    report = settlements.report
    if report.set_aside:
        yield Finding(
            code="set-aside",
            what="records set aside",
            rows=len(report.set_aside),
            of=report.read,
            effect="What they used is in no figure; if they are the long or the failed runs, everything is too rosy.",
            detail="; ".join(f"{count:,} x {kind}" for kind, count in list(report.reasons().items())[:3]),
        )
    if report.duplicates:
        yield Finding(
            code="duplicates",
            what="records that said the same again",
            rows=report.duplicates,
            of=report.read,
            effect="They count once; sums over the files themselves are higher.",
        )


def _contexts(nodes: pd.DataFrame) -> Iterator[Finding]:
    paths = nodes[nodes["context"].notna()].groupby(["agent", "backend", "model"], dropna=False)["context"].nunique()
    mixed = paths[paths > 1]
    if len(mixed):
        yield Finding(
            code="mixed-contexts",
            what="paths (agent, backend, model) with several starting contexts",
            rows=len(mixed),
            of=len(paths),
            effect="Floors are kept apart by context; what groups by model alone mixes configurations.",
            detail=f"up to {int(mixed.max()):,} contexts on one path",
        )

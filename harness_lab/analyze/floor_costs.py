"""Both costs of a floor: runs that it refuses though they would have completed, doomed runs that it lets through."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.evidence import eligible, unit_values
from harness_lab.analyze.floors import Floors, first_prompts, floors
from harness_lab.analyze.frames import Bools, Data, Floats, calls_of, nodes_of, numbers, text
from harness_lab.analyze.grouping import AUTO, choose_cluster
from harness_lab.analyze.parts import Parts, ask_by
from harness_lab.errors import InputError
from harness_lab.outcome import UNITS
from harness_lab.stats.estimates import Estimate, check_confidence, percent
from harness_lab.stats.shares import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from harness_lab.outcome import Unit

_CANDIDATES: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FloorCosts:
    """What each floor would have refused and let through.

    Parameters
    ----------
    frame : DataFrame
        One row per floor: ``floor`` (tokens), with ``_low`` and ``_high``: ``falsely_refused`` (share of the runs that
        would have completed within their ask and are refused) and ``doomed_through`` (share of the runs that would not
        have, and are let through); ``refused``, ``refused_good`` (counts); ``n_good, n_doomed``.
    asks : str
        Where asks came from: ``recorded``, ``given``, or ``own use`` (each run asks for exactly what it used).
    unit : str
        What is counted.
    cluster : str or None
        Column whose rows were taken as alike.
    left_out : int
        Rows of unknown usage, outcome or ask.
    parts : Parts or None
        The same for each group of `by`, and which groups cannot be answered.
    """

    frame: pd.DataFrame
    asks: str
    unit: str
    cluster: str | None
    left_out: int
    parts: Parts[FloorCosts] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return the curve, or that of each group."""
        return self.frame.copy() if self.parts is None else self.parts.to_frame()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both costs against the floor; return the axes."""
        from harness_lab.plots.tradeoff import plot_lines

        return plot_lines(
            self.frame, "floor", ("falsely_refused", "doomed_through"), ax=ax,
            xlabel=f"floor, tokens ({self.unit})",
            ylabel="share of the runs it is wrong about",
        )  # fmt: skip

    def summary(self) -> str:
        """Return a few floors in plain text, group by group."""
        if self.parts is not None:
            return self.parts.summary()
        good, doomed = (int(self.frame[name].iloc[0]) for name in ("n_good", "n_doomed"))
        lines = [
            f"{good + doomed:,} runs ({good:,} would have completed within their ask, {doomed:,} not), "
            f"asks: {self.asks}; {self.left_out:,} left out"
            f"{'' if self.cluster is None else f'; clustered by {self.cluster}'}."
        ]
        for place in sorted({0, len(self.frame) // 4, len(self.frame) // 2, len(self.frame) - 1}):
            row = self.frame.iloc[place]
            parts = [
                f"{words} {_shown(row[name], row[f'{name}_low'], row[f'{name}_high'])}"
                for name, words in (("falsely_refused", "falsely refuses"), ("doomed_through", "lets doomed through"))
            ]
            lines.append(f"- floor {row['floor']:,.0f} tokens: {'; '.join(parts)}")
        return "\n".join(lines)

    def explain(self) -> str:
        """Return what the curve means and what to do next."""
        own = (
            " No asks are recorded, so each run is taken to ask for exactly what it used: that is the cost of a floor "
            "to asks that are well made."
            if self.asks == "own use"
            else ""
        )
        return (
            "A floor refuses every ask below it. It is wrong about a run that would have completed within its ask, and "
            f"about one that would not have and is let through.{own} A floor at the smallest settlement is wrong about "
            "no recorded run of its own path, which says little about the next one.\n"
            "Next: floors(...) for what n supports; by path, since a floor of one path refuses wrongly on another."
        )

    def __repr__(self) -> str:
        return f"FloorCosts({len(self.frame)} floors, asks: {self.asks})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def floor_costs(
    settlements: Data, *, candidates: npt.ArrayLike | None = None, ask: int | None = None,
    unit: Unit = "input-total", confidence: float = 0.95, by: str | Sequence[str] | None = None,
    cluster: str | None = AUTO,
) -> FloorCosts:  # fmt: skip
    """Show both costs of each floor.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes of one path (or of those that one floor would serve).
    candidates : array_like of float, optional
        Floors, tokens; amounts that were used (and asked for) if not given.
    ask : int, optional
        What every run asks for, tokens. Default: the recorded ask in the unit's channel where there is one; else each
        run's own use.
    unit : {"input-total", "total", "newly-presented"}
        What is counted.
    confidence : float, default 0.95
        Of each interval.
    by : str or sequence of str, optional
        Columns whose groups are answered by themselves, in ``parts``; a run belongs to the group of its root.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    FloorCosts
    """
    check_confidence(confidence)
    if unit not in UNITS:
        raise InputError("unit", expected=f"one of {', '.join(UNITS)}", got=unit)
    nodes = nodes_of(settlements)
    used = unit_values(nodes, unit)
    asked, source = _asks(nodes, used, ask, unit)
    outcome = text(nodes, "outcome")
    known = ~np.isnan(used) & ~np.isnan(asked) & ~np.isin(outcome, ("unknown", "denied", "awaiting_approval"))
    if not known.any():
        raise InputError("settlements", expected="runs of known usage, outcome and ask", got="none")
    good = (eligible(nodes) & (used <= asked))[known]
    name, labels = choose_cluster(nodes[known], used[known], cluster)
    at = _floors(np.concatenate([used[known], asked[known]]), candidates)
    rows = [_row(asked[known], good, labels, float(floor), confidence) for floor in at]
    parts = ask_by(settlements, by, lambda rows: floor_costs(
        rows, candidates=candidates, ask=ask, unit=unit, confidence=confidence, cluster=cluster))  # fmt: skip
    return FloorCosts(
        frame=pd.DataFrame(rows), asks=source, unit=unit, cluster=name, left_out=int((~known).sum()), parts=parts
    )


def first_call_floors(
    settlements: Data, *, by: Sequence[str] = ("agent", "backend", "model", "context"), cluster: str | None = AUTO
) -> Floors:
    """Derive floors from first calls alone: what each path sends before it works.

    Parameters
    ----------
    settlements : Settlements
        With call rows; every node whose first prompt is known is evidence, however it ended.
    by, cluster
        As for :func:`harness_lab.analyze.floors.floors`.

    Returns
    -------
    Floors
        Unit ``input-total``; no floor for a path without call rows.
    """
    nodes = nodes_of(settlements)
    first = first_prompts(nodes, calls_of(settlements))
    known = first.notna()
    evidence = nodes[known].drop(columns="delivered", errors="ignore")
    evidence = evidence.assign(input_total=first[known], outcome="completed", usage_known=True, eligible=True)
    return floors(evidence, by=by, cluster=cluster)


def _asks(nodes: pd.DataFrame, used: Floats, ask: int | None, unit: Unit) -> tuple[Floats, str]:
    if ask is not None:
        if isinstance(ask, bool) or ask < 0:
            raise InputError("ask", expected="tokens >= 0", got=ask)
        return np.full(used.size, float(ask)), "given"
    name = f"ask_{UNITS[unit]}"
    if name in nodes.columns and nodes[name].notna().any():
        return numbers(nodes, name), "recorded"
    return used, "own use"


def _floors(values: Floats, candidates: npt.ArrayLike | None) -> Floats:
    if candidates is not None:
        at = np.unique(np.asarray(candidates, dtype=np.float64))
        if not at.size or not np.isfinite(at).all() or at[0] < 0:
            raise InputError("candidates", expected="floors >= 0, tokens", got=candidates)
        return at
    at = np.unique(values)
    if at.size <= _CANDIDATES:
        return at
    return np.unique(np.quantile(values, np.linspace(0, 1, _CANDIDATES), method="inverted_cdf"))


def _row(
    asked: Floats, good: Bools, labels: npt.NDArray[np.int64] | None, floor: float, confidence: float
) -> dict[str, object]:
    refused = asked < floor
    row: dict[str, object] = {"floor": floor}
    for name, who, hit in (("falsely_refused", good, refused), ("doomed_through", ~good, ~refused)):
        clusters = None if labels is None else labels[who]
        found: Estimate = share(hit[who], confidence=confidence, clusters=clusters)
        ends = [np.nan if end is None else end for end in (found.value, found.low, found.high)]
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    counts = {"refused": int(refused.sum()), "refused_good": int((refused & good).sum())}
    return row | counts | {"n_good": int(good.sum()), "n_doomed": int((~good).sum())}


def _shown(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return "nobody (there are none)"
    return f"{percent(value)}{', no interval' if np.isnan(low) else f' [{percent(low)}, {percent(high)}]'}"

"""Prices that change with time: what each date's prices make of a ceiling, a flat price and a period's budget."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.ceilings import ceiling
from harness_lab.analyze.flat_price import break_even_runs, flat_price
from harness_lab.analyze.grouping import AUTO, choose_cluster
from harness_lab.analyze.parts import ask_by
from harness_lab.analyze.period_budget import budget_of_costs
from harness_lab.analyze.price_changes_result import PriceChanges, PricedDate
from harness_lab.analyze.prices import reprice
from harness_lab.analyze.runs import run_table
from harness_lab.analyze.sample import take
from harness_lab.errors import InputError
from harness_lab.stats.estimates import Estimate, Interval, NotEstimable, check_confidence
from harness_lab.stats.means import AMOUNT, mean
from harness_lab.stats.paired import paired_difference
from harness_lab.stats.shares import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.analyze.frames import Data, Floats, Ints
    from harness_lab.pricing import PriceTable

_NO_BUDGET: Final = "no budget was given"


def price_changes(
    settlements: Data, tables: Sequence[PriceTable], *, target: float = 0.95, margin: float = 0.2,
    price_usd: float | None = None, month_runs: int = 1000, budget_usd: float | None = None,
    period_runs: int | None = None, period: tuple[str, str] | None = None, fee_usd: float | None = None,
    by: str | Sequence[str] | None = None, confidence: float = 0.95, seed: int = 0, cluster: str | None = AUTO,
) -> PriceChanges:  # fmt: skip
    """Price the recorded tokens by the prices of several dates, and say what each date does to what was decided.

    Parameters
    ----------
    settlements : Settlements or DataFrame
        The nodes; call rows beside them, if there are any, are what is priced.
    tables : sequence of PriceTable
        Two or more, each with its ``date`` (from which day its prices hold), ascending.
    target : float, default 0.95
        Share of runs that shall complete within a cost ceiling.
    margin : float, default 0.2
        Wanted margin of a flat price.
    price_usd : float, optional
        The flat price that stays while prices move. Default: the one that the first date gives for the margin.
    month_runs : int
        Runs of a month, for the chance of a month's loss.
    budget_usd, period_runs : float, int, optional
        A budget of a period and the runs that the period brings; both or neither.
    period : (str, str), optional
        First and last day of the period, ISO format: prices then change within it, on their dates. Default: the
        period is taken whole under each date's prices.
    fee_usd : float, optional
        A fixed fee of a period to be held against paying per token.
    by : str or sequence of str, optional
        Columns whose groups are asked apart.
    confidence : float, default 0.95
        Of each interval.
    seed : int
        Of the resampling.
    cluster : str or None, default "auto"
        As for :func:`harness_lab.analyze.distribution.distribution`.

    Returns
    -------
    PriceChanges

    Raises
    ------
    InputError
        If a date is missing or out of order, or no run has known tokens and a price in every table.

    Notes
    -----
    Price effect only: the recorded tokens stay what they were. The same runs are priced at every date, so changes are
    paired.
    """
    check_confidence(confidence)
    days = _days(tables)
    if (budget_usd is None) != (period_runs is None):
        raise InputError("budget_usd, period_runs", expected="both or neither", got=(budget_usd, period_runs))
    inside = _inside(days, period)
    priced = [reprice(settlements, table, confidence=confidence, cluster=cluster) for table in tables]
    runs = run_table(settlements)
    usd = np.stack([one.runs["repriced_usd"].to_numpy(dtype=np.float64) for one in priced])
    known = ~np.isnan(usd).any(axis=0)
    if not known.any():
        raise InputError("settlements", expected="runs with a price in every table", got="none")
    rest: dict[str, Any] = {
        "target": target, "margin": margin, "month_runs": month_runs, "confidence": confidence, "seed": seed,
        "cluster": cluster, "fee_usd": fee_usd, "budget_usd": budget_usd, "period_runs": period_runs,
    }  # fmt: skip
    judge = _Judge(runs[known].reset_index(drop=True), usd[:, known], price_usd=price_usd, **rest)
    return PriceChanges(
        dates=tuple(judge.at(place, day, table) for place, (day, table) in enumerate(zip(days, tables, strict=True))),
        target=target, margin=margin, price_usd=judge.price, ceiling_usd=judge.ceiling_usd, confidence=confidence,
        shares=priced[-1].shares, over_period=judge.over(*inside), period=period, budget_usd=budget_usd,
        n=int(known.sum()), unknown=int((~known).sum()), recorded=priced[0].recorded, notes=priced[-1].notes,
        beside=priced[-1].beside,
        parts=ask_by(settlements, by, lambda rows: price_changes(
            rows, tables, price_usd=price_usd, period=period, **rest,
        )),
    )  # fmt: skip


def _days(tables: Sequence[PriceTable]) -> list[date]:
    days = []
    for table in tables:
        try:
            days.append(date.fromisoformat(table.date or ""))
        except ValueError:
            raise InputError("tables", expected="a date (YYYY-MM-DD) in each table", got=table.date) from None
    if len(days) < 2 or any(one >= other for one, other in pairwise(days)):
        raise InputError("tables", expected="two or more of ascending dates", got=[str(day) for day in days])
    return days


def _inside(days: list[date], period: tuple[str, str] | None) -> tuple[Ints, Floats]:
    """Return which dates' prices a period sees, and from which place of it on each of them holds."""
    if period is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    try:
        first, last = (date.fromisoformat(day) for day in period)
    except ValueError:
        raise InputError("period", expected="first and last day (YYYY-MM-DD)", got=period) from None
    if not days[0] <= first <= last:
        expected = f"first and last day, from {days[0]} on, where prices are known"
        raise InputError("period", expected=expected, got=period)
    start = np.asarray([(day - first).days / ((last - first).days + 1) for day in days])
    seen = np.flatnonzero(start < 1)
    seen = seen[int((start <= 0).sum()) - 1 :]
    return seen, np.maximum(start[seen], 0.0)


class _Judge:
    """Asks the same questions at each date; the first date's answers are what is kept while prices move."""

    def __init__(self, runs: pd.DataFrame, usd: Floats, *, price_usd: float | None, **asked: Any) -> None:
        self._runs, self._usd, self._asked = runs, usd, asked
        self._labels = choose_cluster(runs, usd[0], asked["cluster"])[1]
        first = self._table(0)
        self._flat = {name: asked[name] for name in ("margin", "month_runs", "confidence", "seed", "cluster")}
        self.price = price_usd if price_usd is not None else flat_price(first, **self._flat).price_usd
        chosen = ceiling(first, target=asked["target"], confidence=asked["confidence"], cluster=asked["cluster"])
        self.ceiling_usd = None if chosen.ceiling is None else chosen.ceiling * 1e-9

    def at(self, place: int, day: date, table: PriceTable) -> PricedDate:
        """Return every figure under one date's prices."""
        confidence, cluster = self._asked["confidence"], self._asked["cluster"]
        runs = self._table(place)
        cost = mean(self._usd[place], confidence=confidence, clusters=self._labels, unit="$", within=AMOUNT)
        moved = paired_difference(
            self._usd[0], self._usd[place], confidence=confidence, clusters=self._labels, unit="$"
        ).difference  # fmt: skip
        judged = None if self.price is None else flat_price(runs, price_usd=self.price, **self._flat)
        chosen = ceiling(runs, target=self._asked["target"], confidence=confidence, cluster=cluster)
        fee = self._asked["fee_usd"]
        return PricedDate(
            day=day.isoformat(), source=table.source, cost=cost, change=moved,
            ceiling=chosen.bound.scaled(1e-9, unit="$"), within=self._within(runs),
            flat_price_usd=flat_price(runs, **self._flat).price_usd,
            margin=_none("no price") if judged is None else judged.expected_margin,
            loss_month=_none("no price") if judged is None else judged.loss_month,
            may_rise=_may_rise(cost, self.price), exceeded=self._exceeded(self._usd[[place]], np.zeros(1)),
            break_even_runs=_none("no fee was given")
            if fee is None
            else break_even_runs(runs, fee_usd=fee, confidence=confidence, cluster=cluster),
        )  # fmt: skip

    def over(self, inside: Ints, starts: Floats) -> Estimate:
        """Return the chance that a period, in which prices change at some places, exceeds its budget."""
        if not inside.size:
            return _none("no period was given")
        return self._exceeded(self._usd[inside], starts)

    def _exceeded(self, usd: Floats, starts: Floats) -> Estimate:
        if self._asked["budget_usd"] is None:
            return _none(_NO_BUDGET)
        return budget_of_costs(
            usd, starts, self._labels, budget_usd=self._asked["budget_usd"], period_runs=self._asked["period_runs"],
            confidence=self._asked["confidence"], seed=self._asked["seed"],
        ).exceeded  # fmt: skip

    def _within(self, runs: pd.DataFrame) -> Estimate:
        """Return the share of all runs that complete within the first date's ceiling, at these prices."""
        if self.ceiling_usd is None:
            return _none("no ceiling at the first date")
        sample = take(runs, "cost_nusd", cluster=self._asked["cluster"])
        done = sample.completed & (sample.amounts <= round(self.ceiling_usd * 1e9))
        return share(done, confidence=self._asked["confidence"], clusters=sample.labels, method="share completed")

    def _table(self, place: int) -> pd.DataFrame:
        nusd = pd.array(np.round(self._usd[place] * 1e9).astype(np.int64), dtype="Int64")
        return self._runs.assign(cost_nusd=nusd, cost_known=True, known_cost_nusd=nusd)


def _none(reason: str) -> Estimate:
    return Estimate(value=None, interval=NotEstimable(reason=reason), n=0, method="not asked")


def _may_rise(cost: Estimate, price: float | None) -> Estimate:
    """Return by which share all prices may rise until a run costs what it brings."""
    if price is None or not cost.value:
        return _none("no price" if price is None else "runs that cost nothing")
    interval: Interval | NotEstimable = cost.interval
    if isinstance(interval, Interval):
        high = np.inf if interval.low <= 0 else price / interval.low - 1
        interval = Interval(
            low=price / interval.high - 1, high=high, confidence=interval.confidence, method=interval.method
        )  # fmt: skip
    return Estimate(
        value=price / cost.value - 1, interval=interval, n=cost.n, method="price over mean cost",
        clusters=cost.clusters, effective_n=cost.effective_n,
    )  # fmt: skip

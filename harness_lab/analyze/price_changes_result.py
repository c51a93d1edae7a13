"""What prices that change with time do to a ceiling, a flat price and a budget."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from harness_lab.analyze.chances import chance_text
from harness_lab.stats.estimates import Estimate, percent, with_unit
from harness_lab.stats.notes import notes_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from harness_lab.analyze.parts import Parts

_FIGURES: Final = {
    "cost": "$ per run", "change": "$ per run", "ceiling": "$", "within": "share", "margin": "share of the price",
    "loss_month": "chance", "may_rise": "share", "exceeded": "chance", "break_even_runs": "runs",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedDate:
    """The figures under the prices of one date.

    Parameters
    ----------
    day, source : str
        From when the prices hold (ISO format), and where they come from.
    cost, change : Estimate
        Mean cost of a run, dollars; and the paired change against the first date.
    ceiling : Estimate
        Cost within which the target share completes; its upper end is the ceiling, dollars.
    within : Estimate
        Share of all runs that complete within the first date's ceiling.
    flat_price_usd : float or None
        The flat price for the margin under these prices.
    margin, loss_month : Estimate
        Margin of the kept flat price, and the chance that a month of it loses.
    may_rise : Estimate
        By which share all prices may rise from here until a run costs what the kept flat price brings: the break-even
        against per-token pricing; below 0 it has been passed.
    exceeded : Estimate
        Chance that a period's budget is exceeded if the whole period has these prices.
    break_even_runs : Estimate
        Runs a period from which the fixed fee is cheaper than paying per token.
    """

    day: str
    source: str
    cost: Estimate
    change: Estimate
    ceiling: Estimate
    within: Estimate
    flat_price_usd: float | None
    margin: Estimate
    loss_month: Estimate
    may_rise: Estimate
    exceeded: Estimate
    break_even_runs: Estimate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PriceChanges:
    """The same runs under the prices of several dates.

    Parameters
    ----------
    dates : tuple of PricedDate
        Ascending.
    target, margin, confidence : float
        What was asked for.
    price_usd, ceiling_usd, budget_usd : float or None
        What is kept while prices move: flat price and cost ceiling of the first date (or the price given), and the
        period's budget.
    shares : DataFrame
        ``model, kind, share, low, high`` at the last date: a price that rises by 10 % makes spend a tenth of its share
        dearer.
    over_period : Estimate
        Chance that the budget is exceeded in a period in which prices change on their dates.
    period : (str, str) or None
        That period.
    n, unknown : int
        Runs; and runs left out because tokens or a price of some date are unknown.
    recorded : Estimate
        Mean spend per run as recorded, dollars.
    notes : tuple of str
        What has to be said of the prices.
    beside : str
        How the runs ended and whether they delivered, as recorded.
    parts : Parts or None
        The same for each group.
    """

    dates: tuple[PricedDate, ...]
    target: float
    margin: float
    confidence: float
    price_usd: float | None
    ceiling_usd: float | None
    budget_usd: float | None
    shares: pd.DataFrame
    over_period: Estimate
    period: tuple[str, str] | None
    n: int
    unknown: int
    recorded: Estimate
    notes: tuple[str, ...]
    beside: str = ""
    parts: Parts[PriceChanges] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per date and figure: ``day, figure, unit`` and the estimate's fields; group in front."""
        if self.parts is not None:
            return self.parts.to_frame()
        rows = []
        for one in self.dates:
            for name, unit in _FIGURES.items():
                rows.append({"day": one.day, "figure": name, "unit": unit, **getattr(one, name).record()})
        return pd.DataFrame(rows)

    def may_rise_alone(self) -> pd.DataFrame:
        """Return how far each single price may rise until the kept flat price has no margin.

        Returns
        -------
        DataFrame
            ``model, kind, share`` of the last date's spend, and ``may_rise`` (share; NaN: no price is kept; below 0:
            the margin is gone already).
        """
        rise = self.dates[-1].may_rise.value
        alone = np.nan if rise is None else rise / self.shares["share"]
        return self.shares[["model", "kind", "share"]].assign(may_rise=alone)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean cost of a run over time against the kept flat price; see ``plots.plot_price_changes``."""
        from harness_lab.plots import plot_price_changes

        frame = pd.DataFrame([{"day": one.day, **one.cost.record()} for one in self.dates])
        return plot_price_changes(frame, ax=ax, price_usd=self.price_usd)

    def summary(self) -> str:
        """Return each date's figures, what they do to what was kept, and where it breaks even."""
        if self.parts is not None:
            return self.parts.summary()
        left = f"; {self.unknown:,} run(s) of unknown tokens or price left out" if self.unknown else ""
        lines = [f"{self.n:,} runs under the prices of {len(self.dates)} dates; price effect only{left}."]
        lines += [self.beside] if self.beside else []
        first = self.dates[0]
        for one in self.dates:
            lines.append(f"{one.day} ({one.source}): mean cost of a run {one.cost}{self._moved(one, first)}")
            lines += [f"- {line}" for line in self._kept(one)]
        lines += self._period()
        rise = self.dates[-1].may_rise
        if rise.value is not None:
            lines.append(
                f"Break-even: from {self.dates[-1].day} on all prices together may move by {_share(rise)} until a run "
                f"costs the {with_unit(self.price_usd or 0.0, '$')} that it brings."
            )
        return notes_below("\n".join([*lines, *(f"Note: {note}." for note in self.notes)]))

    def explain(self) -> str:
        """Return what the figures mean and what to do next."""
        return (
            "The recorded tokens are priced by each date's table, the same runs at every date, so changes are paired. "
            "Ceiling and flat price of the first date are kept, and each later date says what has become of them. The "
            "tokens stay what they were: people who see a price change use another model, and a cheaper one takes "
            "other steps.\n"
            "Next: may_rise_alone() says which single price it hangs on; write the date of the price table into the "
            "config (TunedConfig.prices), and hold it against later records (check_config)."
        )

    def _moved(self, one: PricedDate, first: PricedDate) -> str:
        if one is first:
            same = "" if self.recorded.value is None else f"; recorded {with_unit(self.recorded.value, '$')}"
            return same
        part = (
            "" if not first.cost.value or one.change.value is None else f" ({one.change.value / first.cost.value:+.1%})"
        )
        return f"; change {one.change}{part}"

    def _kept(self, one: PricedDate) -> list[str]:
        needed = "declined" if one.ceiling.high is None else with_unit(one.ceiling.high, "$")
        lines = [f"ceiling for {percent(self.target)} of runs: {needed}{self._within(one)}"]
        if one.margin.value is not None and self.price_usd is not None:
            now = "" if one.flat_price_usd is None else f"; {with_unit(one.flat_price_usd, '$')} would keep it"
            lines.append(
                f"{with_unit(self.price_usd, '$')} a run leaves a margin of {_share(one.margin)} (aimed at "
                f"{percent(self.margin)}{now}); a month loses with chance {chance_text(one.loss_month)}"
            )
        if one.exceeded.value is not None:
            lines.append(f"a whole period at these prices exceeds its budget with chance {chance_text(one.exceeded)}")
        if one.break_even_runs.value is not None:
            lines.append(f"the fixed fee is cheaper than paying per token from {one.break_even_runs} on")
        return lines

    def _within(self, one: PricedDate) -> str:
        if one.within.value is None or self.ceiling_usd is None:
            return ""
        kept = with_unit(self.ceiling_usd, "$")
        return f"; {percent(one.within.value)} complete within the {kept} of {self.dates[0].day}"

    def _period(self) -> list[str]:
        if self.period is None or self.over_period.value is None:
            return []
        days = f"{self.period[0]} to {self.period[1]}"
        return [
            f"From {days}, prices changing on their dates: budget exceeded with chance {chance_text(self.over_period)}."
        ]

    def __repr__(self) -> str:
        return f"PriceChanges({', '.join(one.day for one in self.dates)}; n = {self.n:,})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def _share(one: Estimate) -> str:
    ends = "" if one.low is None or one.high is None else f" [{one.low:+.1%}, {one.high:+.1%}]"
    return f"{one.value:+.1%}{ends}"

"""The provider's own figures against the records, by day and model: what the records miss."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError
from harness_lab.settlements.model_usage import unpacked
from harness_lab.settlements.settlements import Settlements
from harness_lab.usage import NUSD_PER_USD

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

_DAY_NS: Final = 86_400 * NS_PER_S
_KEY: Final = ["day", "model"]
UNKNOWN: Final = "unknown"

_WRITES: Final = ("usage_input_tokens_cache_write_5m", "usage_input_tokens_cache_write_1h")

_WRITTEN: Final = "cache_writes"


def _cache_writes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Add up cache writes, which the export counts apart by their lifetime."""
    told = [int(str(row[name])) for name in _WRITES if str(row.get(name)).isdecimal()]
    return {**row, _WRITTEN: sum(told) if told else None}


BILLS: Final[Mapping[str, Mapping[str, str]]] = {
    "openai-costs": {
        "record_unit": "=key-day", "start": "start_time", "model": "line_item", "cost_usd": "amount.value",
    },
    "openai-usage": {
        "record_unit": "=key-day", "start": "start_time", "model": "model", "input_total": "input_tokens",
        "cache_read": "input_cached_tokens", "output": "output_tokens", "calls": "num_model_requests",
    },
    "anthropic-usage": {
        "record_unit": "=key-day", "start": "usage_date_utc", "model": "model_version",
        "input_fresh": "usage_input_tokens_no_cache", "cache_read": "usage_input_tokens_cache_read",
        "cache_write": _WRITTEN, "cache_write_1h": _WRITES[1], "output": "usage_output_tokens",
    },
    "anthropic-costs": {
        "record_unit": "=key-day", "start": "usage_date_utc", "model": "model", "cost_usd": "cost_usd",
    },
    "day-model-cost": {"record_unit": "=key-day", "start": "day", "model": "model", "cost_usd": "cost_usd"},
}  # fmt: skip
"""Column maps of common exports, by name. Exports change: where a column is called otherwise, give a map of your own
(``{"start": ..., "model": ..., "cost_usd": ...}``)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Reconciled:
    """A bill and the records side by side. Made by :func:`reconcile`.

    Parameters
    ----------
    table : DataFrame
        One row per day and model: ``day`` (YYYY-MM-DD, UTC), ``model``, ``billed_nusd`` (NA: the bill has no cost),
        ``recorded_nusd`` (sum of what is known; NA: nothing recorded), ``missing_nusd`` (billed less recorded, where a
        bill exists and more was billed), ``billed_tokens``, ``recorded_tokens`` (input and output; NA: unknown),
        ``rows_without_cost`` (records of that day and model whose cost is unknown).
    undated : int
        Records without a start, compared with no day.
    span : tuple of str or None
        First and last day of the bill; records outside are not compared.
    """

    table: pd.DataFrame
    undated: int
    span: tuple[str, str] | None

    @property
    def billed_usd(self) -> float:
        """All that was billed, dollars."""
        return int(self.table["billed_nusd"].sum()) / NUSD_PER_USD

    @property
    def missing_usd(self) -> float:
        """What was billed beyond the records, summed over days and models, dollars."""
        return int(self.table["missing_nusd"].sum()) / NUSD_PER_USD

    @property
    def covered(self) -> float | None:
        """Share of the bill that the records explain; None: nothing was billed in dollars."""
        return 1 - self.missing_usd / self.billed_usd if self.billed_usd else None

    @property
    def tokens_covered(self) -> float | None:
        """Recorded over billed tokens, each day and model at most whole; None: the bill counts no tokens."""
        both = self.table[self.table["billed_tokens"].fillna(0) > 0]
        seen = both[["billed_tokens", "recorded_tokens"]].fillna(0).min(axis=1).sum()
        return float(seen) / float(both["billed_tokens"].sum()) if len(both) else None

    @property
    def days(self) -> int:
        """Pairs of day and model on the bill."""
        return int(self.table["on_bill"].sum())

    @property
    def days_missing(self) -> int:
        """Pairs of day and model for which more was billed than recorded."""
        return int((self.table["missing_nusd"] > 0).sum())

    def to_frame(self) -> pd.DataFrame:
        """Return the table by day and model (a copy)."""
        return self.table.copy()

    def by_model(self) -> pd.DataFrame:
        """Return one row per model: ``model, billed_usd, recorded_usd, missing_usd, days``."""
        grouped = self.table.groupby("model", sort=True)
        sums = grouped[["billed_nusd", "recorded_nusd", "missing_nusd"]].sum() / NUSD_PER_USD
        sums.columns = pd.Index(["billed_usd", "recorded_usd", "missing_usd"])
        return sums.assign(days=grouped.size()).reset_index()

    def summary(self) -> str:
        """Return a few lines: how much of the bill the records explain, and where they miss most."""
        if self.span is None:
            return "the bill has no rows: nothing to compare"
        lines = [f"bill of {self.span[0]} to {self.span[1]}, {self.days:,} pair(s) of day and model"]
        if self.covered is not None:
            lines.append(
                f"billed ${self.billed_usd:,.2f}, of which the records miss ${self.missing_usd:,.2f}: "
                f"they cover {self.covered:.1%}"
            )
        if self.tokens_covered is not None:
            lines.append(f"of the billed tokens the records cover {self.tokens_covered:.1%}")
        worst: Any = self.table[self.table["missing_nusd"] > 0].nlargest(3, "missing_nusd").itertuples()
        lines += [f"  {row.day} {row.model}: ${row.missing_nusd / NUSD_PER_USD:,.2f} missing" for row in worst]
        bare = int(self.table["rows_without_cost"].sum())
        if bare:
            lines.append(f"  {bare:,} record(s) have no cost: recompute(settlements).fill() first")
        if self.undated:
            lines.append(f"  {self.undated:,} record(s) have no start and are compared with no day")
        return "\n".join(lines)

    def explain(self) -> str:
        """Return what the comparison means, what it does not, and what to do next."""
        return (
            "What the provider billed is held against the recorded cost of the same day (UTC) and model. Missing is "
            "billed less recorded where more was billed: other clients, subagents or keys without records, retries, "
            "or a price above the recorded one. Where more was recorded than billed (a discount, another zone's day), "
            "nothing is missing and nothing is credited to other days.\n"
            "A call that began before midnight and ended after it may stand on either day; compare whole months before "
            "you act on one day.\n"
            "Next: quality(settlements, bill=...) puts the figure into the report."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        figures = ("billed_usd", "missing_usd", "covered", "tokens_covered", "days", "days_missing", "undated", "span")
        return {**{name: getattr(self, name) for name in figures}, "table": self.table}

    def __repr__(self) -> str:
        share = "no cost on the bill" if self.covered is None else f"{self.covered:.1%} covered"
        return f"Reconciled({self.days:,} day-models, {share})"

    def _repr_html_(self) -> str:
        table = self.by_model().to_html(index=False, escape=True)
        return f"<p><b>{escape(repr(self))}</b></p><pre>{escape(self.summary())}</pre>{table}"


def reconcile(
    settlements: Settlements,
    bill: Settlements | str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | str | None = None,
    models: Mapping[str, str] | None = None,
) -> Reconciled:
    """Hold a provider's usage or cost export against the recorded spend, by day and model.

    Parameters
    ----------
    settlements : Settlements
        The records. Calls are used where there are any (their own day, their own model), else nodes.
    bill : path or Settlements
        The export (CSV, JSON lines, Parquet), or a table that was read from it.
    columns : mapping or str, optional
        For a path: field → column of the export (``start``, ``model``, ``cost_usd`` and token fields), or the name of
        one of :data:`BILLS`.
    models : mapping, optional
        Name on the bill → name in the records, where they differ.

    Returns
    -------
    Reconciled
        What the records miss is its ``missing_usd`` and ``covered``.

    Raises
    ------
    InputError, ReadError
        If the export cannot be read with these columns, or none of its rows has a day.

    Examples
    --------
    >>> records = Settlements.from_columns({"run": ["r"], "node": "0", "model": "m", "start_ns": 0,
    ...     "cost_nusd": 600_000_000})
    >>> bill = Settlements.from_columns({"run": ["b"], "node": "0", "model": "m", "start_ns": 0,
    ...     "cost_nusd": 1_000_000_000})
    >>> round(reconcile(records, bill).covered, 3)
    0.6
    """
    billed = bill if isinstance(bill, Settlements) else _read(bill, columns)
    listed = _days(billed.nodes, models or {})
    listed = listed[listed["day"].notna()]
    if listed.empty and len(billed.nodes):
        raise InputError("bill", expected="a start (day) in its rows: map the field start", got="none in any row")
    mine = _days(_recorded(settlements), {})
    undated = int(mine["day"].isna().sum())
    span = (str(listed["day"].min()), str(listed["day"].max())) if len(listed) else None
    if span is not None:
        mine = mine[(mine["day"] >= span[0]) & (mine["day"] <= span[1])]
    return Reconciled(table=_side_by_side(listed, mine), undated=undated, span=span)


def _read(bill: str | os.PathLike[str], columns: Mapping[str, str] | str | None) -> Settlements:
    from harness_lab.settlements.read import read
    from harness_lab.settlements.readers.presets import Preset

    if isinstance(columns, str):
        if columns not in BILLS:
            raise InputError("columns", expected=f"a column map or one of {', '.join(sorted(BILLS))}", got=columns)
        columns = BILLS[columns]
        if _WRITTEN in columns.values():
            columns = Preset(columns, required=("usage_date_utc", "model_version"), prepare=_cache_writes)
    return read(bill, columns=columns, ids="kept")


def _recorded(settlements: Settlements) -> pd.DataFrame:
    """Return call rows where there are any, and the nodes that have none."""
    nodes, calls = settlements.nodes, settlements.calls
    nodes = unpacked(nodes[nodes["outcome"] != "denied"])
    if calls is None or calls["cost_nusd"].isna().all():
        return nodes
    without = ~pd.MultiIndex.from_frame(nodes[["run", "node"]]).isin(pd.MultiIndex.from_frame(calls[["run", "node"]]))
    names = ["model", "served_model", "start_ns", "cost_nusd", "input_total", "output"]
    starts = nodes.drop_duplicates(["run", "node"]).set_index(["run", "node"])["start_ns"]
    begun = starts.reindex(pd.MultiIndex.from_frame(calls[["run", "node"]])).array
    dated = calls.assign(start_ns=calls["start_ns"].fillna(pd.Series(begun, index=calls.index)))
    return pd.concat([dated[names], nodes.loc[without, names]], ignore_index=True)


def _days(rows: pd.DataFrame, models: Mapping[str, str]) -> pd.DataFrame:
    """Return day, model, cost and tokens of each row."""
    day = pd.to_datetime(rows["start_ns"] // _DAY_NS * _DAY_NS, unit="ns").dt.strftime("%Y-%m-%d")
    named = rows["served_model"].fillna(rows["model"]).fillna(UNKNOWN)
    return pd.DataFrame(
        {
            "day": day.astype("string"),
            "model": named.map(lambda name: models.get(str(name), str(name))).astype("string"),
            "cost": rows["cost_nusd"],
            "tokens": rows["input_total"] + rows["output"],
        }
    ).reset_index(drop=True)


def _side_by_side(billed: pd.DataFrame, mine: pd.DataFrame) -> pd.DataFrame:
    bill = billed.groupby(_KEY, sort=True)[["cost", "tokens"]].sum(min_count=1)
    bill = bill.rename(columns={"cost": "billed_nusd", "tokens": "billed_tokens"}).assign(on_bill=True)
    grouped = mine.groupby(_KEY, sort=True)
    ours = grouped[["cost", "tokens"]].sum(min_count=1)
    ours = ours.rename(columns={"cost": "recorded_nusd", "tokens": "recorded_tokens"})
    ours = ours.assign(rows_without_cost=mine["cost"].isna().groupby([mine["day"], mine["model"]]).sum())
    both = bill.join(ours, how="outer").reset_index()
    both["on_bill"] = both["on_bill"].astype("boolean").fillna(value=False)
    gap = both["billed_nusd"] - both["recorded_nusd"].fillna(0)
    both["missing_nusd"] = gap.clip(lower=0)
    both["rows_without_cost"] = both["rows_without_cost"].fillna(0)
    counts = ("billed_nusd", "recorded_nusd", "missing_nusd", "billed_tokens", "recorded_tokens", "rows_without_cost")
    return both[[*_KEY, *counts, "on_bill"]].astype(dict.fromkeys(counts, "Int64"))

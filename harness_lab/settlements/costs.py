"""Recorded cost and cost at list prices, side by side: per call, each at the price of its own date.

A sum of calls reaches price tiers that no call of it reached, so only calls are priced by tier; a node without call
rows is priced on its totals at the first tier, and the result says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.errors import InputError
from harness_lab.pricing import PriceTable
from harness_lab.settlements._pricing import NO_PRICE, Priced, price_rows
from harness_lab.settlements.model_usage import unpacked
from harness_lab.usage import NUSD_PER_USD

if TYPE_CHECKING:
    from harness_lab.settlements.settlements import Settlements

_KEY: Final = ["run", "node"]
_SHOWN: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Recomputed:
    """What records say they cost, beside what their tokens cost at list prices. Made by :func:`recompute`.

    Parameters
    ----------
    rows : DataFrame
        One row per call, and one per node (and model) that has no call rows: ``run, node, call``, ``call_row`` (its
        row in the calls table; NA: a node), ``model`` (the one that answered, else the one asked for), ``basis``
        ("call", "node totals", or "node totals, first tier": a lower bound, because the model's price depends on the
        size of each prompt), ``recorded_nusd, recomputed_nusd`` (Int64 nano-dollars; NA: unknown), ``price_date``
        (YYYY-MM-DD), ``reason`` (why there is no price; NA: there is one).
    nodes : DataFrame
        One row per node: ``run, node, model`` (several are joined by " + "), ``recorded_nusd``, ``recomputed_nusd``
        (the sum over its calls; NA if one of them could not be priced).
    source : str
        Where the prices come from.
    undated : int
        Rows without a time, priced at today's prices.
    assumed : int
        Rows that do not say how long their cache writes live, priced as five minutes (the default, and the cheaper).
    """

    rows: pd.DataFrame
    nodes: pd.DataFrame
    source: str
    undated: int = 0
    assumed: int = 0
    _settlements: Any = field(default=None)

    @property
    def unpriced(self) -> pd.DataFrame:
        """What could not be priced, most rows first.

        One row per ``model`` (NA: not named) and ``reason``, with ``rows`` and ``recorded_nusd`` (the sum of what is
        recorded for them).
        """
        bare = self.rows[self.rows["reason"].notna()]
        grouped = bare.groupby(["model", "reason"], dropna=False, sort=True)["recorded_nusd"]
        found = grouped.agg(["size", "sum"]).reset_index()
        found = found.rename(columns={"size": "rows", "sum": "recorded_nusd"})
        return found.sort_values("rows", ascending=False, kind="stable", ignore_index=True)

    @property
    def unpriced_models(self) -> tuple[str, ...]:
        """Models that the prices do not know, sorted."""
        none = self.rows.loc[self.rows["reason"] == NO_PRICE, "model"]
        return tuple(sorted(none.dropna().unique()))

    @property
    def ratio(self) -> float | None:
        """Recorded over recomputed, of all rows (or nodes) for which both are known; None: there are none."""
        both = self._both()
        return _ratio(int(both["recorded_nusd"].sum()), int(both["recomputed_nusd"].sum())) if len(both) else None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per model.

        Returns
        -------
        DataFrame
            ``model``; ``rows`` and ``priced`` (calls, and nodes without call rows); ``compared`` (those of which both
            figures are known) on ``level`` ("call", or "node" where only nodes have a recorded cost); of these
            ``recorded_usd``, ``recomputed_usd`` and ``ratio`` (recorded over recomputed, NA: nothing to compare);
            ``lowest`` and ``highest`` (of the single rows' ratios); ``recomputed_all_usd`` (of all priced rows);
            ``exact`` (False: some rows were priced on totals at the first tier, a lower bound).
        """
        both = self._both()
        listed = [
            _line(model, part, both[_same(both["model"], model)])
            for model, part in self.rows.groupby("model", dropna=False, sort=True)
        ]
        joint = both[~both["model"].isin(self.rows["model"].dropna().unique()) & both["model"].notna()]
        listed += [_line(model, self.rows.iloc[:0], part) for model, part in joint.groupby("model", sort=True)]
        return pd.DataFrame(listed, columns=list(_LINE))

    def _both(self) -> pd.DataFrame:
        """Rows with both figures; where calls have no recorded cost of their own, their nodes."""
        rows = self.rows[self.rows["recorded_nusd"].notna() & self.rows["recomputed_nusd"].notna()]
        nodes = self.nodes[self.nodes["recorded_nusd"].notna() & self.nodes["recomputed_nusd"].notna()]
        seen = pd.MultiIndex.from_frame(nodes[_KEY]).isin(pd.MultiIndex.from_frame(rows[_KEY]))
        nodes = nodes[~seen].assign(level="node")
        level = pd.Series(np.where(rows["call_row"].isna(), "node", "call"), index=rows.index, dtype="string")
        columns = ["model", "level", "recorded_nusd", "recomputed_nusd"]
        return pd.concat([rows.assign(level=level)[columns], nodes[columns]], ignore_index=True)

    def summary(self) -> str:
        """Return a few lines: how much was priced, the ratio by model, and what could not be priced."""
        priced = int(self.rows["recomputed_nusd"].notna().sum())
        lines = [f"{priced:,} of {len(self.rows):,} row(s) priced with {self.source}"]
        found: Any = self.to_frame().itertuples(index=False)
        for line in found:
            if line.compared:
                figures = f"recorded ${line.recorded_usd:,.2f}, recomputed ${line.recomputed_usd:,.2f}"
                ratio = "none" if pd.isna(line.ratio) else f"{line.ratio:.3f}"
                lines.append(f"  {_named(line.model)}: {figures}, ratio {ratio} ({line.compared:,} {line.level}(s))")
            elif line.priced:
                lines.append(f"  {_named(line.model)}: recomputed ${line.recomputed_all_usd:,.2f}, no cost recorded")
        bare: Any = list(self.unpriced.itertuples())
        lines += [f"  not priced: {row.rows:,} x {_named(row.model)}, {row.reason}" for row in bare[:_SHOWN]]
        if len(bare) > _SHOWN:
            lines.append(f"  not priced: {len(bare) - _SHOWN:,} more kinds, in unpriced")
        rough = int((self.rows["basis"].str.endswith("first tier") & self.rows["recomputed_nusd"].notna()).sum())
        if rough:
            lines.append(f"  {rough:,} node(s) have only totals, of models priced by prompt size: a lower bound")
        if self.assumed:
            lines.append(f"  {self.assumed:,} row(s) do not say how long cache writes live: priced as five minutes")
        if self.undated:
            lines.append(f"  {self.undated:,} row(s) have no time and are priced at today's prices")
        return "\n".join(lines)

    def explain(self) -> str:
        """Return what the two figures mean, what they do not, and what to do next."""
        return (
            "Recomputed is what the recorded tokens cost at list prices, each call at the price of its own date and at "
            "the tier that its own prompt reaches. The ratio is recorded over recomputed: 1.000 says that the record "
            "uses the same prices and the same counts.\n"
            "A ratio below 1 may be a discount, a batch or a subscription, above 1 a surcharge, a tool that bills "
            "by use, or calls that the record leaves out. A ratio far off says that the tokens are counted in another "
            "way than the reader takes them, or are placeholders. A recorded price is not the provider's bill: "
            "reconcile() holds the records against it.\n"
            "Next: fill() puts the recomputed cost where none was recorded."
        )

    def fill(self) -> Settlements:
        """Return the settlements with a cost where none was recorded (``cost_source`` "computed").

        Recorded costs stay as they are. A node is filled only if all of its calls could be priced.
        """
        from harness_lab.settlements.settlements import Settlements

        given: Settlements = self._settlements
        nodes = _filled(given.nodes, self.nodes["recomputed_nusd"])
        calls = given.calls
        if calls is not None:
            mine = self.rows[self.rows["call_row"].notna()].sort_values("call_row")
            before = calls["cost_nusd"].isna()
            calls = _filled(calls, mine["recomputed_nusd"].reset_index(drop=True))
            new = before & calls["cost_nusd"].notna()
            calls["price_date"] = calls["price_date"].mask(new, mine["price_date"].reset_index(drop=True))
        return Settlements(nodes=nodes, calls=calls, report=given.report)

    def __repr__(self) -> str:
        ratio = "nothing to compare" if self.ratio is None else f"ratio {self.ratio:.3f}"
        return f"Recomputed({len(self.rows):,} rows, {ratio}, {len(self.unpriced_models)} model(s) without a price)"

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(index=False, escape=True, na_rep="unknown")
        return f"<p><b>{escape(repr(self))}</b></p>{table}<pre>{escape(self.summary())}</pre>"


_LINE: Final = (
    "model", "rows", "priced", "compared", "level", "recorded_usd", "recomputed_usd", "ratio", "lowest", "highest",
    "recomputed_all_usd", "exact",
)  # fmt: skip


def recompute(settlements: Settlements, prices: PriceTable | None = None) -> Recomputed:
    """Price recorded tokens and put the result beside the recorded cost.

    Parameters
    ----------
    settlements : Settlements
        The table; call rows are priced one by one, nodes without call rows on their totals, model by model where
        the record tells what each model used.
    prices : PriceTable, optional
        Prices that hold for every date; None: the list prices of the installed genai-prices data at each call's own
        time (nothing is fetched).

    Returns
    -------
    Recomputed
        A model without a price and a row without token counts have no recomputed cost, never zero.

    Raises
    ------
    InputError
        If `prices` is no price table, or a run is there under several policies.

    Examples
    --------
    >>> from harness_lab.pricing import Price
    >>> from harness_lab.settlements import Settlements
    >>> table = PriceTable({"m": (Price.usd_per_million(input=2, output=10),)})
    >>> call = {"run": ["r"], "node": "0", "model": "m", "input_fresh": 1000, "cache_read": 0, "cache_write": 0,
    ...     "output": 100, "cost_nusd": 3_000_000}
    >>> recompute(Settlements.from_columns(call), table).ratio
    1.0
    """
    if prices is not None and not isinstance(prices, PriceTable):
        raise InputError("prices", expected="a PriceTable or None", got=type(prices).__name__)
    nodes, calls = settlements.nodes, settlements.calls
    if nodes.duplicated(_KEY).any():
        hint = "price one at a time: settlements.where(policy=..., scenario=...)"
        raise InputError("settlements", expected="each run once", got="runs under several policies", hint=hint)
    called = _model_calls(calls)
    bare = ~pd.MultiIndex.from_frame(nodes[_KEY]).isin(pd.MultiIndex.from_frame(called[_KEY]))
    blocks = [_block(called, prices, whole_calls=True)]
    started = bare & (nodes["outcome"] != "denied").to_numpy(dtype=bool)
    blocks.append(_block(unpacked(nodes[started]), prices, whole_calls=False))
    rows = pd.concat(blocks, ignore_index=True)
    source = prices.source if prices is not None else _genai()
    undated = int((rows.pop("undated") & rows["recomputed_nusd"].notna()).sum()) if prices is None else 0
    assumed = int(rows.pop("assumed").sum())
    by_node = _by_node(nodes, rows)
    return Recomputed(
        rows=rows, nodes=by_node, source=source, undated=undated, assumed=assumed, _settlements=settlements
    )


def _genai() -> str:
    from importlib.metadata import version

    return f"genai-prices {version('genai-prices')}, each call at its own date"


def _model_calls(calls: pd.DataFrame | None) -> pd.DataFrame:
    """Return the call rows with their number in ``call_row``; tools are no model calls."""
    if calls is None:
        from harness_lab.settlements.schema import empty_calls

        calls = empty_calls()
    return calls.assign(call_row=pd.array(np.arange(len(calls)), dtype="Int64"))


def _block(rows: pd.DataFrame, prices: PriceTable | None, *, whole_calls: bool) -> pd.DataFrame:
    rows = rows.reset_index(drop=True)
    priced: Priced = price_rows(rows, prices, whole_calls=whole_calls)
    model = rows["served_model"].fillna(rows["model"])
    rough = "node totals, first tier" if not whole_calls else "call"
    usual = "call" if whole_calls else "node totals"
    return pd.DataFrame(
        {
            "run": rows["run"],
            "node": rows["node"],
            "call": rows["call"] if whole_calls else pd.Series(pd.NA, index=rows.index, dtype="Int64"),
            "call_row": rows["call_row"] if whole_calls else pd.Series(pd.NA, index=rows.index, dtype="Int64"),
            "model": model,
            "basis": pd.Series(np.where(priced.tiered, rough, usual), dtype="string"),
            "recorded_nusd": rows["cost_nusd"],
            "recomputed_nusd": priced.cost_nusd,
            "price_date": priced.date,
            "reason": priced.reason,
            "undated": rows["start_ns"].isna(),
            "assumed": priced.assumed,
        }
    )


def _by_node(nodes: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for every node in the table's order, its recorded cost and the sum of what its rows cost."""
    key = pd.MultiIndex.from_frame(nodes[_KEY])
    by = [rows["run"], rows["node"]]
    total = rows["recomputed_nusd"].groupby(by, sort=False).sum()
    holes = rows["recomputed_nusd"].isna().groupby(by, sort=False).any()
    named = rows[[*_KEY, "model"]].dropna().drop_duplicates().sort_values("model").groupby(_KEY, sort=False)["model"]
    models = named.first()
    several = named.size() > 1
    if several.any():
        models = models.mask(several, named.agg(" + ".join))
    return pd.DataFrame(
        {
            "run": nodes["run"],
            "node": nodes["node"],
            "model": models.reindex(key).array,
            "recorded_nusd": nodes["cost_nusd"],
            "recomputed_nusd": total.mask(holes).reindex(key).array,
        }
    ).astype({"model": "string", "recomputed_nusd": "Int64"})


def _filled(frame: pd.DataFrame, cost: pd.Series) -> pd.DataFrame:
    new = frame["cost_nusd"].isna() & cost.notna()
    return frame.assign(
        cost_nusd=frame["cost_nusd"].mask(new, cost), cost_source=frame["cost_source"].mask(new, "computed")
    )


def _line(model: Any, rows: pd.DataFrame, both: pd.DataFrame) -> tuple[object, ...]:
    recorded, recomputed = int(both["recorded_nusd"].sum()), int(both["recomputed_nusd"].sum())
    known = both[both["recomputed_nusd"] > 0]
    single = (known["recorded_nusd"] / known["recomputed_nusd"]).astype(float)
    exact = not rows["basis"].str.endswith("first tier").any()
    every = int(rows["recomputed_nusd"].sum()) / NUSD_PER_USD
    level = pd.NA if both.empty else "node" if (both["level"] == "node").all() else "call"
    ratio = _ratio(recorded, recomputed) if len(both) else None
    ends = (single.min(), single.max()) if len(single) else (None, None)
    return (
        model, len(rows), int(rows["recomputed_nusd"].notna().sum()), len(both), level, recorded / NUSD_PER_USD,
        recomputed / NUSD_PER_USD, ratio, *ends, every, exact,
    )  # fmt: skip


def _same(values: pd.Series, name: object) -> pd.Series:
    return (values == name).fillna(value=False) if isinstance(name, str) else values.isna()


def _ratio(recorded: int, recomputed: int) -> float | None:
    return recorded / recomputed if recomputed else None


def _named(model: object) -> str:
    return str(model) if isinstance(model, str) else "unknown model"

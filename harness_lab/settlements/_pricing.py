"""Pricing many rows at once, each at the list price of its own date: the arrays under :mod:`.costs`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness_lab.clock import NS_PER_S
from harness_lab.pricing import PriceTable, _rules, from_genai_prices
from harness_lab.pricing.table import PUSD_PER_NUSD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.pricing import Price

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

KINDS: Final = ("input_fresh", "cache_read", "cache_write", "cache_write_1h", "output")
WINDOW_NS: Final = 15 * 60 * NS_PER_S
"""Prices are looked up once for each model and quarter of an hour: the data's off-peak hours begin and end on one."""

NO_MODEL: Final = "no model is named"
NO_PRICE: Final = "no price for this model"
NO_USAGE: Final = "token counts are unknown"
NO_PARTS: Final = "how much of the prompt was cached is unknown"
SEVERAL: Final = "several models in one figure"
TOGETHER: Final = " + "
"""What joins the names of several models."""

_BEDROCK: Final = re.compile(
    r"^(?:(?:us|eu|apac|jp|au|ca|global)\.)?(?:anthropic|amazon|meta|mistral|cohere|deepseek)\."
)
_PROVIDERS: Final = {"bedrock": "aws", "vertex_ai": "google", "gemini": "google", "azure_ai": "azure"}


class Priced(NamedTuple):
    """What a block of rows costs.

    Attributes
    ----------
    cost_nusd : Series of Int64
        Nano-dollars; NA where ``reason`` says why.
    tiered : ndarray of bool
        The model's price depends on the size of the prompt.
    date : Series of string
        Day of the price, YYYY-MM-DD; NA where a hand-made table names none.
    reason : Series of string
        Why a row has no price; NA where it has one.
    assumed : ndarray of bool
        Cache writes of unknown lifetime were priced at the provider's default (five minutes), the cheaper one.
    """

    cost_nusd: pd.Series
    tiered: Bools
    date: pd.Series
    reason: pd.Series
    assumed: Bools


def spellings(model: str) -> tuple[str, ...]:
    """Return the names under which a recorded model is looked up, best first.

    Examples
    --------
    >>> spellings("us.anthropic.claude-sonnet-4-5-20250929-v1:0")[0]
    'aws/us.anthropic.claude-sonnet-4-5-20250929-v1:0'
    >>> spellings("claude-sonnet-4-5-20250929[1m]")
    ('claude-sonnet-4-5-20250929[1m]', 'claude-sonnet-4-5-20250929')
    """
    head, slash, rest = model.partition("/")
    name = f"{_PROVIDERS[head]}/{rest}" if slash and head in _PROVIDERS else model
    bare = name.rpartition("/")[2]
    found = [f"aws/{bare}"] if _BEDROCK.match(bare) else []
    found += [name, re.sub(r"\[\w+\]$", "", name), name.partition("@")[0] if not name.startswith("@") else name]
    return tuple(dict.fromkeys(found))


def price_rows(rows: pd.DataFrame, prices: PriceTable | None, *, whole_calls: bool) -> Priced:
    """Price each row at its own date.

    Parameters
    ----------
    rows : DataFrame
        ``model``, ``served_model``, ``start_ns``, the disjoint token columns; index 0 ... n-1.
    prices : PriceTable or None
        Prices for every date; None: the bundled list prices, each row at those of its quarter of an hour. A row
        without a time is priced at today's.
    whole_calls : bool
        The rows are single calls: each is priced at the tier that its prompt reaches. Otherwise they are sums, which
        reach no tier of their own, and are priced at the first one.
    """
    count = len(rows)
    cost, reason = np.zeros(count, dtype=np.int64), np.full(count, NO_MODEL, dtype=object)
    tiered, assumed = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    date = np.full(count, None, dtype=object)
    tokens = {name: rows[name].fillna(0).to_numpy(dtype=np.int64) for name in KINDS}
    known = _known(rows)
    for at, found, day in _groups(rows, prices):
        date[at] = day
        tiered[at] = found is not None and len(found) > 1
        reason[at] = NO_PRICE if found is None else None
        if found is not None:
            cost[at] = _cost({name: part[at] for name, part in tokens.items()}, found, whole_calls=whole_calls)
            assumed[at] = _lifetime_unknown(rows, at, found)
    whole = rows[["input_total", "output"]].notna().all(axis=1).to_numpy(dtype=bool)
    reason[~known] = np.where(whole[~known], NO_PARTS, NO_USAGE)
    several = rows["served_model"].str.contains(TOGETHER, regex=False).fillna(value=False).to_numpy(dtype=bool)
    reason[several] = SEVERAL
    nothing = known & (np.sum([*tokens.values()], axis=0) == 0)  # no tokens cost nothing at any price
    reason[nothing] = None
    cost[nothing] = 0
    why = pd.Series(reason, dtype="string")
    unpriced = why.notna().to_numpy(dtype=bool)
    return Priced(
        cost_nusd=pd.Series(pd.arrays.IntegerArray(cost, unpriced)),
        tiered=tiered,
        date=pd.Series(date, dtype="string").mask(why.notna()),
        reason=why,
        assumed=assumed & ~unpriced,
    )


def _known(rows: pd.DataFrame) -> Bools:
    names = ["input_fresh", "cache_read", "cache_write", "output"]
    return np.asarray(rows[names].notna().all(axis=1), dtype=bool)


def _lifetime_unknown(rows: pd.DataFrame, at: Ints, tiers: tuple[Price, ...]) -> Bools:
    """Where cache writes have two prices and the record does not say which part is which."""
    rates = tiers[0].rates()
    some = rows["cache_write"].iloc[at].fillna(0).to_numpy(dtype=np.int64) > 0
    split = rows["cache_write_1h"].iloc[at].isna().to_numpy(dtype=bool)
    return np.asarray(some & split & (rates[2] != rates[3]), dtype=bool)


def _cost(tokens: dict[str, Ints], tiers: tuple[Price, ...], *, whole_calls: bool) -> Ints:
    """Return nano-dollars, half to even, with the tier of each row's own prompt."""
    prompt = tokens["input_fresh"] + tokens["cache_read"] + tokens["cache_write"]
    starts = [tier.above_input_tokens for tier in tiers]
    level = np.searchsorted(starts, prompt, side="left") - 1 if whole_calls else np.zeros(prompt.size, dtype=np.int64)
    rates = np.array([tier.rates() for tier in tiers], dtype=np.int64)[np.maximum(level, 0)].T
    pusd: Any = _rules.picodollars(*(tokens[name] for name in KINDS), *rates)  # type: ignore[arg-type]
    quotient, rest = np.divmod(np.asarray(pusd, dtype=np.int64), PUSD_PER_NUSD)
    up = (2 * rest > PUSD_PER_NUSD) | ((2 * rest == PUSD_PER_NUSD) & (quotient % 2 == 1))
    return np.asarray(quotient + up, dtype=np.int64)


def _groups(
    rows: pd.DataFrame, prices: PriceTable | None
) -> Iterator[tuple[Ints, tuple[Price, ...] | None, str | None]]:
    """Yield the rows that have one price: their numbers, its tiers (None: none is known), its day."""
    names = pd.DataFrame({"served": rows["served_model"], "asked": rows["model"]})
    window = rows["start_ns"] // WINDOW_NS if prices is None else pd.Series(0, index=rows.index, dtype="Int64")
    keys = names.assign(window=window)
    cache: dict[tuple[str, Any], tuple[tuple[Price, ...] | None, str | None]] = {}
    grouped: Any = keys.groupby(["served", "asked", "window"], dropna=False, sort=False)
    for (served, asked, when), part in grouped:
        options = [name for name in (served, asked) if isinstance(name, str) and TOGETHER not in name]
        if not options:
            continue
        found: tuple[tuple[Price, ...] | None, str | None] = (None, None)
        for name in options:
            key = (name, None if pd.isna(when) else int(when))
            if key not in cache:
                cache[key] = _look_up(name, key[1], prices)
            found = cache[key]
            if found[0] is not None:
                break
        yield part.index.to_numpy(dtype=np.int64), *found


def _look_up(model: str, window: int | None, prices: PriceTable | None) -> tuple[tuple[Price, ...] | None, str | None]:
    names = spellings(model)
    if prices is not None:
        return next((prices.models[name] for name in names if name in prices.models), None), prices.date
    at = None if window is None else datetime.fromtimestamp(window * WINDOW_NS // NS_PER_S, UTC)
    for name in names:
        table = from_genai_prices([name], at=at)
        if name in table.models:
            return table.models[name], table.date
    return None, None

"""Price tables from the genai-prices data that is installed with the package; nothing is fetched."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from harness_lab.pricing.table import Price, PriceTable

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIELDS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
}


def from_genai_prices(models: Iterable[str], *, at: datetime | None = None) -> PriceTable:
    """Look up the list prices of models in the bundled genai-prices data.

    Parameters
    ----------
    models : iterable of str
        Model names as recorded. A prefix such as ``google/`` is taken as the provider.
    at : datetime, optional
        The instant whose prices are wanted (some models have dated prices); now if None. Naive times are UTC.

    Returns
    -------
    PriceTable
        Models that the data do not know are absent: their cost is unknown, never zero.

    Notes
    -----
    Tiers reprice the whole call once its prompt exceeds the threshold, as genai-prices itself does. A
    :class:`PricePin` holds as long as the prices stay the same, whatever the day.
    """
    from importlib.metadata import version  # loads a source of randomness, which enforcement does without

    when = at if at is not None else datetime.now(UTC)
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    found = {model: tiers for model in models if (tiers := _tiers(model, when))}
    return PriceTable(found, source=f"genai-prices {version('genai-prices')}", date=when.date().isoformat())


def _tiers(model: str, at: datetime) -> tuple[Price, ...] | None:
    from genai_prices import Usage, calc_price

    *prefix, name = model.split("/")
    for provider, reference in (((prefix[-1] if prefix else None), name), (None, name), (None, model)):
        try:
            usage = Usage(input_tokens=0, output_tokens=0)
            found = calc_price(usage, reference, provider_id=provider, genai_request_timestamp=at)
        except LookupError:
            continue
        return _from_model_price({name: getattr(found.model_price, key, None) for name, key in _FIELDS.items()})
    return None


def _from_model_price(prices: dict[str, object]) -> tuple[Price, ...] | None:
    if prices["input"] is None or prices["output"] is None:
        return None
    starts = {0}.union(*(_starts(price) for price in prices.values()))
    return tuple(
        Price.usd_per_million(above_input_tokens=start, **{name: _at(price, start) for name, price in prices.items()})
        for start in sorted(starts)
    )


def _starts(price: object) -> set[int]:
    return {tier.start for tier in getattr(price, "tiers", ())}


def _at(price: object, start: int) -> Decimal | None:
    """Return one price from `start` prompt tokens on."""
    if price is None or isinstance(price, Decimal):
        return price
    applying: Decimal = price.base  # type: ignore[attr-defined]
    for tier in price.tiers:  # type: ignore[attr-defined]
        if tier.start <= start:
            applying = tier.price
    return applying

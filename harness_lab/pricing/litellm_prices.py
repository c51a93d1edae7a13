"""Price tables from a price file in LiteLLM's form: ``model_prices_and_context_window.json``, or one of your own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from harness_lab.errors import InputError
from harness_lab.pricing.table import Price, PriceTable

_FIELDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "cache_write_1h": "cache_creation_input_token_cost_above_1hr",
}
_TIER = re.compile(r"_above_(\d+)k_tokens$")
_MILLION = Decimal(1_000_000)


def from_litellm(
    prices: Mapping[str, Any], models: Iterable[str] | None = None, *, source: str = "LiteLLM", date: str | None = None
) -> PriceTable:
    """Take the prices of models from a LiteLLM price file that was loaded with ``json.load``.

    Parameters
    ----------
    prices : mapping
        Per model its fields, dollars per token: ``input_cost_per_token``, ``output_cost_per_token``,
        ``cache_read_input_token_cost``, ``cache_creation_input_token_cost`` (and ``..._above_1hr``). A field with
        ``_above_200k_tokens`` (or another number) behind it is the price of calls with more prompt tokens than that.
    models : iterable of str, optional
        Names as the file has them; None for all that have a price per token.
    source : str
        Where the file comes from: kept with every charge.
    date : str, optional
        The day that the prices hold for, ISO format. The file does not say.

    Returns
    -------
    PriceTable
        A model that the file does not have, or without prices per token of input and output, is absent: its cost is
        unknown, never zero. A price that a tier does not name is that of the tier before.

    Raises
    ------
    InputError
        If the file holds no models, or a price is negative, not finite or no number.

    Examples
    --------
    >>> file = {"m": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05}}
    >>> from_litellm(file, date="2026-01-01").tier("m", 10).input
    3000000
    """
    if not isinstance(prices, Mapping) or not all(isinstance(entry, Mapping) for entry in prices.values()):
        raise InputError("LiteLLM prices", expected="an object with one object for each model", got=prices)
    wanted = [name for name in prices if name != "sample_spec"] if models is None else list(models)
    found = {model: tiers for model in wanted if (tiers := _tiers(model, prices.get(model, {})))}
    return PriceTable(found, source=source, date=date)


def _tiers(model: str, entry: Mapping[str, Any]) -> tuple[Price, ...] | None:
    if entry.get(_FIELDS["input"]) is None or entry.get(_FIELDS["output"]) is None:
        return None
    steps = {int(step[1]) for key in entry if key.startswith(tuple(_FIELDS.values())) and (step := _TIER.search(key))}
    tiers: list[Price] = []
    rates: dict[str, Decimal | None] = dict.fromkeys(_FIELDS)
    for thousands in (0, *sorted(steps)):
        ending = f"_above_{thousands}k_tokens" if thousands else ""
        for kind, name in _FIELDS.items():
            value = entry.get(name + ending)
            rates[kind] = rates[kind] if value is None else _per_million(model, name + ending, value)
        tiers.append(Price.usd_per_million(above_input_tokens=1000 * thousands, **rates))
    return tuple(tiers)


def _per_million(model: str, name: str, value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 0.001:
        raise InputError(f"{name} of {model}", expected="dollars per token, from 0 to 0.001", got=value)
    return Decimal(str(value)) * _MILLION

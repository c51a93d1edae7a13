"""What a call costs, as LiteLLM takes it: ``model_info`` of each model, dollars per token."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from harness_lab.export.targets.base import Draft, Loss

if TYPE_CHECKING:
    from harness_lab.pricing import Price

MODELS, FILE = "models", "litellm-models.json"
_PER_USD: Final = Decimal(10**12)
_KEYS: Final = (
    "input_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr",
    "output_cost_per_token",
)
"""In the order of :meth:`harness_lab.pricing.Price.rates`."""


def carry_prices(draft: Draft) -> None:
    """Write the config's prices, so that money is counted there as it was when the ceiling was chosen."""
    prices = draft.config.prices
    if prices is None or not prices.models:
        return
    draft.values[MODELS] = {model: _info(tiers[0]) for model, tiers in prices.models.items()}
    draft.done.add("prices")
    for model, tiers in prices.models.items():
        if len(tiers) > 1:
            above = ", ".join(f"{tier.above_input_tokens:,}" for tier in tiers[1:])
            means = "a model has one price there, so that larger prompts are counted too low"
            draft.losses.append(Loss(f"prices of {model!r} above {above} prompt tokens", means))


def _info(price: Price) -> dict[str, Any]:
    """Return every rate, also those that follow from another: what is left out there may count as free."""
    return {key: float(Decimal(rate) / _PER_USD) for key, rate in zip(_KEYS, price.rates(), strict=True)}

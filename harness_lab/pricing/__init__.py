"""What a call costs: price tables by hand or from the bundled list prices, and its worst case under a hard cap."""

from harness_lab.pricing.bounds import CallBound, CapPrices, PricePin
from harness_lab.pricing.litellm_prices import from_litellm
from harness_lab.pricing.request_size import RequestSize, measure
from harness_lab.pricing.sources import from_genai_prices
from harness_lab.pricing.table import Price, PriceTable, per_million
from harness_lab.pricing.terms import CallTerms

__all__ = [
    "CallBound",
    "CallTerms",
    "CapPrices",
    "Price",
    "PricePin",
    "PriceTable",
    "RequestSize",
    "from_genai_prices",
    "from_litellm",
    "measure",
    "per_million",
]

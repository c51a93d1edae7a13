"""What a call costs: price tables by hand or from the bundled list prices."""

from harness_lab.pricing.sources import from_genai_prices
from harness_lab.pricing.table import Price, PriceTable, per_million

__all__ = ["Price", "PriceTable", "from_genai_prices", "per_million"]

"""What a model's calls cost under a hard cap: prices, and the figures without which a call cannot be bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from harness_lab.errors import InputError
from harness_lab.pricing import _rules
from harness_lab.pricing.table import PUSD_PER_NUSD, Price, PriceTable
from harness_lab.usage import MAX_TOKENS, TokenCounts, count, optional_count

Billing = Literal["usage", "reported-complete"]

ONE_PPM = 1_000_000
"""A multiplier of one, in parts per million."""
_PER_NUSD = PUSD_PER_NUSD * ONE_PPM
_PRICES = {
    "inputPerMTok": "input",
    "outputPerMTok": "output",
    "cacheReadPerMTok": "cache_read",
    "cacheWritePerMTok": "cache_write",
    "cacheWrite1hPerMTok": "cache_write_1h",
    "aboveInputTokens": "above_input_tokens",
}
_OTHERS = ("tiers", "multiplier", "toolOverheadTokens", "imageTokenBound", "billing")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTerms:
    """Prices of one model, and what bounds a call of it.

    Parameters
    ----------
    tiers : tuple of Price
        Ascending by prompt size, the first from 0. A call is priced at the tier that its whole prompt reaches.
    multiplier_ppm : int
        Factor on the whole call, parts per million.
    tool_overhead_tokens : int or None
        Prompt tokens that the provider adds when tools are offered; None: unknown, and such calls are refused.
    image_token_bound : int or None
        The most prompt tokens that a picture can be; None: unknown, and calls with pictures are refused.
    billing : {"usage", "reported-complete"}
        What a call is charged: its reported tokens at these prices, or the provider's own figure, which is the whole
        of the bill.

    Raises
    ------
    InputError
        If a figure is negative, not finite or no number, or tiers do not ascend.
    """

    tiers: tuple[Price, ...]
    multiplier_ppm: int = ONE_PPM
    tool_overhead_tokens: int | None = None
    image_token_bound: int | None = None
    billing: Billing = "usage"

    def __post_init__(self) -> None:
        PriceTable({"model": self.tiers})
        object.__setattr__(self, "multiplier_ppm", count("multiplier", self.multiplier_ppm, maximum=1000 * ONE_PPM))
        for name in ("tool_overhead_tokens", "image_token_bound"):
            object.__setattr__(self, name, optional_count(name, getattr(self, name), maximum=MAX_TOKENS))
        if self.billing not in ("usage", "reported-complete"):
            raise InputError("billing", expected="usage or reported-complete", got=self.billing)

    @classmethod
    def from_config(cls, entry: Mapping[str, Any], *, provider: str = "") -> CallTerms:
        """Read an entry with the keys of prism-harness, prices in dollars per million tokens.

        Parameters
        ----------
        entry : mapping
            ``inputPerMTok``, ``outputPerMTok``; maybe ``cacheReadPerMTok``, ``cacheWritePerMTok`` (each the input price
            if it is not there), ``toolOverheadTokens``, ``imageTokenBound``, ``multiplier``, ``billing``; and
            ``tiers``, each with ``aboveInputTokens`` and prices of its own.
        provider : str
            ``openrouter`` reports the whole bill, so its entries are ``reported-complete`` unless they say otherwise.

        Raises
        ------
        InputError
            If a key is unknown or missing, or a value is not allowed.

        Examples
        --------
        >>> CallTerms.from_config({"inputPerMTok": 3.0, "outputPerMTok": 15.0}).tiers[0].rates()[1:3]
        (3000000, 3000000)
        """
        known = [*_PRICES, *_OTHERS]
        unknown = sorted(set(entry) - set(known)) if isinstance(entry, Mapping) else entry
        if unknown or not isinstance(entry, Mapping):
            raise InputError("price entry", expected=f"some of {', '.join(known)}", got=unknown)
        tiers = entry.get("tiers", ())
        if not isinstance(tiers, list | tuple):
            raise InputError("tiers", expected="a list", got=tiers)
        return cls(
            tiers=(_price(entry), *(_price(tier) for tier in tiers)),
            multiplier_ppm=_ppm(entry.get("multiplier", 1)),
            tool_overhead_tokens=entry.get("toolOverheadTokens"),
            image_token_bound=entry.get("imageTokenBound"),
            billing=entry.get("billing", "reported-complete" if provider == "openrouter" else "usage"),
        )

    def worst_nusd(self, input_tokens: int, output_tokens: int) -> int:
        """Return the most that a call can cost, nano-dollars, rounded up.

        Every prompt token is taken at the dearest of the input, cache-read and cache-write prices of every tier that
        the call could reach, and the answer at its ceiling.
        """
        reachable = [t for t in self.tiers if t.above_input_tokens == 0 or t.above_input_tokens < input_tokens]
        pusd = max(max(t.rates()[:4]) * input_tokens + t.output * output_tokens for t in reachable)
        return _rules.up(pusd * self.multiplier_ppm, _PER_NUSD)

    def cost_nusd(self, usage: TokenCounts) -> int | None:
        """Return the cost of a call by its reported tokens, nano-dollars, half to even; None where a count is unknown.

        The tier is that of the real prompt.
        """
        whole, output = usage.input_total, usage.output
        if whole is None or output is None or usage.input_fresh is None:
            return None
        read, write = usage.cache_read or 0, usage.cache_write or 0
        tier = self.tiers[0]
        for dearer in self.tiers[1:]:
            tier = dearer if whole > dearer.above_input_tokens else tier
        rates = tier.rates()
        if usage.cache_write_1h is None and write and rates[2] != rates[3]:
            return None
        pusd = _rules.picodollars(usage.input_fresh, read, write, usage.cache_write_1h or 0, output, *rates)
        return _rules.half_even(pusd * self.multiplier_ppm, _PER_NUSD)

    def charge_nusd(self, usage: TokenCounts | None, reported_nusd: int | None) -> int | None:
        """Return what a call that ended is charged, nano-dollars; None: unknown, and the axis of the cap decides.

        Parameters
        ----------
        usage : TokenCounts or None
            Reported tokens.
        reported_nusd : int or None
            The provider's own figure; it counts only where it is the whole of the bill.
        """
        if self.billing == "reported-complete":
            return reported_nusd
        return None if usage is None else self.cost_nusd(usage)


def _price(entry: Any) -> Price:
    if not isinstance(entry, Mapping) or not {"inputPerMTok", "outputPerMTok"} <= set(entry):
        raise InputError("price entry", expected="inputPerMTok and outputPerMTok", got=entry)
    return Price.usd_per_million(**{ours: entry[theirs] for theirs, ours in _PRICES.items() if theirs in entry})


def _ppm(multiplier: object) -> int:
    try:
        factor = Decimal(str(multiplier)) * ONE_PPM if not isinstance(multiplier, bool) else Decimal("NaN")
    except InvalidOperation:
        factor = Decimal("NaN")
    if not factor.is_finite() or factor != factor.to_integral_value():
        raise InputError("multiplier", expected="a finite number with at most six decimals", got=multiplier)
    return count("multiplier", int(factor) if factor >= 0 else -1, maximum=1000 * ONE_PPM)

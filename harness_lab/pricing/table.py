"""Price tables: what a call costs, per model, with tiers by prompt size.

A call is priced at the tier its whole prompt reaches (the common provider rule), so totals are sums of priced calls,
never the price of summed tokens. A model without a price is an unknown cost, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any

from harness_lab.errors import InputError, check_kind
from harness_lab.pricing import _rules
from harness_lab.usage import MAX_NUSD, TokenCounts, count

PUSD_PER_NUSD = 1000
MAX_PRICE = 1_000_000_000
"""Pico-dollars per token: a thousand dollars per million tokens."""
_EXACT = Context(prec=40, rounding=ROUND_HALF_EVEN)
"""Our own context: a caller's precision or rounding must not move money."""
_KINDS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")


def per_million(usd: object, *, what: str = "price") -> int:
    """Convert dollars per million tokens to pico-dollars per token.

    Raises
    ------
    InputError
        If `usd` is not a finite number from 0 to 1,000.

    Examples
    --------
    >>> per_million(0.30)
    300000
    """
    try:
        price = Decimal(str(usd)) if not isinstance(usd, bool) else Decimal("NaN")
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 <= price <= 1000:
        raise InputError(what, expected="dollars per million tokens from 0 to 1,000", got=usd)
    return int(_EXACT.multiply(price, Decimal(1_000_000)).to_integral_value(context=_EXACT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Prices of one model from one prompt size on, pico-dollars per token.

    Parameters
    ----------
    input, output : int
        Fresh prompt tokens and completion tokens.
    cache_read, cache_write, cache_write_1h : int or None
        None: the input price (for the one-hour write: the write price).
    above_input_tokens : int
        The tier applies to calls with more prompt tokens than this.
    """

    input: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    above_input_tokens: int = 0

    def __post_init__(self) -> None:
        for name in _KINDS:
            value = getattr(self, name)
            if value is not None or name in ("input", "output"):
                object.__setattr__(self, name, count(name, value, maximum=MAX_PRICE))
        object.__setattr__(self, "above_input_tokens", count("above_input_tokens", self.above_input_tokens))

    @classmethod
    def usd_per_million(cls, *, input: object, output: object, **other: object) -> Price:
        """Build from dollars per million tokens; `above_input_tokens` stays a count.

        Raises
        ------
        InputError
            If a kind of price is not known, or a price negative, not finite or no number.

        Examples
        --------
        >>> Price.usd_per_million(input=3, output=15, cache_read=0.3).cache_read
        300000
        """
        prices: dict[str, Any] = {
            "input": per_million(input, what="input"),
            "output": per_million(output, what="output"),
        }
        for name, value in other.items():
            if name not in (*_KINDS, "above_input_tokens"):
                raise InputError("price", expected=f"one of {', '.join(_KINDS)}, above_input_tokens", got=name)
            prices[name] = value if value is None or name == "above_input_tokens" else per_million(value, what=name)
        return cls(**prices)

    def rates(self) -> tuple[int, int, int, int, int]:
        """Return the prices of fresh, read, write, one-hour write and output tokens."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return self.input, read, write, write if self.cache_write_1h is None else self.cache_write_1h, self.output


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices of many models.

    Parameters
    ----------
    models : mapping of str to sequence of Price
        Tiers of each model, ascending in `above_input_tokens`, the first from 0.
    source : str
        Where the prices come from.
    date : str or None
        The day they hold for, ISO format.

    Raises
    ------
    InputError
        If a model is no text, has no tiers of :class:`Price`, or they do not ascend from 0.

    Examples
    --------
    >>> table = PriceTable({"m": (Price.usd_per_million(input=3, output=15),)})
    >>> table.cost("m", TokenCounts(input_fresh=1000, output=100))
    4500000
    """

    models: Mapping[str, tuple[Price, ...]] = field(default_factory=dict)
    source: str = "by hand"
    date: str | None = None

    def __post_init__(self) -> None:
        check_kind("models of the price table", self.models, Mapping, expected="tiers of prices by model")
        for model, tiers in self.models.items():
            if not isinstance(model, str) or not isinstance(tiers, (tuple, list)):
                raise InputError("models of the price table", expected="tiers of prices by model", got={model: tiers})
            for tier in tiers:
                check_kind(f"tiers of {model}", tier, Price, expected="some Price")
            starts = [tier.above_input_tokens for tier in tiers]
            if not starts or starts[0] != 0 or starts != sorted(set(starts)):
                raise InputError(f"tiers of {model}", expected="ascending above_input_tokens from 0", got=starts)

    def tier(self, model: str, input_total: int) -> Price | None:
        """Return the price that applies to a call of `model` with that many prompt tokens; None without a price."""
        tiers = self.models.get(model)
        if tiers is None:
            return None
        applying = tiers[0]
        for tier in tiers[1:]:
            if input_total > tier.above_input_tokens:
                applying = tier
        return applying

    def cost(self, model: str, tokens: TokenCounts) -> int | None:
        """Price one call, nano-dollars, half to even; None when the model has no price or a count it needs is unknown.

        Raises
        ------
        InputError
            If the cost lies beyond nine billion dollars.
        """
        total = tokens.input_total
        tier = None if total is None else self.tier(model, total)
        if tier is None or tokens.output is None:
            return None
        fresh, read, write = tokens.input_fresh or 0, tokens.cache_read or 0, tokens.cache_write or 0
        p_fresh, p_read, p_write, p_write_1h, p_output = tier.rates()
        if tokens.cache_write_1h is None and write and p_write != p_write_1h:
            return None
        write_1h = tokens.cache_write_1h or 0
        pusd = _rules.picodollars(
            fresh, read, write, write_1h, tokens.output, p_fresh, p_read, p_write, p_write_1h, p_output
        )
        amount = _rules.half_even(pusd, PUSD_PER_NUSD)
        if amount > MAX_NUSD:
            raise InputError("cost of a call", expected="at most nine billion dollars", got=amount)
        return amount

    def worst_case(self, model: str, *, input_tokens: int, output_ceiling: int) -> int | None:
        """Return the most that a call can cost, nano-dollars, rounded up; None without a price.

        Every prompt token is taken at the dearest of the input, cache-read and cache-write prices of every tier that
        the call could reach, and the answer at its ceiling.
        """
        tiers = [
            t for t in self.models.get(model, ()) if t.above_input_tokens == 0 or t.above_input_tokens < input_tokens
        ]
        worst = [max(t.rates()[:4]) * input_tokens + t.output * output_ceiling for t in tiers]
        return _rules.up(max(worst), PUSD_PER_NUSD) if worst else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; :meth:`from_dict` reads them back."""
        models = {model: [asdict(tier) for tier in tiers] for model, tiers in sorted(self.models.items())}
        return {"source": self.source, "date": self.date, "models": models}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PriceTable:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If there are no models, or a tier has an unknown field or misses a price.
        """
        models = data.get("models")
        if not isinstance(models, Mapping):
            raise InputError("price table", expected="models and maybe source and date", got=sorted(data))
        read = {model: tuple(_price(model, tier) for tier in tiers) for model, tiers in models.items()}
        return cls(read, source=data.get("source", "by hand"), date=data.get("date"))


def _price(model: str, tier: Mapping[str, Any]) -> Price:
    known = {f.name for f in fields(Price)}
    if not {"input", "output"} <= set(tier) <= known:
        raise InputError(f"tier of {model}", expected=f"input, output and some of {sorted(known)}", got=sorted(tier))
    return Price(**tier)

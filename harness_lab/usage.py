"""What a model call uses: token counts and money, as integers.

Token counts are disjoint (fresh input, cache read, cache write, output), so that nothing is counted twice whatever a
provider's convention is. Money is an ``int`` of nano-dollars, a price an ``int`` of pico-dollars per token, which is
the same number as micro-dollars per million tokens. ``None`` means unknown, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from numbers import Real
from operator import index

from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS

NUSD_PER_USD = 1_000_000_000
MAX_TOKENS = 1_000_000_000
"""Tokens of one kind that a call may have; beyond it the edge refuses, so that every engine stays in 64 bits."""
MAX_NUSD = 9_000_000_000 * NUSD_PER_USD
"""Nano-dollars that a run may cost: nine billion dollars."""
MAX_COUNT = 2**62
_EXACT = Context(prec=40, rounding=ROUND_HALF_EVEN)
"""Not the thread's own decimal context, which a caller may have changed."""


def count(what: str, value: object, *, maximum: int = MAX_COUNT) -> int:
    """Check a count at the edge and return it.

    Parameters
    ----------
    what : str
        Name for the error message.
    value : object
        What came. Whole floats and the integers of other libraries are accepted; booleans are not.
    maximum : int
        Largest value accepted.

    Raises
    ------
    InputError
        If `value` is not a whole number in [0, maximum].
    """
    number = None if isinstance(value, bool) else _whole(value)
    if number is None or not 0 <= number <= maximum:
        raise InputError(what, expected=f"a whole number from 0 to {maximum:,}", got=value)
    return number


def _whole(value: object) -> int | None:
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        number = float(value) if isinstance(value, Real) else float("nan")
        return int(number) if number.is_integer() else None


def optional_count(what: str, value: object, *, maximum: int = MAX_COUNT) -> int | None:
    """Like :func:`count`, and ``None`` stays ``None`` (unlimited or unknown, as the caller's docstring says)."""
    return None if value is None else count(what, value, maximum=maximum)


def nusd(usd: object, *, what: str = "cost_usd") -> int:
    """Convert dollars to nano-dollars, half to even.

    A float is taken at its shortest decimal form, so ten charges of 0.1 are one dollar exactly.

    Raises
    ------
    InputError
        If `usd` is not a finite number from 0 to nine billion.

    Examples
    --------
    >>> 10 * nusd(0.1) == nusd(1.0)
    True
    """
    try:
        is_number = isinstance(usd, (Real, Decimal)) and not isinstance(usd, bool)
        amount = Decimal(str(usd)) if is_number else Decimal("NaN")
    except (InvalidOperation, ValueError):  # no number; an int of more digits than Python writes
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 <= amount <= MAX_NUSD // NUSD_PER_USD:
        raise InputError(what, expected="a finite number of dollars from 0 to 9,000,000,000", got=usd)
    return int(_EXACT.multiply(amount, Decimal(NUSD_PER_USD)).to_integral_value(context=_EXACT))


def optional_nusd(usd: object, *, what: str = "cost_usd") -> int | None:
    """Like :func:`nusd`, and ``None`` stays ``None``."""
    return None if usd is None else nusd(usd, what=what)


def usd(nusd: int) -> float:
    """Convert nano-dollars to dollars, for display only."""
    return nusd / NUSD_PER_USD


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """Disjoint token counts of one call, node or run.

    Parameters
    ----------
    input_fresh : int or None
        Prompt tokens that were neither read from nor written to a cache.
    cache_read, cache_write : int or None, default 0
        Prompt tokens read from and written to a cache.
    output : int or None
        Completion tokens, reasoning included.
    reasoning : int or None, default 0
        The part of `output` that was reasoning.
    cache_write_1h : int or None, default 0
        The part of `cache_write` with the one-hour lifetime.

    Notes
    -----
    ``None`` is unknown. A sum with an unknown part is unknown.
    """

    input_fresh: int | None
    output: int | None
    cache_read: int | None = 0
    cache_write: int | None = 0
    reasoning: int | None = 0
    cache_write_1h: int | None = 0

    def __post_init__(self) -> None:
        for name in ("input_fresh", "output", "cache_read", "cache_write", "reasoning", "cache_write_1h"):
            object.__setattr__(self, name, optional_count(name, getattr(self, name), maximum=MAX_TOKENS))
        for part, whole in (("reasoning", "output"), ("cache_write_1h", "cache_write")):
            inner, outer = getattr(self, part), getattr(self, whole)
            if inner is not None and outer is not None and inner > outer:
                raise InputError(part, expected=f"at most {whole} = {outer}", got=inner)

    @property
    def input_total(self) -> int | None:
        """All prompt tokens: fresh, read from cache and written to it."""
        if self.input_fresh is None or self.cache_read is None or self.cache_write is None:
            return None
        return self.input_fresh + self.cache_read + self.cache_write

    @property
    def total(self) -> int | None:
        """Prompt and completion tokens together."""
        whole = self.input_total
        return None if whole is None or self.output is None else whole + self.output

    @property
    def newly_presented(self) -> int | None:
        """Tokens that were new to the provider: everything but what was read from a cache."""
        whole = self.total
        return None if whole is None or self.cache_read is None else whole - self.cache_read


Amounts = tuple[int | None, ...]
"""Amounts by channel, in the order of :data:`harness_lab.outcome.CHANNELS`; None: no limit, not asked, or unknown."""


def amounts(
    *,
    calls: int | None = None,
    input: int | None = None,
    tokens: int | None = None,
    fresh: int | None = None,
    cost_usd: float | None = None,
) -> Amounts:
    """Build an amounts tuple from channels by name.

    Parameters
    ----------
    calls : int or None
        Model calls.
    input, tokens, fresh : int or None
        Prompt tokens; prompt and completion tokens; newly presented tokens.
    cost_usd : float or None
        Dollars.

    Raises
    ------
    InputError
        If a value is negative, not finite or not a number.

    Examples
    --------
    >>> amounts(tokens=8000, cost_usd=0.5)
    (None, None, 8000, None, 500000000)
    """
    counts = (("calls", calls), ("input", input), ("tokens", tokens), ("fresh", fresh))
    return (*(optional_count(name, value) for name, value in counts), optional_nusd(cost_usd))


def checked_amounts(what: str, values: Amounts) -> Amounts:
    """Return amounts by channel as ints; None stays None.

    Raises
    ------
    InputError
        If there is not one for each channel, or one is negative, not finite or not a whole number: it would give money
        back, or poison the sum.
    """
    try:
        a, b, c, d, e = values
    except (TypeError, ValueError):
        raise InputError(what, expected=f"one amount for each of {', '.join(CHANNELS)}", got=values) from None
    if (  # written out, since each question and each answer comes by here
        (a is None or (type(a) is int and 0 <= a <= MAX_NUSD))
        and (b is None or (type(b) is int and 0 <= b <= MAX_NUSD))
        and (c is None or (type(c) is int and 0 <= c <= MAX_NUSD))
        and (d is None or (type(d) is int and 0 <= d <= MAX_NUSD))
        and (e is None or (type(e) is int and 0 <= e <= MAX_NUSD))
    ):
        return values
    named = zip(CHANNELS, values, strict=True)
    return tuple(optional_count(f"{what} ({name})", v, maximum=MAX_NUSD) for name, v in named)

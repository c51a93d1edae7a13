"""The arithmetic of prices: pure functions of ints in the numba subset.

Tokens are counts, prices pico-dollars per token (= micro-dollars per million tokens), money nano-dollars.

Source: providers' price lists; half-even rounding to the nano-dollar at settlement is our own choice.
"""


def half_even(numerator: int, denominator: int) -> int:
    """Divide non-negative ints and round half to even."""
    quotient = numerator // denominator
    rest = 2 * (numerator - quotient * denominator)
    if rest > denominator or (rest == denominator and quotient % 2 == 1):
        return quotient + 1
    return quotient


def up(numerator: int, denominator: int) -> int:
    """Divide non-negative ints and round up; holds use it."""
    return (numerator + denominator - 1) // denominator


def picodollars(
    fresh: int,
    read: int,
    write: int,
    write_1h: int,
    output: int,
    p_fresh: int,
    p_read: int,
    p_write: int,
    p_write_1h: int,
    p_output: int,
) -> int:
    """Price disjoint counts, where `write_1h` is the part of `write` with its own price."""
    return fresh * p_fresh + read * p_read + (write - write_1h) * p_write + write_1h * p_write_1h + output * p_output

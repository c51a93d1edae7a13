"""Draws v1, tables and prices on 64-bit ints: the same bits as :mod:`harness_lab.draws` and the mock provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from harness_lab import draws
from harness_lab.pricing.table import PUSD_PER_NUSD
from harness_lab.simulate.fast.jit import half_even, jit, picodollars, up
from harness_lab.simulate.fast.layout import (
    MODEL_READ_PPM,
    MODEL_TIER,
    MODEL_TIERS,
    MODEL_WRITE_PPM,
    MODELS,
    NOTHING,
    TIER_ABOVE,
    TIER_RATES,
    TIER_SIZE,
    TIERS,
    ZERO,
    int64,
)

if TYPE_CHECKING:
    from harness_lab.simulate.fast.jit import Ints

_G, _D = np.uint64(draws.GAMMA), np.uint64(draws.CHILD)
_M1, _M2 = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)
_20, _27, _30, _31, _32, _40, _52 = (np.uint64(bits) for bits in (20, 27, 30, 31, 32, 40, 52))
_LOW20, _LOW12, _LOW32 = np.uint64(0xFFFFF), np.uint64(0xFFF), np.uint64(0xFFFF_FFFF)
_LAST = 4095
_PUSD = int64(PUSD_PER_NUSD)


@jit
def mix(z: np.uint64) -> Any:
    """Return the splitmix64 finaliser."""
    z = (z ^ (z >> _30)) * _M1
    z = (z ^ (z >> _27)) * _M2
    return z ^ (z >> _31)


@jit
def word(key: int, call: int, attempt: int, purpose: int) -> Any:
    """Return the random bits for one purpose."""
    return mix(np.uint64(key) + _G * np.uint64((call << 10 | attempt << 5 | purpose) + 1))


@jit
def run_key(seed: np.uint64, run: int) -> Any:
    """Return the key of a run's root."""
    return np.int64(mix(mix(seed) + _G * np.uint64(run + 1)))


@jit
def child_key(parent: int, call: int, slot: int) -> Any:
    """Return the key of a child at its first attempt."""
    return np.int64(mix((np.uint64(parent) ^ _D) + _G * np.uint64((call << 16 | slot << 8) + 1)))


@jit
def high(bits: np.uint64) -> Any:
    """Return the upper half of a word, which thresholds are compared with."""
    return np.int64(bits >> _32)


@jit
def low(bits: np.uint64) -> Any:
    """Return the lower half of a word."""
    return np.int64(bits & _LOW32)


@jit
def value(t: Ints, table: int, bits: np.uint64) -> Any:
    """Return the value of a word in an inverse-CDF table."""
    i = np.int64(bits >> _52)
    if 0 < i < _LAST:
        return t[table, 0, i] + (t[table, 1, i] * np.int64((bits >> _32) & _LOW20) >> 20)
    j = np.int64((bits >> _40) & _LOW12)
    f = np.int64((bits >> _20) & _LOW20)
    edge = 2 if i == 0 else 4
    return t[table, edge, j] + (t[table, edge + 1, j] * f >> 20)


@jit
def split(c: Ints, model: int, total: int, resent: int) -> tuple[int, int, int]:
    """Return a prompt as fresh tokens, tokens read from a cache and tokens written to it."""
    read = resent * c[c[MODELS] + model + MODEL_READ_PPM] // 1_000_000
    write = (total - read) * c[c[MODELS] + model + MODEL_WRITE_PPM] // 1_000_000
    return total - read - write, read, write


@jit
def price(c: Ints, model: int, fresh: int, read: int, write: int, output: int) -> int:
    """Return the cost of a call, nano-dollars; -1 without a price."""
    tiers = c[c[MODELS] + model + MODEL_TIERS]
    if tiers == 0:
        return NOTHING
    first = c[TIERS] + c[c[MODELS] + model + MODEL_TIER]
    p = first + TIER_RATES
    for tier in range(1, tiers):
        if fresh + read + write > c[first + tier * TIER_SIZE + TIER_ABOVE]:
            p = first + tier * TIER_SIZE + TIER_RATES
    pusd = picodollars(fresh, read, write, ZERO, output, c[p], c[p + 1], c[p + 2], c[p + 3], c[p + 4])
    return half_even(pusd, _PUSD)


@jit
def worst(c: Ints, model: int, prompt: int, most: int) -> int:
    """Return the cost of a call's worst case, nano-dollars; -1 without a price."""
    found = NOTHING
    for tier in range(c[c[MODELS] + model + MODEL_TIERS]):
        p = c[TIERS] + c[c[MODELS] + model + MODEL_TIER] + tier * TIER_SIZE
        above = c[p + TIER_ABOVE]
        if above == 0 or above < prompt:
            p += TIER_RATES
            dearest = max(c[p], c[p + 1], c[p + 2], c[p + 3])
            found = max(found, dearest * prompt + c[p + 4] * most)
    return NOTHING if found < 0 else up(found, _PUSD)

"""Draws v1: every random number is a hash of who asks for it and what for.

A draw depends on (seed, run, node path, call, attempt, purpose) and on nothing else, never on the order of use. So
policies are compared on the same luck (common random numbers), a refusal moves nobody else's draws, results do not
depend on the engine or on the number of workers, and one run can be reproduced alone.

With the splitmix64 finaliser ``mix``, the golden gamma G and arithmetic modulo 2^64::

    key(run)   = mix(mix(seed) + G (run + 1))
    key(child) = mix((key(parent) ^ D) + G ((call << 16 | slot << 8 | attempt) + 1))
    word       = mix(key(node) + G ((call << 10 | attempt << 5 | purpose) + 1))

References
----------
.. [1] G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
       https://doi.org/10.1145/2660193.2660195
"""

from __future__ import annotations

VERSION = "draws v1"

MASK = 0xFFFF_FFFF_FFFF_FFFF
GAMMA = 0x9E37_79B9_7F4A_7C15
CHILD = 0xD1B5_4A32_D192_ED03
"""Separates the keys of children from the words of their parent."""
ONE = 1 << 32
"""Probabilities are compared as 32-bit integers: a chance p holds when ``word >> 32 < p * 2**32``."""


def mix(z: int) -> int:
    """Return the splitmix64 finaliser of a 64-bit word."""
    z = (z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB & MASK
    return z ^ (z >> 31)


def run_key(seed: int, run: int) -> int:
    """Return the key of a run's root node."""
    return mix(mix(seed & MASK) + GAMMA * (run + 1) & MASK)


def child_key(parent: int, call: int, slot: int, attempt: int = 0) -> int:
    """Return the key of a child: named by the call after which it was asked for, its place there, and its attempt."""
    return mix((parent ^ CHILD) + GAMMA * ((call << 16 | slot << 8 | attempt) + 1) & MASK)


def word(key: int, call: int, attempt: int, purpose: int) -> int:
    """Return 64 random bits for one purpose of one attempt of one call of a node."""
    z = key + GAMMA * ((call << 10 | attempt << 5 | purpose) + 1) & MASK
    z = (z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB & MASK
    return z ^ (z >> 31)


def chance(probability: float) -> int:
    """Return the 32-bit threshold of a probability, for ``word >> 32 < threshold``."""
    return round(probability * ONE)

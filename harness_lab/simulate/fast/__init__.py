"""The fast engine: a declared family of worlds and policies, compiled with numba, identical to the kernel.

It calls the pure decision functions that the modules call; what is there twice is the flow of a tree, which
differential tests hold against the kernel. numba is imported when the first block is simulated.
"""

from __future__ import annotations

from importlib.util import find_spec

from harness_lab.simulate.fast.constants import Constants, constants
from harness_lab.simulate.fast.family import why_not
from harness_lab.simulate.fast.rows import FastRows
from harness_lab.simulate.fast.run import simulate

__all__ = ["Constants", "FastRows", "constants", "installed", "simulate", "why_not"]


def installed() -> bool:
    """Whether numba is installed (``pip install 'harness-lab[fast]'``)."""
    return find_spec("numba") is not None

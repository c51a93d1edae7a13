"""How the fast engine is compiled, and the pure rules that it shares with the modules.

Each decision is the function that the class calls too (``_rules.py`` of budget, limits and pricing), compiled. What is
here twice is the flow of a tree; differential tests hold it against the kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numba

from harness_lab.budget import _rules as budget_rules
from harness_lab.limits import _rules as limit_rules
from harness_lab.pricing import _rules as price_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    class Ints(Protocol):
        """An array of int64, as compiled functions see it."""

        shape: tuple[int, ...]

        def __getitem__(self, at: Any) -> int: ...
        def __setitem__(self, at: Any, value: int) -> None: ...
        def __len__(self) -> int: ...


F = TypeVar("F", bound="Callable[..., Any]")


OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}
"""Compiled code allocates nothing, so nobody counts who holds an array: counting took two thirds of the time."""


def jit(function: F) -> F:
    """Compile a function when it is first called with arguments of a type."""
    compiled: Any = numba.njit(**OPTIONS)(function)
    made: F = compiled
    return made


fits = jit(budget_rules.fits)
could_fit = jit(budget_rules.could_fit)
used_up = jit(budget_rules.used_up)
first_reached = jit(budget_rules.first_reached)
nested = jit(budget_rules.nested)
too_deep = jit(limit_rules.too_deep)
reached = jit(limit_rules.used_up)
earlier = jit(limit_rules.earlier)
half_even = jit(price_rules.half_even)
up = jit(price_rules.up)
picodollars = jit(price_rules.picodollars)

SHARED_RULES = tuple(Path(str(rules.__file__)) for rules in (budget_rules, limit_rules, price_rules))
"""Where the shared rules are read from."""

"""What most small packages are: a total that is looked at before a call and added to after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness_lab.adapters.protocol import Adapter, No
from harness_lab.adapters.watched import watched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.adapters.protocol import Call, Used


class Counter:
    """Totals in floats; None: no limit.

    Examples
    --------
    >>> counter = Counter(max_calls=1)
    >>> counter.check(); counter.add(cost_usd=0.1); counter.check()
    'calls'
    """

    def __init__(
        self, max_calls: int | None = None, max_tokens: int | None = None, max_cost_usd: float | None = None
    ) -> None:
        self.limits = {"calls": max_calls, "tokens": max_tokens, "cost_usd": max_cost_usd}
        self.used: dict[str, float] = dict.fromkeys(self.limits, 0)

    def check(self) -> str | None:
        """Return the limit that is reached, None if there is none."""
        reached = (name for name, limit in self.limits.items() if limit is not None and self.used[name] >= limit)
        return next(reached, None)

    def add(self, tokens: int | None = None, cost_usd: float | None = None) -> None:
        """Add a call; what is not known adds nothing."""
        for name, amount in (("calls", 1), ("tokens", tokens), ("cost_usd", cost_usd)):
            self.used[name] += amount or 0


class CheckThenAdd(Adapter):
    """The counter as an adapter."""

    name = "check-then-add"
    knobs: ClassVar[Mapping[str, str]] = {
        "calls": "max_calls: calls that ended, of the whole tree",
        "tokens": "max_tokens: tokens of calls that ended",
        "cost_usd": "max_cost_usd: dollars of calls that ended, a sum of floats",
    }

    def __init__(self, *, calls: int | None = None, tokens: int | None = None, cost_usd: float | None = None) -> None:
        made = f"Counter(max_calls={calls}, max_tokens={tokens}, max_cost_usd={cost_usd})"
        needs = "from harness_lab.adapters.check_then_add import Counter"
        self.counter = watched(Counter(calls, tokens, cost_usd), "counter", made=made, needs=needs, asks=("check",))

    def before_call(self, call: Call) -> No | None:
        """Look."""
        limit = self.counter.check()
        return None if limit is None else No(f"{limit} used up", limit)

    def after_call(self, call: Call, used: Used) -> None:
        """Add."""
        self.counter.add(tokens=used.tokens, cost_usd=used.cost_usd)


ADAPTER = CheckThenAdd

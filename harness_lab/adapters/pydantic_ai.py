"""pydantic-ai's ``UsageLimits``: looked at before a request, and again after its response."""

from __future__ import annotations

from copy import copy
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.protocol import Adapter, No
from harness_lab.adapters.watched import note, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.adapters.protocol import Call, Child, Used

REQUESTS = 50
"""``request_limit`` where nobody says."""
_NEEDS = "from pydantic_ai.usage import RunUsage, UsageLimits"
_FIELDS = {
    "calls": "request_limit",
    "tool_calls": "tool_calls_limit",
    "input": "input_tokens_limit",
    "tokens": "total_tokens_limit",
    "cost_usd": "cost_limit",
}


class PydanticAI(Adapter):
    """One ``RunUsage`` of the whole tree, and limits that each agent brings itself.

    A child is run as the documentation has it: inside a tool, with ``usage=ctx.usage``. It counts on its parent's
    usage, and its limits are its own: those that are declared for it, else the default of 50 requests. A limit of
    tokens or cost that a response passes ends the run there, with the response paid; here the next call is refused, so
    a run that was done with that response counts as completed. The error of a child ends its parent too unless the
    tool catches it; here it is caught.
    """

    name = "pydantic-ai"
    package = "pydantic-ai-slim"
    requires = "pydantic-ai-slim>=2.68"
    knobs: ClassVar[Mapping[str, str]] = {
        "calls": "request_limit: responses, of the usage that is passed on (50 where nobody says)",
        "tool_calls": "tool_calls_limit: tool calls that succeeded; a batch is looked at whole",
        "input": "input_tokens_limit: prompt tokens, looked at after a response",
        "tokens": "total_tokens_limit: all tokens, looked at after a response",
        "cost_usd": "cost_limit: dollars that its price list knows, looked at after a response",
    }

    def __init__(
        self,
        *,
        calls: int | None = REQUESTS,
        tool_calls: int | None = None,
        input: int | None = None,
        tokens: int | None = None,
        cost_usd: float | None = None,
    ) -> None:
        from pydantic_ai.usage import RunUsage  # type: ignore[import-not-found]

        said = {"tool_calls": tool_calls, "input": input, "tokens": tokens}
        given: dict[str, Any] = {"request_limit": calls} | {_FIELDS[n]: v for n, v in said.items() if v is not None}
        if cost_usd is not None:
            given["cost_limit"] = Decimal(repr(cost_usd))
        note("from decimal import Decimal")
        self.usage: Any = watched(RunUsage(), "usage", made="RunUsage()", needs=_NEEDS)
        self._limit(given)

    def _limit(self, given: dict[str, Any]) -> None:
        from pydantic_ai.usage import UsageLimits

        told = ", ".join(f"{name}={value!r}" for name, value in given.items())
        self.limits: Any = watched(UsageLimits(**given), "limits", made=f"UsageLimits({told})", needs=_NEEDS)
        self._passes = [self.limits.check_tokens] if {"input_tokens_limit", "total_tokens_limit"} & given.keys() else []
        self._passes += [partial(self.limits.check_cost, warn_if_cost_unavailable=False)] * ("cost_limit" in given)
        self._ended: No | None = None

    def before_call(self, call: Call) -> No | None:
        """Look at requests, tokens and cost so far."""
        if self._ended is not None:
            return self._ended
        return self._looked(self.limits.check_before_request)

    def after_call(self, call: Call, used: Used) -> None:
        """Add a response, and look at tokens and cost again; a call that failed is no request, its tokens count."""
        from pydantic_ai.usage import RunUsage

        counts = {"requests": int(used.status == "completed"), "input_tokens": used.input_tokens}
        counts["output_tokens"] = used.output_tokens
        cost = {} if used.cost_usd is None else {"cost": Decimal(repr(used.cost_usd))}
        self.usage.incr(RunUsage(**{name: count for name, count in counts.items() if count}, **cost))
        self._ended = next(filter(None, map(self._looked, self._passes)), None)

    def before_tools(self, call: Call) -> No | None:
        """Look at the tool calls so far and those that are wanted."""
        from pydantic_ai.usage import RunUsage

        projected = RunUsage(tool_calls=self.usage.tool_calls + call.count)
        return self._looked(self.limits.check_before_tool_call, projected)

    def after_tools(self, call: Call, used: Used) -> None:
        """Count those that succeeded."""
        if used.status == "completed":
            self.usage.tool_calls += call.count

    def child(self, child: Child) -> PydanticAI:
        """Pass the usage on, and no limits."""
        below = copy(self)
        below._limit({"request_limit": REQUESTS if child.calls is None else child.calls})
        return below

    def _looked(self, check: Callable[[Any], None], usage: Any = None) -> No | None:
        from pydantic_ai.exceptions import UsageLimitExceeded  # type: ignore[import-not-found]

        try:
            check(self.usage if usage is None else usage)
        except UsageLimitExceeded as error:
            said = str(error).partition(". ")[0]
            return No(said, next((name for name, field in _FIELDS.items() if field in said), ""))
        return None


ADAPTER = PydanticAI

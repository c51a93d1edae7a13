"""agent-tokenops: a governor with a ledger in micro-dollars, asked before a model call and told of what returned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.protocol import Adapter, No
from harness_lab.adapters.watched import note, noted, tried

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.adapters.protocol import Call, Used

MICROS = 1_000_000
NEEDS = (
    "from tokenops.framework import ApplyControls, Attribution, CallRequest, Observation, Usage, build_governor",
    'attr = Attribution(user="u", agent="a", trace_id="run")',
    "price = lambda provider, model, usage: {'m': usage.input + usage.output}[model]  # a token is a micro-dollar here",
)
_LIMITS = {"step_cap": "calls", "cost_budget": "cost_usd", "pre_call_worst_case": "cost_usd", "time_budget": "seconds"}


class TokenOps(Adapter):
    """One run: children share its trace, as agents of one trace do there.

    It prices tokens itself; here a token is a micro-dollar, so that a call costs what the story says. It halts a run by
    an exception that no agent catches; whoever goes on all the same is refused.
    """

    name = "agent-tokenops"
    package = "agent-tokenops"
    requires = "agent-tokenops==2.0.1"
    knobs: ClassVar[Mapping[str, str]] = {
        "calls": "step_cap.max_steps: model calls and tool calls that returned, of the whole trace",
        "cost_usd": "a budget of the trace in micro-dollars, under cost_budget and pre_call_worst_case",
        "seconds": "time_budget.max_seconds: from the first call that returned, looked at when one returns",
    }

    def __init__(
        self, *, calls: int | None = None, cost_usd: float | None = None, seconds: float | None = None
    ) -> None:
        from tokenops.framework import ApplyControls, Attribution, build_governor  # type: ignore[import-not-found]

        self.attr = Attribution(user="u", agent="a", trace_id="run")
        config = _config(calls, cost_usd, seconds)
        for line in NEEDS:
            note(line)
        made = f"governor = build_governor({config!r}, price, ApplyControls())"
        self.governor: Any = noted(made, build_governor(config, _price, ApplyControls()))
        tried('governor.ledger.open_run("run")', lambda: self.governor.ledger.open_run("run"))
        self.halted = ""

    def before_call(self, call: Call) -> No | None:
        """Ask before the call, with its worst case as prompt tokens; what cannot be bounded counts as nothing."""
        from tokenops.framework import CallRequest

        most = round((call.most.cost_usd or 0) * MICROS)
        model = "unpriced" if call.unpriced else "m"
        request = CallRequest(
            attr=self.attr, provider="p", model=model, estimated_input_tokens=most, max_output_tokens=0
        )
        told = f'provider="p", model="{model}", estimated_input_tokens={most}, max_output_tokens=0'
        line = f"governor.pre_call(CallRequest(attr=attr, {told}))"
        return self._halts(line, lambda: self.governor.pre_call(request), shown=True)

    def after_call(self, call: Call, used: Used) -> None:
        """Report a call that returned; one that failed is never seen. Usage that is not known is none."""
        if used.status == "completed":
            self._observe("llm", round((used.cost_usd or 0) * MICROS), used.at_s)

    def after_tools(self, call: Call, used: Used) -> None:
        """Report tool calls that returned: each is a step too."""
        if used.status == "completed":
            for _ in range(call.count):
                self._observe("tool", None, used.at_s)

    def _observe(self, kind: Any, micros: int | None, at_s: float) -> None:
        from tokenops.framework import Observation, Usage

        named: dict[str, Any] = {} if micros is None else {"model": "m", "usage": Usage(input=micros)}
        seen = Observation(attr=self.attr, node_type=kind, boundary_id="b", ts=at_s, **named)
        told = "" if micros is None else f', model="m", usage=Usage(input={micros})'
        line = f'governor.observe(Observation(attr=attr, node_type="{kind}", boundary_id="b", ts={at_s}{told}))'
        self._halts(line, lambda: self.governor.observe(seen) and None)

    def _halts(self, line: str, action: Any, *, shown: bool = False) -> No | None:
        from tokenops.framework import Halt

        try:
            tried(line, action, shown=shown)
        except Halt as halt:
            self.halted = self.halted or _LIMITS.get(str(halt.action.policy_id), "")
            return No(str(halt), self.halted)
        return None


def _price(_provider: str, model: str, usage: Any) -> int:
    return int({"m": usage.input + usage.output}[model])  # a model without a price is an error, as in its own book


def _config(calls: int | None, cost_usd: float | None, seconds: float | None) -> dict[str, Any]:
    """Return the package's own configuration."""
    policies: dict[str, Any] = {} if calls is None else {"step_cap": {"max_steps": calls}}
    budgets = []
    if cost_usd is not None:
        budgets.append({"id": "run", "limit_micros": round(cost_usd * MICROS)})
        policies |= {"cost_budget": {"budget": "run"}, "pre_call_worst_case": {"budget": "run"}}
    if seconds is not None:
        policies["time_budget"] = {"max_seconds": seconds}
    return {"budgets": budgets, "policies": policies}


ADAPTER = TokenOps

"""pydantic-ai: ``UsageLimits`` of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.export.forms.data import Json
from harness_lab.export.forms.python import Python
from harness_lab.export.targets.amounts import Count, Dollars
from harness_lab.export.targets.base import Draft, Knob, Target, Values, agents_lost
from harness_lab.export.targets.modules import meter
from harness_lab.policies import iteration_budget

if TYPE_CHECKING:
    from harness_lab.policies import ModuleSpec

_RUN = "one run, and every agent that is handed its usage and these limits (usage=ctx.usage, usage_limits=...)"
_AFTER = (
    "checked after each response against what it has used, so that the response that crosses it is paid for and lost"
)
LIMITS = ("request_limit", "tool_calls_limit", "input_tokens_limit", "total_tokens_limit", "cost_limit")

KNOBS = (
    Knob(
        key="request_limit", quantity="calls", bounds=("tree",), unit="model responses", scope=_RUN, amount=Count(),
        none="null", missing="50", note="checked before each request; missing means 50, so no limit is written as None",
    ),
    Knob(
        key="tool_calls_limit", quantity="tool-calls", bounds=("tree",), unit="successful tool calls", scope=_RUN,
        amount=Count(), note="a batch of tool calls is checked whole",
    ),
    Knob(
        key="input_tokens_limit", quantity="input", bounds=("tree",), unit="prompt tokens, cached ones included",
        scope=_RUN, amount=Count(), note=_AFTER,
    ),
    Knob(
        key="total_tokens_limit", quantity="tokens", bounds=("tree",), unit="prompt and completion tokens", scope=_RUN,
        amount=Count(), note=_AFTER,
    ),
    Knob(
        key="cost_limit", quantity="cost", bounds=("tree",), unit="USD by genai-prices", scope=_RUN, amount=Dollars(),
        note=f"{_AFTER}; a model without a price has no cost and is not limited",
    ),
)  # fmt: skip


def _extra(draft: Draft) -> None:
    agents_lost(draft, "UsageLimits are given to a run, not to an agent's definition")


def _model(values: Values) -> tuple[ModuleSpec, ...]:
    calls, tools, prompt, tokens, cost = (values.get(key) for key in LIMITS)
    found = meter(calls=calls, counts="replies") + meter(input=prompt, tokens=tokens, cost_usd=cost, trips="passed")
    return found if tools is None else (*found, *iteration_budget(tools, counts="tool-calls", whose="tree").modules)


TARGET = Target(
    name="pydantic-ai",
    title="pydantic-ai",
    version="2.68",
    knobs=KNOBS,
    forms={
        "python": Python(
            file="usage_limits.py",
            keys=LIMITS,
            constant="USAGE_LIMITS",
            call="UsageLimits",
            imports="from decimal import Decimal\n\nfrom pydantic_ai.usage import UsageLimits",
            decimals=("cost_limit",),
        ),
        "json": Json(file="usage-limits.json", keys=LIMITS),
    },
    model=_model,
    rest=_extra,
)

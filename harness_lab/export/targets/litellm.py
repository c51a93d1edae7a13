"""LiteLLM proxy: an agent's limits by session, budgets of keys, teams and users, and prices of models."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.export.forms.text import mapping, parsed
from harness_lab.export.targets.amounts import SAFE_INTEGER, Count, Dollars
from harness_lab.export.targets.base import Carried, Draft, Knob, Loss, Target, Values, agents_lost
from harness_lab.export.targets.litellm_budgets import EVERY, period_budgets, unsimulated
from harness_lab.export.targets.litellm_prices import FILE as MODEL_FILE
from harness_lab.export.targets.litellm_prices import MODELS, carry_prices
from harness_lab.export.targets.modules import meter
from harness_lab.policies import PeriodBudgetSpec

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Files
    from harness_lab.policies import ModuleSpec

TURNS, DOLLARS, TRACE = "max_iterations", "max_budget_per_session", "require_trace_id_on_calls_by_agent"
BUDGETS = "budgets"
AGENT_FILE, BUDGET_FILE = "litellm-agent.json", "litellm-budgets.json"
_SESSION = "one session: calls that send one x-litellm-trace-id (send the run's id)"
_ENDS = (
    "a session's counter ends an hour after it began (LITELLM_MAX_ITERATIONS_TTL, LITELLM_MAX_BUDGET_PER_SESSION_TTL)"
)
OWNERS = {"key": "/key/generate", "team": "/team/new", "user": "/user/new", "organization": "/organization/new"}
"""Whose budgets there are, and where their bodies are sent."""
_SPANS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_MINUTE = 60.0

KNOBS = (
    Knob(
        key=TURNS, quantity="calls", bounds=("tree",), unit="model calls", scope=_SESSION,
        amount=Count(most=SAFE_INTEGER), note=f"counted when a call starts; {_ENDS}",
    ),
    Knob(
        key=DOLLARS, quantity="cost", bounds=("tree",), unit="USD", scope=_SESSION, amount=Dollars(),
        note=f"checked before a call, charged after it; what has no known price is free; {_ENDS}",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Bodies:
    """Bodies of the proxy's calls: ``litellm_params`` of an agent, budgets with whose they are, prices of models."""

    keys: tuple[str, ...] = (TURNS, DOLLARS, BUDGETS)

    @property
    def paths(self) -> tuple[str, ...]:
        """Where they lie."""
        return (AGENT_FILE, BUDGET_FILE, MODEL_FILE)

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the files."""
        params = {key: values[key] for key in (TURNS, DOLLARS, TRACE) if key in values}
        files = {AGENT_FILE: _text({"litellm_params": params})} if params or BUDGETS not in values else {}
        files |= {BUDGET_FILE: _text(values[BUDGETS])} if BUDGETS in values else {}
        return files | ({MODEL_FILE: _text(values[MODELS])} if MODELS in values else {})

    def read(self, files: Files) -> Values:
        """Return what they hold."""
        values: Values = {}
        if AGENT_FILE in files:
            body = mapping(parsed(files[AGENT_FILE], what=AGENT_FILE), what=AGENT_FILE)
            params = mapping(body.get("litellm_params", {}), what="litellm_params")
            values |= {key: params[key] for key in (TURNS, DOLLARS, TRACE) if key in params}
        if BUDGET_FILE in files:
            values[BUDGETS] = parsed(files[BUDGET_FILE], what=BUDGET_FILE)
        if MODEL_FILE in files:
            values[MODELS] = parsed(files[MODEL_FILE], what=MODEL_FILE)
        return values


def _text(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _extra(draft: Draft) -> None:
    warns = draft.config.mode == "warn"
    if warns:
        for one in tuple(draft.carried):
            draft.losses.append(Loss(f"{one.value} = {one.written}", "a session's limit cannot only warn"))
        draft.carried.clear()
        draft.values.clear()
    elif draft.values:
        draft.values[TRACE] = True
    modules = [module for module in draft.config.policy.modules if isinstance(module, PeriodBudgetSpec)]
    budgets = [body for module in modules if (body := _budget(draft, module, warns=warns)) is not None]
    if budgets:
        draft.values[BUDGETS] = budgets
    draft.done |= {f"period_budget.{name}" for name in _PERIOD} if modules else set()
    carry_prices(draft)
    agents_lost(draft, "give the agent a key of its own, and the key a budget")


_PERIOD = (
    "calls", "input", "tokens", "fresh", "cost_usd", "by", "every", "rolling_s", "zone", "day", "carry",
    "carry_windows", "cap", "unknown_usage",
)  # fmt: skip


def _budget(draft: Draft, module: PeriodBudgetSpec, *, warns: bool) -> dict[str, Any] | None:
    """Return the body of one period budget; None where LiteLLM has none like it."""
    by = module.by
    if len(by) != 1 or by[0] not in OWNERS:
        means = f"LiteLLM has budgets of a {', '.join(OWNERS)}; this one is by {', '.join(by) or 'nobody'}"
        draft.losses.append(Loss(f"period_budget {module.name!r}", means))
        return None
    body: dict[str, Any] = {"for": by[0], "send_to": OWNERS[by[0]]}
    scope = f"a {by[0]} in a window of {_window(module) or 'its whole life'}"
    for name, key, unit in _told(module, warns=warns):
        body[key] = getattr(module, name)
        draft.carried.append(
            Carried(value=f"period_budget.{name}", key=key, written=body[key], unit=unit, scope=scope, note=_WINDOWS)
        )
    body |= {"budget_duration": span} if (span := _window(module)) else {}
    draft.losses += _lost(module, {name for name, _, _ in _told(module, warns=warns)})
    return body


_WINDOWS = "windows begin at the proxy's midnight in its time zone, or when the budget is made"


def _told(module: PeriodBudgetSpec, *, warns: bool) -> list[tuple[str, str, str]]:
    minute = module.rolling_s == _MINUTE and not warns
    found = [("cost_usd", "soft_budget" if warns else "max_budget", "USD")]
    found += [("calls", "rpm_limit", "calls a minute"), ("tokens", "tpm_limit", "tokens a minute")] if minute else []
    return [each for each in found if getattr(module, each[0]) is not None]


def _window(module: PeriodBudgetSpec) -> str:
    if module.every is not None:
        return EVERY[module.every]
    if module.rolling_s is None:
        return ""
    seconds = int(module.rolling_s)
    return next(f"{seconds // size}{letter}" for letter, size in _SPANS if seconds % size == 0)


def _lost(module: PeriodBudgetSpec, told: set[str]) -> list[Loss]:
    found = {
        name: "LiteLLM counts it by the minute only" if name != "fresh" else "LiteLLM does not count it"
        for name in ("calls", "input", "tokens", "fresh")
        if getattr(module, name) is not None and name not in told
    }
    if module.rolling_s is not None and not told <= {"calls", "tokens"}:
        found["rolling_s"] = "its windows are fixed, so up to twice the budget may fall into a rolling one"
    if module.rolling_s is not None and module.rolling_s != int(module.rolling_s):
        found["rolling_s"] = f"its windows are whole seconds: {int(module.rolling_s)} s"
    found |= {
        name: means
        for name, usual, means in _AXES
        if getattr(module, name) != usual and (name != "zone" or module.every is not None)
    }
    return [Loss(f"period_budget.{name} = {getattr(module, name)}", means) for name, means in found.items()]


_AXES = (
    ("zone", "UTC", "set the proxy's time zone (general_settings) to it"),
    ("day", 1, "months begin on the first"),
    ("carry", "none", "what is left of a window is not carried over"),
    ("cap", "soft", "a call is checked against what was spent before it, not against its worst case"),
    ("unknown_usage", "release", "a call without a known price is free"),
)


def _model(values: Values) -> tuple[ModuleSpec, ...]:
    """Return a session's limits, and the budgets that stand in a calendar's windows."""
    session = (*meter(calls=values.get(TURNS), counts="starts"), *meter(cost_usd=values.get(DOLLARS)))
    return (*session, *period_budgets(values.get(BUDGETS, ())))


TARGET = Target(
    name="litellm", title="LiteLLM proxy", version="1.110", knobs=KNOBS, forms={"json": Bodies()}, model=_model,
    modes=("enforce", "warn"), rest=_extra, unsimulated=lambda values: unsimulated(values.get(BUDGETS, ())),
)  # fmt: skip

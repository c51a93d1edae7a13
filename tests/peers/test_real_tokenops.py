"""agent-tokenops asked through its adapter lets through what its own wrapper of a model lets through.

Runs where the package is (``test_inside`` starts it there); skipped elsewhere.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from harness_lab.adapters import policy
from harness_lab.clock import Time
from harness_lab.outcome import Refusal
from harness_lab.policies import SpawnAsk, StepAsk, Use
from harness_lab.usage import amounts

pytest.importorskip("tokenops", reason="the public package agent-tokenops is not installed")

USD = 0.125  # 50,000 prompt tokens of gpt-4o at its list price


def theirs(governance: dict[str, Any], *, calls: int, failed: tuple[int, ...] = ()) -> list[bool]:
    """Run calls through the wrapper, and return which were dispatched."""
    from tokenops import tokenops_run
    from tokenops.capabilities import wrap_complete
    from tokenops.framework import Halt
    from tokenops.providers.types import ModelResponse

    sent: list[int] = []

    def model(*_given: Any, **_named: Any) -> Any:
        sent.append(1)
        if len(sent) in failed:
            raise RuntimeError("down")
        return ModelResponse(content="x", input_tokens=50_000, output_tokens=0)

    told = []
    config = {"governance": governance}
    with tokenops_run(config=config, service="s", intent="i", provider="openai", model="gpt-4o") as bound:
        ask = wrap_complete(
            bound.governor, bound.controls, bound.attr, provider="openai", model="gpt-4o", dispatch=model, service="s",
            est_input_fn=lambda _messages: 50_000,
        )  # fmt: skip
        for _ in range(calls):
            before = len(sent)
            with suppress(Halt, RuntimeError):
                ask("openai", "gpt-4o", [{"role": "user", "content": "go"}])
            told.append(len(sent) > before)
    return told


def ours(limits: dict[str, Any], *, calls: int, failed: tuple[int, ...] = ()) -> list[bool]:
    """Ask the adapter the same, and return what it let through."""
    started: Any = policy("agent-tokenops", **limits).start()
    root = started.spawn(SpawnAsk(None, (), amounts()), Time(0)).ticket
    told: list[bool] = []
    for call in range(calls):
        answer = started.admit(StepAsk(root, call, 0, amounts(calls=1, cost_usd=USD)), Time(0))
        told.append(not isinstance(answer, Refusal))
        if told[-1]:
            status: Any = "failed" if sum(told) in failed else "completed"
            used = amounts(calls=1, input=50_000, tokens=50_000, fresh=50_000, cost_usd=USD)
            started.settle(answer.ticket, Use(used, status), Time(0))
    return told


@pytest.mark.parametrize("limit", [0, 1, 3, 7])
@pytest.mark.parametrize("failed", [(), (1,), (2, 3)])
def test_a_cap_on_steps_lets_the_same_calls_through(limit: int, failed: tuple[int, ...]) -> None:
    expected = theirs({"policies": {"step_cap": {"max_steps": limit}}}, calls=10, failed=failed)
    assert ours({"calls": limit}, calls=10, failed=failed) == expected


@pytest.mark.parametrize("usd", [0.0, 0.1, 0.125, 0.25, 0.3, 1.0])
def test_a_budget_lets_the_same_calls_through(usd: float) -> None:
    budget = {"id": "run", "limit_micros": round(usd * 1_000_000), "dimension": "trace"}
    policies = {"cost_budget": {"budget": "run"}, "pre_call_worst_case": {"budget": "run", "default_max_output": 0}}
    expected = theirs({"budgets": [budget], "policies": policies}, calls=10)
    assert ours({"cost_usd": usd}, calls=10) == expected
    assert sum(expected) < 10

"""The counter that most targets are: what is a call, and when it is counted."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lab.clock import Time
from harness_lab.errors import InputError
from harness_lab.export.meter import MeterSpec
from harness_lab.outcome import Refusal
from harness_lab.policies import PolicySpec, SpawnAsk, StepAsk, Use
from harness_lab.usage import amounts

NOW = Time(0)


class Run:
    """One node, asked by hand."""

    def __init__(self, **parameters: Any) -> None:
        self.policy: Any = PolicySpec(name="meter", modules=(MeterSpec(**parameters),)).start()
        self.node = self.policy.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
        self.open: list[Any] = []

    def ask(self) -> bool:
        answer = self.policy.admit(StepAsk(self.node, len(self.open), 0, amounts()), NOW)
        if not isinstance(answer, Refusal):
            self.open.append(answer.ticket)
        return not isinstance(answer, Refusal)

    def end(self, status: Any = "completed", **used: Any) -> None:
        self.policy.settle(self.open.pop(), Use(amounts(calls=1, **used), status), NOW)


@pytest.mark.parametrize(("counts", "admitted"), [("attempts", 5), ("replies", 5), ("starts", 3)])
def test_calls_at_once_pass_a_limit_unless_it_counts_their_starts(counts: str, admitted: int) -> None:
    run = Run(calls=3, counts=counts)
    assert sum([run.ask() for _ in range(5)]) == admitted


@pytest.mark.parametrize(("counts", "failed"), [("attempts", 3), ("replies", 9), ("starts", 3)])
def test_a_failed_call_is_one_unless_only_replies_are(counts: str, failed: int) -> None:
    run = Run(calls=3, counts=counts)
    admitted = 0
    while admitted < 9 and run.ask():
        run.end("failed")
        admitted += 1
    assert admitted == failed


def test_what_a_failed_call_used_counts_all_the_same() -> None:
    run = Run(tokens=10, counts="replies")
    run.ask()
    run.end("failed", tokens=10)
    assert not run.ask()


def test_a_start_that_never_left_stays_counted() -> None:
    run = Run(calls=1, counts="starts")
    run.ask()
    run.end("unsent")
    assert not run.ask()


def test_what_is_counted_is_one_of_three() -> None:
    with pytest.raises(InputError, match="counts: expected one of attempts, replies, starts"):
        MeterSpec(calls=1, counts="turns")  # type: ignore[arg-type]

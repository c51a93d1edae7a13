"""A foreign limiter that is asked by hand, and what skips a test where its package is not."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lab.adapters import found_version, named, policy
from harness_lab.clock import Time
from harness_lab.outcome import Refusal
from harness_lab.policies import SpawnAsk, StepAsk, Use
from harness_lab.usage import amounts

NOW = Time(0)
MOST = 130
"""After so many calls a run that nothing ends is given up."""


def needs(name: str) -> None:
    if found_version(named(name)) is None:
        pytest.skip(f"{named(name).package} is not installed here (tests/peers/install makes an environment with it)")


class Tree:
    """A policy that is asked by hand; nodes by name."""

    def __init__(self, adapter: str, **limits: Any) -> None:
        self.policy: Any = policy(adapter, **limits).start()
        self.nodes = {"root": self.policy.spawn(SpawnAsk(None, (), amounts()), NOW).ticket}
        self.asked = 0

    def child(self, name: str, **asked: Any) -> None:
        self.asked += 1
        ask = SpawnAsk(self.nodes["root"], ((self.asked, 0, 0),), amounts(**asked))
        self.nodes[name] = self.policy.spawn(ask, NOW).ticket

    def call(self, node: str = "root", status: Any = "completed", attempt: int = 0, **used: Any) -> bool:
        self.asked += 1
        answer = self.policy.admit(StepAsk(self.nodes[node], self.asked, attempt, amounts(calls=1)), NOW)
        if isinstance(answer, Refusal):
            return False
        self.policy.settle(answer.ticket, Use(amounts(calls=1, **used), status), NOW)
        return True

    def calls(self, node: str = "root", **used: Any) -> int:
        """Call until a limit says no."""
        return next((n for n in range(MOST) if not self.call(node, **used)), MOST)

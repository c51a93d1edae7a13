"""The command line, called as a function; and a small experiment to give it."""

from __future__ import annotations

import pytest

from harness_lab.cli import main

SMALL = """
name = "small"
runs = 20
[workload]
root = "solo"
[workload.agents.solo]
model = "m"
calls = { dist = "lognorm", s = 0.5, scale = 4 }
startup_tokens = 1000
[provider.models.m]
output_tokens = 50
latency_s = 1
[provider.prices.m]
input = 3.0
output = 15.0
[[policies]]
name = "free"
[[policies]]
name = "tight"
[policies.shared_ledger]
max_steps = 3
"""


def run(*arguments: object) -> int:
    """Run `harness-lab` with these arguments and return its exit code."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return int(stop.value.code or 0)

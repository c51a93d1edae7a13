"""Column maps for flat tables that many people have, by name: ``read(path, columns="mini-swe-agent-runs")``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PRESETS: Final[Mapping[str, Mapping[str, str]]] = {
    "mini-swe-agent-runs": {
        "run": "instance_id",
        "record_unit": "=run",
        "agent": "=mini-swe-agent",
        "model": "model",
        "outcome": "exit_status",
        "source_status": "exit_status",
        "delivered": "resolved",
        "calls": "api_calls",
        "input_total": "prompt_tokens",
        "cache_read": "cached_tokens",
        "output": "completion_tokens",
        "reasoning": "reasoning_tokens",
        "cost_usd": "instance_cost",
        "start": "first_created",
        "end": "last_created",
        "ceiling_calls": "step_limit",
        "ceiling_cost_usd": "cost_limit",
    },
}
"""Name → {field: column}. A value that begins with ``=`` is a constant for every row."""

"""Column maps for flat tables that many people have, by name: ``read(path, columns="litellm")``.

===================  ==============================================================================================
mini-swe-agent-runs  a summary of mini-SWE-agent runs, one row a run
litellm              LiteLLM's spend logs: a dump of ``LiteLLM_SpendLogs`` (CSV, Parquet) or ``/spend/logs`` (JSON)
azure-llm            Azure's LLM inference traces: arrival, prompt and answer sizes of requests
burstgpt             BurstGPT: requests with model and session; a row without an answer failed
mooncake             Mooncake's traces: arrival, prompt and answer sizes
aider-leaderboard    aider's leaderboard rows (as JSON): aggregates of whole benchmark runs
===================  ==============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness_lab.settlements.readers import litellm, traces

Prepare = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Preset(Mapping[str, str]):
    """A column map that knows its source: a mapping of field → column, as a user would write it, and more.

    Parameters
    ----------
    columns : mapping of str to str
        Field → column; a value that begins with ``=`` is a constant for every row.
    required : tuple of str
        Columns that a file must have to be of this source; the others may be missing (then they are unknown).
    prepare : callable or None
        Makes a row ready for the map (adds columns, makes unknown what is none).
    note : str
        What a reader of the table should know; one note for each file.
    """

    columns: Mapping[str, str]
    required: tuple[str, ...]
    prepare: Prepare | None = None
    note: str = ""

    def __getitem__(self, field: str) -> str:
        return self.columns[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def prepared(self, row: dict[str, object]) -> dict[str, object]:
        """Return the row as the map expects it."""
        return row if self.prepare is None else self.prepare(row)


_OWN_CLOCK: Final = "times count from the trace's own start, not from 1970"

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
    "litellm": Preset(
        {
            "run": "request_id",
            "record_unit": "=call",
            "model": "model_group",
            "served_model": "model",
            "backend": "custom_llm_provider",
            "outcome": "status",
            "source_status": "status",
            "calls": "calls",
            "input_total": "prompt_tokens",
            "cache_read": "cache_read",
            "cache_write": "cache_write",
            "output": "completion_tokens",
            "reasoning": "reasoning",
            "cost_usd": "spend",
            "start": "startTime",
            "end": "endTime",
            "user": "user",
            "team": "team_id",
            "session": "session_id",
            "usage_known": "usage_known",
        },
        required=("request_id", "spend", "prompt_tokens", "completion_tokens"),
        prepare=litellm.prepared,
    ),
    "azure-llm": Preset(
        {
            "start": "TIMESTAMP",
            "record_unit": "=call",
            "calls": "calls",
            "input_total": "ContextTokens",
            "output": "GeneratedTokens",
        },
        required=("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
        prepare=traces.request,
        note="requests of a service, not agents; how each ended is not recorded, and masses at a value are its limits",
    ),
    "burstgpt": Preset(
        {
            "start_ns": "start_ns",
            "record_unit": "=call",
            "calls": "calls",
            "duration_s": "Elapsed time",
            "model": "Model",
            "session": "Session ID",
            "task_kind": "Log Type",
            "outcome": "outcome",
            "input_total": "Request tokens",
            "output": "Response tokens",
        },
        required=("Timestamp", "Model", "Request tokens", "Response tokens"),
        prepare=traces.burstgpt,
        note=f"{_OWN_CLOCK} (midnight of the first day, local time)",
    ),
    "mooncake": Preset(
        {
            "start_ns": "start_ns",
            "record_unit": "=call",
            "calls": "calls",
            "input_total": "input_length",
            "output": "output_length",
        },
        required=("timestamp", "input_length", "output_length"),
        prepare=traces.mooncake,
        note=_OWN_CLOCK,
    ),
    "aider-leaderboard": Preset(
        {
            "run": "dirname",
            "record_unit": "=benchmark",
            "agent": "=aider",
            "model": "model",
            "task_kind": "edit_format",
            "score": "pass_rate_2",
            "input_total": "prompt_tokens",
            "output": "completion_tokens",
            "cost_usd": "total_cost",
            "client_version": "versions",
        },
        required=("dirname", "model", "total_cost"),
        prepare=traces.benchmark,
        note="one row is a whole benchmark run of many exercises: an aggregate, no sample of runs",
    ),
}
"""Name → {field: column}. A value that begins with ``=`` is a constant for every row."""

"""Harbor trials (``jobs/<job>/<trial>/result.json``): one file is one run with one node; it has no call rows.

What becomes what:

- run: ``trial_name``. The job's own ``result.json`` holds sums over trials; it is left out, with a note.
- tokens: ``n_input_tokens`` counts cached ones (``n_cache_tokens``, reads); fields that are null are unknown.
- several steps (``step_results``): their counts are added, a sum with an unknown part is unknown.
- outcome: by ``exception_info.exception_type``: the agent's time-out is timed out, trouble before the agent started is
  "never started", trouble of the verifier leaves the agent's run completed, a cancel is cancelled. A trial that timed
  out may still have delivered.
- delivered, score: the reward; delivered means a reward of at least 1.
- ceiling on time: only where the trial's configuration overrides the task's own limit (times ``timeout_multiplier``).
- duration: ``agent_execution``, not set-up and verification. Older files have local times without a zone: their start
  is unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record
from harness_lab.settlements.readers.conventions import Conventions, Raw
from harness_lab.settlements.readers.times import Times, between
from harness_lab.settlements.readers.values import (
    Json,
    cause_of,
    document,
    dollars,
    ident,
    inside,
    items,
    obj,
    seconds,
    short_name,
    summed,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_BEFORE: Final = re.compile(r"(AgentSetup|Environment(Start|Build|Setup)|Agent(Install))")
_AFTER: Final = re.compile(r"Verifier|Reward")
_STOPPED: Final = re.compile(r"Cancelled|KeyboardInterrupt")
_COUNTS: Final = {"input": "n_input_tokens", "read": "n_cache_tokens", "output": "n_output_tokens"}


class HarborReader:
    """Reader of Harbor trial results."""

    name = "harbor"
    expects = "a Harbor trial (result.json)"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the head has what only trials and jobs have."""
        if not head.lstrip().startswith(b"{"):
            return False
        trial = b'"trial_name"' in head and any(
            mark in head for mark in (b'"agent_info"', b'"agent_result"', b'"trial_uri"', b'"task_checksum"')
        )
        return trial or (path.name == "result.json" and b'"n_total_trials"' in head)

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read trials; one that cannot be read is set aside."""
        output, times, rollups = ReaderOutput(), Times(), 0
        rules = Conventions(cached_inside=True)
        for file in files:
            try:
                data = obj(document(file), "a trial object")
                if "trial_name" not in data and "n_total_trials" in data:
                    rollups += 1
                    continue
                node = _trial(data, file, rules, times)
            except (Unfit, *UNREADABLE) as error:
                output.reject(file.name, None, str(error))
            else:
                output.node(node)
        if rollups:
            output.notes.append(f"{rollups:,} job result(s) hold sums over trials and were left out")
        rules.note("Harbor trials", output.notes)
        times.note("Harbor trials", output.notes)
        return output


def _trial(data: Json, file: RecordFile, rules: Conventions, times: Times) -> Record:
    run = ident(data.get("trial_name"))
    if run is None:
        raise Unfit("not a Harbor trial: it has no 'trial_name'")
    parts = [data["agent_result"]] if isinstance(data.get("agent_result"), dict) else []
    parts = parts or [
        one["agent_result"] for one in items(data.get("step_results")) if isinstance(one.get("agent_result"), dict)
    ]
    config, info = inside(data, "config", "agent"), data.get("agent_info")
    clock = data["agent_execution"] if isinstance(data.get("agent_execution"), dict) else {}
    provider = short_name(inside(info, "model_info", "provider"))
    node: Record = {
        "run": run,
        "node": "0",
        "depth": 0,
        "record_unit": "run",
        "agent": short_name(inside(info, "name")) or short_name(inside(config, "name")),
        "backend": provider,
        "model": short_name(inside(config, "model_name")) or short_name(inside(info, "model_info", "name")),
        "client_version": short_name(inside(info, "version")),
        "task_kind": short_name(data.get("source")),
        "source": file.name,
        **_use(parts, rules),
        "start_ns": times.at("started_at", clock.get("started_at")),
        "duration_ns": between(clock.get("started_at"), clock.get("finished_at")),
        "ceiling_time_ns": _limit(data, config),
        **_grade(data),
    }
    return {**node, **_end(data, ran=bool(clock.get("started_at")) or bool(parts))}


def _use(parts: Sequence[Json], rules: Conventions) -> Record:
    counts = {name: summed(whole(field, part.get(field)) for part in parts) for name, field in _COUNTS.items()}
    raw = Raw(**counts)
    known = None not in (raw.input, raw.output)
    cost = summed(dollars("cost_usd", part.get("cost_usd")) for part in parts)
    row: Record = {name: value for name, value in rules.disjoint("", raw).items() if name != "cache_write"}
    row.pop("input_fresh", None)  # cache writes are inside the input and are not told apart
    source = None if cost is None else "recorded"
    return {**row, "usage_known": known, "cost_nusd": cost, "cost_source": source}


def _limit(data: Json, config: object) -> int | None:
    override = seconds("override_timeout_sec", inside(config, "override_timeout_sec"))
    if not override:
        return None
    largest = seconds("max_timeout_sec", inside(config, "max_timeout_sec"))
    factor: Any = inside(data, "config", "timeout_multiplier")
    usual = isinstance(factor, (int, float)) and not isinstance(factor, bool) and 0 < factor <= 1_000
    return round(min(override, largest or override) * (factor if usual else 1))


def _grade(data: Json) -> Record:
    rewards = inside(data, "verifier_result", "rewards")
    if not isinstance(rewards, dict):
        return {}
    reward = rewards.get("reward") if len(rewards) != 1 else next(iter(rewards.values()))
    if isinstance(reward, bool) or not isinstance(reward, (int, float)) or not abs(reward) < 1e12:
        return {}
    return {"score": float(reward), "delivered": reward >= 1}


def _end(data: Json, *, ran: bool) -> Record:
    kind = inside(data, "exception_info", "exception_type")
    outcome, cause, code = _ended(kind if isinstance(kind, str) else "", ran=ran, done=bool(data.get("finished_at")))
    return {"outcome": outcome, "cause": cause, "stopped_by": code, "source_status": short_name(kind)}


def _ended(kind: str, *, ran: bool, done: bool) -> tuple[Outcome, Cause | None, Code | None]:
    if not kind:
        return (Outcome.COMPLETED, Cause.NONE, None) if ran or done else (Outcome.UNKNOWN, None, None)
    if kind == "AgentTimeoutError":
        return Outcome.TIMED_OUT, Cause.LIMIT, Code.TIME_EXHAUSTED
    if _STOPPED.search(kind):
        return Outcome.CANCELLED, Cause.USER, None
    if _BEFORE.search(kind):
        return Outcome.DENIED, Cause.INFRASTRUCTURE, None
    if _AFTER.search(kind):
        return Outcome.COMPLETED, Cause.NONE, None
    return Outcome.FAILED, cause_of(kind), None

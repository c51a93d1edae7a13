"""SWE-agent trajectories (``*.traj``): one file is one run with one node; the record has no call rows.

What becomes what:

- run: the file's name without its suffix (SWE-agent names files by the public instance id).
- outcome, cause, stopped_by: from ``info.exit_status``. ``submitted (exit_cost)`` is a limit stop *and* a result: it is
  exhausted, and ``source_status`` keeps the word. ``exit_cost`` is also what a call limit ends with; where the recorded
  call limit is reached, steps were the binding limit.
- ceilings: ``per_instance_call_limit``, ``per_instance_cost_limit`` and ``total_execution_timeout`` of
  ``replay_config``; 0 means no limit. The limit over a whole batch (``total_cost_limit``) is no limit of one run.
- tokens: ``tokens_sent`` counts cached tokens, so it is ``input_total``; the parts are unknown.
- cost: ``instance_cost``; ``total_cost`` of older files is the batch's running sum and is not taken. Cost 0 beside
  tokens is unknown: the client could not price the model.
- replays and demonstrations record zeros (replays count their steps as calls): no model was called, so calls, tokens
  and cost are unknown rather than free; ``iterations`` counts their steps.
- duration: the sum of ``execution_time`` is the tools' alone and is not taken; the record has no other time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.context import canonical, context_digest, text_digest
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE, RecordFile
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record
from harness_lab.settlements.readers.values import (
    Json,
    document,
    dollars,
    inside,
    items,
    obj,
    seconds,
    short_name,
    whole,
)

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIX: Final = ".traj"

_ENDS: Final[Mapping[str, tuple[Outcome, Cause | None]]] = {
    "submitted": (Outcome.COMPLETED, Cause.NONE),
    "exit_cost": (Outcome.EXHAUSTED, Cause.LIMIT),
    "exit_total_execution_time": (Outcome.TIMED_OUT, Cause.LIMIT),
    "exit_command_timeout": (Outcome.TIMED_OUT, Cause.LIMIT),
    "exit_context": (Outcome.FAILED, Cause.MODEL),
    "exit_format": (Outcome.FAILED, Cause.MODEL),
    "exit_forfeit": (Outcome.FAILED, Cause.MODEL),
    "exit_api": (Outcome.FAILED, Cause.INFRASTRUCTURE),
    "exit_environment_error": (Outcome.FAILED, Cause.INFRASTRUCTURE),
    "exit_error": (Outcome.FAILED, None),
    "skipped": (Outcome.DENIED, Cause.NONE),
}


class SweAgentReader:
    """Reader of SWE-agent trajectories."""

    name = "swe-agent"
    expects = "a SWE-agent trajectory (*.traj)"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the file is named as a trajectory, or its head has what only these have."""
        marks = b'"trajectory"' in head and b'"environment"' in head and b'"observation"' in head
        return head.lstrip().startswith(b"{") and (path.name.endswith(_SUFFIX) or marks)

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read trajectories; one that cannot be read is set aside."""
        output = ReaderOutput()
        replays = 0
        for file in files:
            try:
                node = _node(obj(document(file), "a trajectory object"), file)
            except (Unfit, *UNREADABLE) as error:
                output.reject(file.name, None, str(error))
                continue
            replays += output.node(node) and node["calls"] is None
        if replays:
            output.notes.append(
                f"{replays:,} SWE-agent trajectory file(s) have no token counts (replays or demonstrations); "
                "their usage and cost are unknown, not zero"
            )
        return output


def _node(data: Json, file: RecordFile) -> Record:
    info = data.get("info")
    if not isinstance(info, Mapping) or "trajectory" not in data:
        raise Unfit("not a trajectory: it has no 'info' or no 'trajectory'")
    agent = _agent(data.get("replay_config"))
    node: Record = {
        "run": file.path.name.removesuffix(_SUFFIX),
        "node": "0",
        "source": file.name,
        "record_unit": "run",
        "depth": 0,
        "agent": "swe-agent",
        "model": short_name(inside(agent, "model", "name")),
        "client_version": short_name(info.get("swe_agent_version")),
        "iterations": len(items(data["trajectory"])),
        **_use(info.get("model_stats")),
        **_limits(agent),
        **_context(agent, info),
    }
    return {**node, **_end(info, node)}


def _agent(recorded: object) -> Json:
    """Return the agent's part of the recorded configuration, which may be JSON in a text."""
    if isinstance(recorded, str):
        try:
            recorded = json.loads(recorded)
        except (ValueError, RecursionError):
            return {}
    found = inside(recorded, "agent")
    return found if isinstance(found, Mapping) else {}


def _use(stats: object) -> Record:
    sent, received = (
        whole("tokens_sent", inside(stats, "tokens_sent")),
        whole("tokens_received", inside(stats, "tokens_received")),
    )
    made, cost = (
        whole("api_calls", inside(stats, "api_calls")),
        dollars("instance_cost", inside(stats, "instance_cost")),
    )
    if not sent and not received:
        return {
            "calls": None,
            "usage_known": False,
            "cost_nusd": cost or None,
            "cost_source": "recorded" if cost else None,
        }
    known = None not in (sent, received)
    use = {"calls": made, "input_total": sent, "output": received, "usage_known": known}
    return {**use, "cost_nusd": cost or None, "cost_source": "recorded" if cost else None}


def _limits(agent: Json) -> Record:
    """Return the ceilings in force; 0 is this format's word for "no limit"."""
    calls = whole("per_instance_call_limit", inside(agent, "model", "per_instance_call_limit"))
    cost = dollars("per_instance_cost_limit", inside(agent, "model", "per_instance_cost_limit"))
    time = seconds("total_execution_timeout", inside(agent, "tools", "total_execution_timeout"))
    return {"ceiling_calls": calls or None, "ceiling_cost": cost or None, "ceiling_time_ns": time or None}


def _context(agent: Json, info: Json) -> Record:
    templates = inside(agent, "templates")
    texts = [inside(templates, name) for name in ("system_template", "instance_template")]
    digests = [text_digest(text) for text in texts if isinstance(text, str) and text]
    fields = {"client": "swe-agent", "version": short_name(info.get("swe_agent_version")), "templates": digests or None}
    return {"context": context_digest(fields), "context_fields": canonical(fields), "context_inferred": not digests}


def _end(info: Json, node: Record) -> Record:
    """Return outcome, cause, the binding limit and the source's word for it."""
    status = info.get("exit_status")
    text = status.strip() if isinstance(status, str) else ""
    inner = re.fullmatch(r"submitted \((\w+)\)", text)
    outcome, cause = _ENDS.get(inner[1] if inner else text, (Outcome.FAILED, None))
    if not text:
        outcome, cause = Outcome.UNKNOWN, None
    return {
        "outcome": outcome,
        "cause": cause,
        "stopped_by": _stopped_by(outcome, node),
        "overspent": _over(node),
        "source_status": text if inner else short_name(text),
    }


def _stopped_by(outcome: Outcome, node: Record) -> Code | None:
    if outcome is Outcome.TIMED_OUT:
        return Code.TIME_EXHAUSTED
    if outcome is not Outcome.EXHAUSTED:
        return None
    calls, limit = node["calls"], node["ceiling_calls"]
    return Code.STEPS_EXHAUSTED if None not in (calls, limit) and calls >= limit else Code.COST_EXHAUSTED


def _over(node: Record) -> bool | None:
    """Whether it used more than a ceiling: None if nothing was limited or what was limited is unknown."""
    pairs: list[tuple[Any, Any]] = [
        (node["calls"], node["ceiling_calls"]),
        (node["cost_nusd"], node["ceiling_cost"]),
    ]
    limited = [(used, limit) for used, limit in pairs if limit is not None]
    if any(used is not None and used > limit for used, limit in limited):
        return True
    return False if limited and all(used is not None for used, _ in limited) else None

"""mini-SWE-agent trajectories (``*.traj.json``, formats mini-swe-agent-1 and 1.1): one file is one run with one node.

What becomes what:

- run: ``instance_id`` (the file's name where there is none). Instance ids are public names of benchmark tasks and no
  personal data, so they are kept as they are.
- outcome, cause, stopped_by: from ``exit_status``. ``LimitsExceeded`` does not say which limit; the agent checks
  steps before cost, and so is it told here.
- ceilings: ``step_limit``, ``cost_limit`` and ``wall_time_limit_seconds`` of the recorded configuration; 0 means no
  limit.
- tokens: sums over the calls; ``prompt_tokens`` counts the cached part. If a call did not report its usage, or fewer
  calls are recorded than were made, the sums are unknown and ``usage_known`` is false.
- cost: ``instance_cost`` as recorded, to the nano-dollar. A cost of 0 is unknown unless every call says 0 itself:
  clients write 0 for models that they cannot price.
- times: from the stamps of the answers, so the time of the last answer itself is not in ``duration_ns``.
- context: the digest of client version, agent class and the templates sent before the task. Where the record holds no
  template, what is left is a fingerprint and marked as inferred. The first prompt's size is not part of it: it holds
  the task.

No text of a message or template enters the table, only digests of templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness_lab.errors import InputError
from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.context import canonical, context_digest, text_digest
from harness_lab.settlements.convert import Unfit, instant, money, span
from harness_lab.settlements.files import MAX_JSON_BYTES, UNREADABLE, RecordFile, open_bytes
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record
from harness_lab.settlements.rows import shown
from harness_lab.usage import count

if TYPE_CHECKING:
    from pathlib import Path

_Json = Mapping[str, Any]

_SUFFIX: Final = ".traj.json"

_ENDS: Final[Mapping[str, tuple[Outcome, Cause]]] = {
    "Submitted": (Outcome.COMPLETED, Cause.NONE),
    "LimitsExceeded": (Outcome.EXHAUSTED, Cause.LIMIT),
    "TimeExceeded": (Outcome.TIMED_OUT, Cause.LIMIT),
    "RepeatedFormatError": (Outcome.FAILED, Cause.MODEL),
    "ContextWindowExceededError": (Outcome.FAILED, Cause.MODEL),
    "KeyboardInterrupt": (Outcome.CANCELLED, Cause.USER),
    "UserInterruption": (Outcome.CANCELLED, Cause.USER),
    "": (Outcome.UNKNOWN, Cause.NONE),
}

_INFRASTRUCTURE: Final = re.compile(
    r"API|RateLimit|Timeout|Connection|ServiceUnavailable|Authentication|CalledProcess|OSError"
)

_SUMS: Final = ("input_total", "input_fresh", "cache_read", "cache_write", "output", "reasoning")


class MiniSweAgentReader:
    """Reader of mini-SWE-agent trajectories."""

    name = "mini-swe-agent"
    expects = "a mini-SWE-agent trajectory (*.traj.json)"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the file is named as a trajectory, or its head has what only these have."""
        marks = b'"mini_version"' in head or b'"mini-swe-agent-1' in head
        return head.lstrip().startswith(b"{") and (path.name.endswith(_SUFFIX) or marks)

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read trajectories; one that cannot be read is set aside."""
        output = ReaderOutput()
        for file in files:
            try:
                node, calls = _run(_document(file), file)
            except (Unfit, *UNREADABLE) as error:
                output.reject(file.name, None, str(error))
            else:
                output.node(node, calls)
        return output


def _document(file: RecordFile) -> _Json:
    with open_bytes(file.path) as opened:
        text = opened.read(MAX_JSON_BYTES + 1)
    if len(text) > MAX_JSON_BYTES:
        raise Unfit(f"larger than {MAX_JSON_BYTES:,} bytes")
    try:
        document = json.loads(text)
    except RecursionError:
        raise Unfit("nested too deeply") from None
    except ValueError as error:
        reason = (
            f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else "wrong encoding"
        )
        raise Unfit(f"not valid JSON ({reason}); cut short?") from None
    if not isinstance(document, dict) or not isinstance(document.get("info"), dict):
        raise Unfit("not a trajectory: it has no 'info'")
    return document


def _inside(value: object, *keys: str) -> Any:
    """Follow `keys` into nested objects; None as soon as one is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _whole(what: str, value: object) -> int | None:
    """Return a count; None stays None, anything else that is no count is a reason to set the record aside."""
    if value is None:
        return None
    try:
        return count(what, value)
    except InputError:
        raise Unfit(f"{what}: should be a whole number, at least 0, got {shown(value)}") from None


def _word(value: object) -> str | None:
    """Return a name (version, class, status); anything that could be prose is left out."""
    return value if isinstance(value, str) and re.fullmatch(r"[\w.+:/@-]{1,100}", value) else None


def _run(document: _Json, file: RecordFile) -> tuple[Record, list[Record]]:
    """Return the node row and the call rows of one trajectory."""
    info = document["info"]
    run = document.get("instance_id") or file.path.name.removesuffix(_SUFFIX)
    model = _inside(info, "config", "model", "model_name")
    where = {"run": run, "node": "0", "model": model, "source": file.name}
    calls = [{**where, "call": number, **_call(answer)} for number, answer in enumerate(_answers(document))]
    served = sorted({name for call in calls if (name := call["served_model"])})
    node = {
        **where,
        "record_unit": "run",
        "depth": 0,
        "agent": "mini-swe-agent",
        "backend": _backend(document),
        "served_model": " + ".join(served) or None,
        "client_version": _word(_inside(info, "mini_version")),
        "starts": 0,
        **_context(document),
        **_usage(info, calls),
        **_times(calls),
        **_limits(info),
    }
    return {**node, **_end(info, node)}, calls


def _answers(document: _Json) -> list[_Json]:
    """Return the ``extra`` of every message that a model call made."""
    messages = document.get("messages")
    extras = [_inside(message, "extra") for message in messages] if isinstance(messages, list) else []
    return [extra for extra in extras if isinstance(_inside(extra, "response"), Mapping)]


def _call(extra: _Json) -> Record:
    response = extra["response"]
    usage = _inside(response, "usage")
    cost = extra.get("cost") if extra.get("cost") is not None else _inside(usage, "cost")
    created = response.get("created") or extra.get("timestamp")
    return {
        "kind": "model",
        "status": "completed",
        "served_model": _word(response.get("model")),
        **_tokens(usage),
        "cost_nusd": None if cost is None else money(cost),
        "cost_source": None if cost is None else "recorded",
        "start_ns": None if created is None else instant(created),
    }


def _tokens(usage: object) -> Record:
    """Return one call's token counts; cached tokens are part of ``prompt_tokens``."""
    details = _inside(usage, "prompt_tokens_details")
    read = _first("cached_tokens", _inside(details, "cached_tokens"), _inside(usage, "cache_read_input_tokens"))
    written = _first(
        "cache_write_tokens",
        _inside(details, "cache_write_tokens"),
        _inside(details, "cache_creation_tokens"),
        _inside(usage, "cache_creation_input_tokens"),
    )
    return {
        "input_total": _whole("prompt_tokens", _inside(usage, "prompt_tokens")),
        "cache_read": read,
        "cache_write": 0 if written is None and read is not None else written,
        "output": _whole("completion_tokens", _inside(usage, "completion_tokens")),
        "reasoning": _whole("reasoning_tokens", _inside(usage, "completion_tokens_details", "reasoning_tokens")),
    }


def _first(what: str, *values: object) -> int | None:
    return _whole(what, next((value for value in values if value is not None), None))


def _usage(info: _Json, calls: Sequence[Record]) -> Record:
    """Return the node's sums; a sum with an unknown part is unknown."""
    made = _whole("api_calls", _inside(info, "model_stats", "api_calls"))
    made = len(calls) if made is None else made
    whole = made == len(calls) and all(call["input_total"] is not None for call in calls)
    rows = [{**call, "input_fresh": _fresh(call)} for call in calls]
    sums = {name: _sum(row[name] for row in rows) if whole else None for name in _SUMS}
    cost = _cost(_inside(info, "model_stats", "instance_cost"), calls)
    source = None if cost is None else "recorded"
    return {"calls": made, "usage_known": whole, **sums, "cost_nusd": cost, "cost_source": source}


def _fresh(call: Record) -> int | None:
    parts = (call["input_total"], call["cache_read"], call["cache_write"])
    return None if None in parts else parts[0] - parts[1] - parts[2]


def _sum(values: Iterable[int | None]) -> int | None:
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if len(known) == len(listed) else None


def _cost(recorded: object, calls: Sequence[Record]) -> int | None:
    cost = None if recorded is None else money(recorded)
    unpriced = cost == 0 and any(call["cost_nusd"] is None for call in calls)
    return None if unpriced else cost


def _times(calls: Sequence[Record]) -> Record:
    stamps = [call["start_ns"] for call in calls if call["start_ns"] is not None]
    return {"start_ns": min(stamps), "duration_ns": max(stamps) - min(stamps)} if stamps else {}


def _limits(info: _Json) -> Record:
    """Return the ceilings in force; 0 is this format's word for "no limit"."""
    agent = _inside(info, "config", "agent")
    steps, dollars = _whole("step_limit", _inside(agent, "step_limit")), _inside(agent, "cost_limit")
    seconds = _inside(agent, "wall_time_limit_seconds")
    return {
        "ceiling_calls": steps or None,
        "ceiling_cost": money(dollars) if dollars else None,
        "ceiling_time_ns": span(seconds) if seconds else None,
    }


def _end(info: _Json, node: Record) -> Record:
    """Return outcome, cause, the binding limit and the source's word for it."""
    status = info.get("exit_status")
    word = status if isinstance(status, str) else ""
    outcome, cause = _ENDS.get(word, (Outcome.FAILED, _guess(word)))
    return {
        "outcome": outcome,
        "cause": None if outcome is Outcome.UNKNOWN else cause,
        "stopped_by": _stopped_by(outcome, node),
        "overspent": _over(node),
        "source_status": _word(word),
    }


def _guess(exception: str) -> Cause | None:
    return Cause.INFRASTRUCTURE if _INFRASTRUCTURE.search(exception) else None


def _stopped_by(outcome: Outcome, node: Record) -> Code | None:
    if outcome is Outcome.TIMED_OUT:
        return Code.TIME_EXHAUSTED
    if outcome is not Outcome.EXHAUSTED:
        return None
    for used, limit, code in (
        ("calls", "ceiling_calls", Code.STEPS_EXHAUSTED),
        ("cost_nusd", "ceiling_cost", Code.COST_EXHAUSTED),
    ):
        if node[limit] is not None and node[used] is not None and node[used] >= node[limit]:
            return code
    return None


def _over(node: Record) -> bool | None:
    """Whether it used more than a ceiling: None if nothing was limited or what was limited is unknown."""
    pairs = [(node["calls"], node["ceiling_calls"]), (node["cost_nusd"], node["ceiling_cost"])]
    limited = [(used, limit) for used, limit in pairs if limit is not None]
    if any(used is not None and used > limit for used, limit in limited):
        return True
    return False if limited and all(used is not None for used, _ in limited) else None


def _backend(document: _Json) -> str | None:
    """Return the gateway in the model class (``openrouter_model.OpenRouterModel``), or the recorded provider."""
    kind = _inside(document, "info", "config", "model_type")
    gateway = re.search(r"(\w+?)_(?:\w+_)?model\.\w+$", kind) if isinstance(kind, str) else None
    if gateway:
        return gateway[1]
    providers = {_word(_inside(extra, "response", "provider")) for extra in _answers(document)}
    only = providers.pop() if len(providers) == 1 else None
    return None if only is None else only.lower()


def _context(document: _Json) -> Record:
    config = _inside(document, "info", "config")
    agent = _inside(config, "agent")
    templates = [_inside(agent, "system_template"), _inside(agent, "instance_template")]
    texts = [text for text in templates if isinstance(text, str) and text]
    fields = {
        "client": "mini-swe-agent",
        "version": _word(_inside(document, "info", "mini_version")),
        "agent_type": _word(_inside(config, "agent_type")),
        "templates": [text_digest(text) for text in texts] or None,
    }
    return {
        "context": context_digest(fields),
        "context_fields": canonical(fields),
        "context_inferred": not texts,
    }

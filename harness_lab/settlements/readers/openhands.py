"""OpenHands evaluation output (``output.jsonl``, also the resolver's): one line is one run with one node.

What becomes what:

- run: ``instance_id`` (a public task name).
- calls: ``metrics.token_usages``, with latency by ``response_id`` and cost by position where there are as many; the
  older shape has costs only. ``llm_metrics`` in the history is a running sum of the same calls and is not read.
- tokens: ``prompt_tokens`` counts cached ones (checked on the rows); the run's own ``accumulated_token_usage`` is the
  node's figure, with a note where it is not the sum of the calls.
- cost: ``accumulated_cost``; 0 is unknown where calls have no cost: unpriced models are recorded as 0.
- outcome: ``error`` names the limit ("maximum iteration", "maximum budget"), a stuck loop (failed, by the model) or a
  failure. Without error: completed if the last action is to finish, or the record says success, or shows no history.
- ceilings: ``max_iterations``, ``max_budget_per_task``.
- delivered: ``report.resolved``; in the resolver's output ``success``, which is its own judgement.
- times: of the events, local without a zone: start unknown, duration their difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.context import canonical, context_digest
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record
from harness_lab.settlements.readers.conventions import Conventions, Raw
from harness_lab.settlements.readers.json_lines import objects
from harness_lab.settlements.readers.times import Times, between
from harness_lab.settlements.readers.values import (
    Json,
    cause_of,
    dollars,
    ident,
    inside,
    items,
    seconds,
    served,
    short_name,
    summed,
    totals,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile


class OpenHandsReader:
    """Reader of OpenHands evaluation output."""

    name = "openhands"
    expects = "OpenHands evaluation output (output.jsonl)"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the head has what only these have."""
        marks = (b'"llm_config"', b'"accumulated_cost"', b'"test_result"', b'"condenser_config"')
        return head.lstrip().startswith(b"{") and b'"instance_id"' in head and any(mark in head for mark in marks)

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read runs; a line that cannot be taken is set aside."""
        output = ReaderOutput()
        for file in files:
            times = Times()
            for number, data in objects(file, output):
                try:
                    node, calls = _run(data, file, number, times, output.notes)
                except Unfit as error:
                    output.reject(file.name, number, str(error))
                else:
                    output.node(node, calls)
            times.note(file.name, output.notes)
        return output


def _run(data: Json, file: RecordFile, line: int, times: Times, notes: list[str]) -> tuple[Record, list[Record]]:
    run = ident(data.get("instance_id"))
    if run is None or not ("metrics" in data or "history" in data):
        raise Unfit("not an OpenHands record: it has no 'instance_id' or neither 'metrics' nor 'history'")
    metadata, metrics = data.get("metadata"), data.get("metrics")
    model = short_name(inside(metadata, "llm_config", "model"))
    where: Record = {"run": run, "node": "0", "model": model, "source": file.name, "line": line}
    rules = Conventions(cached_inside=True)
    calls = [{**where, **call} for call in _calls(metrics, rules)]
    node: Record = {
        **where,
        "record_unit": "run",
        "depth": 0,
        "agent": short_name(inside(metadata, "agent_class")) or "openhands",
        "served_model": served(call.get("served_model") for call in calls),
        "ceiling_calls": whole("max_iterations", inside(metadata, "max_iterations")) or None,
        "ceiling_cost": dollars("max_budget_per_task", inside(metrics, "max_budget_per_task")) or None,
        "delivered": _delivered(data),
        **totals(calls),
        **_use(metrics, calls, rules, f"{file.name}:{line}", notes),
        **_times(data, times),
        **_context(metadata),
    }
    rules.note(f"{file.name}:{line}", notes)
    return {**node, **_end(data, node)}, calls


def _raw(usage: object) -> Raw:
    return Raw(
        input=whole("prompt_tokens", inside(usage, "prompt_tokens")),
        read=whole("cache_read_tokens", inside(usage, "cache_read_tokens")),
        write=whole("cache_write_tokens", inside(usage, "cache_write_tokens")),
        output=whole("completion_tokens", inside(usage, "completion_tokens")),
        reasoning=whole("reasoning_tokens", inside(usage, "reasoning_tokens")),
    )


def _calls(metrics: object, rules: Conventions) -> list[Record]:
    usages, costs = items(inside(metrics, "token_usages")), inside(metrics, "costs")
    costs = costs if isinstance(costs, list) else []
    latency = {
        one.get("response_id"): one.get("latency") for one in items(inside(metrics, "response_latencies")) if _id(one)
    }
    if not usages:
        return [{"call": number, **_plain(cost)} for number, cost in enumerate(costs)]
    raws = [_raw(usage) for usage in usages]
    for raw in raws:
        rules.see("", raw)
    rows: list[Record] = []
    for number, (usage, raw) in enumerate(zip(usages, raws, strict=True)):
        cost = _cost(costs[number]) if len(costs) == len(usages) else {}
        row: Record = {"call": number, "kind": "model", "status": "completed", **rules.disjoint("", raw), **cost}
        row["served_model"] = short_name(usage.get("model"))
        row["duration_ns"] = seconds("latency", latency.get(usage.get("response_id"))) if _id(usage) else None
        rows.append(row)
    return rows


def _id(one: Json) -> bool:
    return isinstance(one.get("response_id"), str) and bool(one["response_id"])


def _plain(cost: object) -> Record:
    return {"kind": "model", "status": "completed", **_cost(cost)}


def _cost(entry: object) -> Record:
    """Return a call's cost; older files have a plain number in place of an object."""
    known = dollars("cost", inside(entry, "cost") if isinstance(entry, dict) else entry)
    return {"cost_nusd": known, "cost_source": None if known is None else "recorded"}


def _use(metrics: object, calls: Sequence[Record], rules: Conventions, name: str, notes: list[str]) -> Record:
    """Return the run's own figures where it has them."""
    use: Record = {}
    cost = dollars("accumulated_cost", inside(metrics, "accumulated_cost"))
    priced = summed(call.get("cost_nusd") for call in calls)
    if cost is not None:
        unpriced = cost == 0 and priced is None
        use |= {"cost_nusd": None if unpriced else cost, "cost_source": None if unpriced else "recorded"}
    usage = inside(metrics, "accumulated_token_usage")
    if isinstance(usage, dict) and usage.get("prompt_tokens") is not None:
        own = rules.disjoint("", _raw(usage))
        recorded = [call.get("input_total") for call in calls]
        if calls and summed(recorded) != own.get("input_total"):
            notes.append(
                f"{name}: the run's own prompt tokens are not the sum of its {len(calls):,} calls; the run's are kept"
            )
        use |= {**own, "usage_known": True, "calls": len(calls) or None}
    return use


def _delivered(data: Json) -> bool | None:
    for value in (
        inside(data, "report", "resolved"),
        inside(data, "test_result", "report", "resolved"),
        data.get("success"),
    ):
        if isinstance(value, bool):
            return value
    return None


def _times(data: Json, times: Times) -> Record:
    stamps = [one.get("timestamp") for one in items(data.get("history")) if isinstance(one.get("timestamp"), str)]
    if not stamps:
        return {}
    return {"start_ns": times.at("timestamp", stamps[0]), "duration_ns": between(stamps[0], stamps[-1])}


def _context(metadata: object) -> Record:
    fields: dict[str, Any] = {
        "client": "openhands",
        "agent_class": short_name(inside(metadata, "agent_class")),
        "condenser": short_name(inside(metadata, "condenser_config", "type")),
    }
    return {"context": context_digest(fields), "context_fields": canonical(fields), "context_inferred": True}


def _end(data: Json, node: Record) -> Record:
    outcome, cause, code = _ended(data)
    pairs = [(node.get("calls"), node["ceiling_calls"]), (node.get("cost_nusd"), node["ceiling_cost"])]
    over = [used > limit for used, limit in pairs if used is not None and limit is not None]
    return {"outcome": outcome, "cause": cause, "stopped_by": code, "overspent": any(over) if over else None}


def _ended(data: Json) -> tuple[Outcome, Cause | None, Code | None]:
    error = data.get("error")
    if isinstance(error, str) and error:
        text = error.lower()
        if "maximum iteration" in text:
            return Outcome.EXHAUSTED, Cause.LIMIT, Code.STEPS_EXHAUSTED
        if "maximum budget" in text or "max budget" in text:
            return Outcome.EXHAUSTED, Cause.LIMIT, Code.COST_EXHAUSTED
        stuck = "stuckinloop" in text or "stuck in" in text
        return Outcome.FAILED, Cause.MODEL if stuck else cause_of(error), None
    history = items(data.get("history"))
    if data.get("success") is True or not history or short_name(history[-1].get("action")) in {"finish", "reject"}:
        return Outcome.COMPLETED, Cause.NONE, None
    return Outcome.UNKNOWN, None, None

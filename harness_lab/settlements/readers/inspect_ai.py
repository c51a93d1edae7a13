"""Inspect AI logs (``.json``, or ``.eval``, which is a zip): one sample in one epoch is one run with one node.

What becomes what:

- run: the log's run id, the sample's id and its epoch; ``task_kind`` is the task's name.
- calls: the ``model`` events of the sample, where they were logged; ``model_usage`` of the sample is the node's figure
  (all models together) and ``stats.model_usage`` of the log, a sum over samples, is not added.
- tokens: ``input_tokens`` leaves cached ones out, says the format; older logs of some providers count them. The total
  of each row tells, and rows that differ from the rule are noted.
- outcome: ``limit`` names the limit: token, message (told as steps), time and working time, cost, a custom one;
  operator is a stop by the user, context is the model's end. ``error`` failed. A sample without a score in a log that
  was cancelled or never ended is cancelled or unknown.
- ceilings: ``token_limit``, ``cost_limit``, ``time_limit`` (else ``working_limit``) of the configuration.
- score, delivered: of the first scorer, ``C`` and true delivered, ``I`` and false did not, numbers are scores only.
- cost: ``total_cost`` where the log has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.context import canonical, context_digest
from harness_lab.settlements.convert import Unfit
from harness_lab.settlements.files import UNREADABLE
from harness_lab.settlements.readers.archives import Archive
from harness_lab.settlements.readers.base import ReaderOutput, ReadOptions, Record
from harness_lab.settlements.readers.conventions import Conventions, Raw
from harness_lab.settlements.readers.times import Times
from harness_lab.settlements.readers.values import (
    SUMS,
    Json,
    cause_of,
    document,
    dollars,
    ident,
    inside,
    items,
    obj,
    parsed,
    seconds,
    served,
    short_name,
    summed,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from harness_lab.settlements.files import RecordFile

_End = tuple[Outcome, Cause | None, Code | None]

_LIMITS: Final[Mapping[str, _End]] = {
    "token": (Outcome.EXHAUSTED, Cause.LIMIT, Code.BUDGET_EXHAUSTED),
    "message": (Outcome.EXHAUSTED, Cause.LIMIT, Code.STEPS_EXHAUSTED),
    "turn": (Outcome.EXHAUSTED, Cause.LIMIT, Code.STEPS_EXHAUSTED),
    "cost": (Outcome.EXHAUSTED, Cause.LIMIT, Code.COST_EXHAUSTED),
    "time": (Outcome.TIMED_OUT, Cause.LIMIT, Code.TIME_EXHAUSTED),
    "working": (Outcome.TIMED_OUT, Cause.LIMIT, Code.TIME_EXHAUSTED),
    "operator": (Outcome.CANCELLED, Cause.USER, None),
    "context": (Outcome.FAILED, Cause.MODEL, None),
    "custom": (Outcome.EXHAUSTED, Cause.LIMIT, None),
}
_GRADES: Final = {"C": (1.0, True), "I": (0.0, False), "P": (0.5, None), "N": (None, None)}


class InspectReader:
    """Reader of Inspect AI logs."""

    name = "inspect"
    expects = "an Inspect AI log (.eval or .json)"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return whether the file is an archive named as a log, or its head has what only these have."""
        if head.startswith(b"PK\x03\x04"):
            return path.suffix == ".eval" or b"_journal/" in head or b"header.json" in head
        return head.lstrip().startswith(b"{") and b'"eval"' in head and (b'"eval_id"' in head or b'"task_id"' in head)

    def read(self, files: Sequence[RecordFile], options: ReadOptions) -> ReaderOutput:
        """Read the samples of all logs; a sample that cannot be taken is set aside."""
        output = ReaderOutput()
        for file in files:
            log = _Log(file)
            try:
                log.read(output)
            except (Unfit, *UNREADABLE) as error:
                output.reject(file.name, None, str(error))
        return output


class _Log:
    """One log being read."""

    def __init__(self, file: RecordFile) -> None:
        self.file = file
        self.header: Json = {}
        self.rules, self.times = Conventions(cached_inside=False), Times()

    def read(self, output: ReaderOutput) -> None:
        before = output.read
        packed = self.file.head.startswith(b"PK")
        for sample in self._packed(output) if packed else self._plain():
            try:
                node, calls = self._sample(obj(sample, "a sample object"))
            except Unfit as error:
                output.reject(self.file.name, None, str(error))
            else:
                output.node(node, calls)
        if output.read == before:
            output.notes.append(f"{self.file.name}: a log without samples; its sums are no records")
        self.rules.note(self.file.name, output.notes)
        self.times.note(self.file.name, output.notes)

    def _plain(self) -> Iterator[object]:
        self.header = obj(document(self.file), "a log object")
        if "eval" not in self.header:
            raise Unfit("not an Inspect log: it has no 'eval'")
        samples = self.header.get("samples")
        yield from samples if isinstance(samples, list) else []

    def _packed(self, output: ReaderOutput) -> Iterator[object]:
        """Yield the samples of an archive; the header comes first, or the journal's start if the log never ended."""
        with Archive(self.file.path) as archive:
            named = {member.filename: member for member in archive.members()}
            head = named.get("header.json") or named.get("_journal/start.json")
            if head is None:
                raise Unfit("not an Inspect log: it has no 'header.json'")
            self.header = obj(parsed(archive.read(head)), "a header object")
            for name, member in named.items():
                if not (name.startswith("samples/") and name.endswith(".json")):
                    continue
                try:
                    yield parsed(archive.read(member))
                except Unfit as error:
                    output.reject(self.file.name, None, f"sample: {error}")

    def _sample(self, sample: Json) -> tuple[Record, list[Record]]:
        about = self.header.get("eval")
        name, epoch = ident(sample.get("id")), whole("epoch", sample.get("epoch"))
        if name is None:
            raise Unfit("not a sample: it has no 'id'")
        log = ident(inside(about, "run_id"), inside(about, "eval_id"), self.file.name)
        where: Record = {"run": f"{log}/{name}/{1 if epoch is None else epoch}", "node": "0", "source": self.file.name}
        calls = self._calls([event for event in items(sample.get("events")) if event.get("event") == "model"], where)
        node: Record = {
            **where,
            **_about(about),
            "served_model": served(call["served_model"] for call in calls),
            "calls": len(calls) if "events" in sample else None,
            **self._times(sample),
            **self._use(sample, calls),
            **_ceilings(inside(about, "config")),
            **_grade(sample.get("scores")),
            **_context(about),
        }
        return {**node, **_end(sample, self.header, node)}, calls

    def _times(self, sample: Json) -> Record:
        total = seconds("total_time", sample.get("total_time"))
        working = seconds("working_time", sample.get("working_time"))
        first = next((event.get("timestamp") for event in items(sample.get("events"))), None)
        return {
            "start_ns": self.times.at("started_at", sample.get("started_at") or first),
            "duration_ns": total,
            "wait_ns": None if total is None or working is None or working > total else total - working,
        }

    def _calls(self, events: Sequence[Json], where: Record) -> list[Record]:
        raws = [_raw(inside(event, "output", "usage")) for event in events]
        for event, raw in zip(events, raws, strict=True):
            self.rules.see(event.get("model") if isinstance(event.get("model"), str) else None, raw)
        rows = []
        for number, (event, raw) in enumerate(zip(events, raws, strict=True)):
            group = event.get("model") if isinstance(event.get("model"), str) else None
            failed = bool(event.get("error")) or bool(inside(event, "output", "error"))
            took = inside(event, "output", "time")
            rows.append(
                {
                    **where,
                    "call": number,
                    "kind": "model",
                    "status": "failed" if failed else "completed",
                    "model": short_name(event.get("model")),
                    "served_model": short_name(inside(event, "output", "model")),
                    "start_ns": self.times.at("timestamp", event.get("timestamp")),
                    "duration_ns": seconds("time", event.get("working_time") if took is None else took),
                    **_cost(inside(event, "output", "usage")),
                    **self.rules.disjoint(group, raw),
                }
            )
        return rows

    def _use(self, sample: Json, calls: Sequence[Record]) -> Record:
        """Return the sample's own figures, all its models together; without any, usage is unknown."""
        usage = sample.get("model_usage")
        parts = (
            [(name, part) for name, part in usage.items() if isinstance(part, dict)] if isinstance(usage, dict) else []
        )
        if not parts:
            return {"usage_known": False if calls else None}
        rows = [self.rules.disjoint(name, _raw(part)) for name, part in parts]
        sums = {name: summed(row.get(name) for row in rows) for name in SUMS}
        cost = summed(_cost(part)["cost_nusd"] for _, part in parts)
        known = None not in (sums["output"],) and (sums["input_total"] is not None or sums["input_fresh"] is not None)
        return {**sums, "usage_known": known, "cost_nusd": cost, "cost_source": None if cost is None else "recorded"}


def _about(about: object) -> Record:
    model = short_name(inside(about, "model"))
    return {
        "model": model,
        "record_unit": "run",
        "depth": 0,
        "agent": short_name(inside(about, "solver")) or "inspect",
        "backend": model.partition("/")[0] if model and "/" in model else None,
        "task_kind": short_name(inside(about, "task")),
        "client_version": short_name(inside(about, "packages", "inspect_ai")),
    }


def _raw(usage: object) -> Raw:
    return Raw(
        input=whole("input_tokens", inside(usage, "input_tokens")),
        read=whole("input_tokens_cache_read", inside(usage, "input_tokens_cache_read")),
        write=whole("input_tokens_cache_write", inside(usage, "input_tokens_cache_write")),
        output=whole("output_tokens", inside(usage, "output_tokens")),
        reasoning=whole("reasoning_tokens", inside(usage, "reasoning_tokens")),
        total=whole("total_tokens", inside(usage, "total_tokens")),
    )


def _cost(usage: object) -> Record:
    cost = dollars("total_cost", inside(usage, "total_cost"))
    return {"cost_nusd": cost, "cost_source": None if cost is None else "recorded"}


def _ceilings(config: object) -> Record:
    time = inside(config, "time_limit")
    time = inside(config, "working_limit") if time is None else time
    return {
        "ceiling_tokens": whole("token_limit", inside(config, "token_limit")),
        "ceiling_cost": dollars("cost_limit", inside(config, "cost_limit")),
        "ceiling_time_ns": seconds("time_limit", time),
    }


def _grade(scores: object) -> Record:
    value: Any = inside(next(iter(scores.values()), None), "value") if isinstance(scores, dict) else None
    if isinstance(value, bool):
        return {"score": float(value), "delivered": value}
    if isinstance(value, str) and value in _GRADES:
        score, delivered = _GRADES[value]
        return {"score": score, "delivered": delivered}
    usual = isinstance(value, (int, float)) and abs(value) < 1e12
    return {"score": float(value)} if usual else {}


def _context(about: object) -> Record:
    fields = {
        "client": "inspect",
        "task": short_name(inside(about, "task")),
        "version": ident(inside(about, "task_version")),
    }
    return {"context": context_digest(fields), "context_fields": canonical(fields), "context_inferred": True}


def _end(sample: Json, header: Json, node: Record) -> Record:
    kind = inside(sample, "limit", "type")
    outcome, cause, code = _ended(sample, header, kind if isinstance(kind, str) else None)
    used, limit = node.get("input_total"), node["ceiling_tokens"]
    spent = None if None in (used, node.get("output")) else used + node["output"]
    over = None if limit is None or spent is None else spent > limit
    status = kind if isinstance(kind, str) and kind in _LIMITS else header.get("status")
    return {
        "outcome": outcome,
        "cause": cause,
        "stopped_by": code,
        "overspent": over,
        "source_status": short_name(status),
    }


def _ended(sample: Json, header: Json, kind: str | None) -> _End:
    if kind is not None:
        return _LIMITS.get(kind, (Outcome.EXHAUSTED, Cause.LIMIT, None))
    if sample.get("error"):
        message = inside(sample, "error", "message")
        return Outcome.FAILED, cause_of(message[:200]) if isinstance(message, str) else None, None
    if sample.get("scores") or header.get("status") == "success":
        return Outcome.COMPLETED, Cause.NONE, None
    return (Outcome.CANCELLED if header.get("status") == "cancelled" else Outcome.UNKNOWN), None, None

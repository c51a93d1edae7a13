"""From spans (or observations) of a trace to nodes and calls, whoever recorded them.

- run: the trace; or, by choice, the session that traces belong to (a trace without one is its own).
- node: an agent span; calls that have no agent above them belong to a node ``0`` for the trace itself. Where one agent
  span has the whole trace's calls below it, that is the root and there is no ``0``.
- call: a *leaf* model span. A model span with another one below it is a wrapper that tells the same usage again: the
  inner ones count, unless only the wrapper tells usage. Agent and chain spans repeat the sums of what is below them;
  their figures are never read.
- a span that comes twice (exported again, in two files) counts once. Parents that are not in the files, and loops of
  parents, end the way up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from harness_lab.outcome import Cause, Code, Outcome
from harness_lab.settlements.readers.conventions import Conventions, Raw
from harness_lab.settlements.readers.values import served, totals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness_lab.settlements.readers.base import ReaderOutput, Record

Kind = Literal["model", "agent", "tool", "other"]
End = tuple[Outcome, Cause | None, Code | None]

ROOT = "0"


@dataclass(slots=True, kw_only=True)
class Span:
    """One span, as far as the table needs it.

    Parameters
    ----------
    trace, id, parent : str
        Its ids; the parent may be unknown.
    kind : {"model", "agent", "tool", "other"}
        What it is.
    raw : Raw
        Token counts of a model span, as recorded.
    group : str or None
        Who emitted it: rows of one group follow one convention.
    end : tuple
        How it ended: outcome, cause, reason code.
    fields : dict
        Columns that a node or a call takes over as they are.
    """

    trace: str
    id: str
    parent: str | None
    kind: Kind
    raw: Raw = field(default_factory=Raw)
    group: str | None = None
    start_ns: int | None = None
    duration_ns: int | None = None
    cost_nusd: int | None = None
    end: End = (Outcome.UNKNOWN, None, None)
    source: str = ""
    line: int | None = None
    fields: Record = field(default_factory=dict)

    @property
    def tells(self) -> bool:
        """Whether it has a token count."""
        return self.raw.input is not None or self.raw.output is not None


class Traces:
    """All spans of some files, by trace.

    Parameters
    ----------
    rules : Conventions
        Which convention the format's counts follow; every group is checked on its rows.
    name : str
        How the format is called in notes.
    unit : {"trace", "session"}
        What a run is.
    """

    def __init__(self, rules: Conventions, *, name: str, unit: str = "trace") -> None:
        self._rules, self._name, self._unit = rules, name, unit
        self._traces: dict[str, dict[str, Span]] = defaultdict(dict)
        self._again = self._wrappers = 0

    def add(self, span: Span) -> None:
        """Take a span; one that came before is not taken again."""
        trace = self._traces[span.trace]
        if span.id in trace:
            self._again += 1
            return
        trace[span.id] = span
        if span.kind == "model":
            self._rules.see(span.group, span.raw)

    def write(self, output: ReaderOutput) -> None:
        """Add the rows of all traces, and notes, to a reader's output; a trace without agents and models gives none."""
        empty = 0
        for trace in self._traces.values():
            empty += not self._trace(trace, output)
        if self._again:
            output.notes.append(f"{self._name}: {self._again:,} span(s) came more than once and count once")
        if self._wrappers:
            output.notes.append(f"{self._name}: {self._wrappers:,} model span(s) wrap others and were left out")
        if empty:
            output.notes.append(f"{self._name}: {empty:,} trace(s) without a model call or an agent were left out")
        self._rules.note(self._name, output.notes)

    def _trace(self, spans: dict[str, Span], output: ReaderOutput) -> bool:
        leaves, dropped = leaf_calls(spans)
        self._wrappers += dropped
        trace = next(iter(spans.values())).trace
        sessions = (span.fields.get("session") for span in spans.values()) if self._unit == "session" else iter(())
        session = next((name for name in sessions if name), None)
        places = _places(spans, leaves, root=trace if session else ROOT)
        for place in places:
            self._node(session or trace, place, output)
        return bool(places)

    def _node(self, run: str, place: _Place, output: ReaderOutput) -> None:
        span = place.span
        where: Record = {"run": run, "node": place.name}
        rows = [self._call(call, where, number) for number, call in enumerate(sorted(place.calls, key=_when))]
        outcome, cause, code = span.end
        models = {row["model"] for row in rows if row["model"]}
        node: Record = {
            **where,
            **span.fields,
            "record_unit": "node",
            "parent": place.parent,
            "depth": place.depth,
            "model": span.fields.get("model") or (models.pop() if len(models) == 1 else None),
            "served_model": served(row["served_model"] for row in rows),
            "starts": place.starts,
            "tool_calls": place.tools,
            "outcome": outcome,
            "cause": cause,
            "stopped_by": code,
            "start_ns": span.start_ns,
            "duration_ns": span.duration_ns,
            "source": span.source,
            "line": span.line,
            **totals(rows),
        }
        output.node(node, rows)

    def _call(self, span: Span, where: Record, number: int) -> Record:
        failed = span.end[0] is Outcome.FAILED
        known = {name: span.fields.get(name) for name in ("model", "served_model")}
        return {
            **where,
            **known,
            "call": number,
            "kind": "model",
            "status": "failed" if failed else "completed",
            **self._rules.disjoint(span.group, span.raw),
            "cost_nusd": span.cost_nusd,
            "cost_source": None if span.cost_nusd is None else "recorded",
            "start_ns": span.start_ns,
            "duration_ns": span.duration_ns,
            "source": span.source,
            "line": span.line,
        }


@dataclass(slots=True, kw_only=True)
class _Place:
    """A node to be: a span, its name and place in the tree, and what is directly below it."""

    span: Span
    name: str
    parent: str | None
    depth: int
    calls: list[Span]
    tools: int
    starts: int


def _places(spans: dict[str, Span], leaves: list[Span], *, root: str) -> list[_Place]:
    """Return the nodes of a trace, the root first; none if it has neither agents nor calls."""
    agents = [span for span in spans.values() if span.kind == "agent"]
    if not agents and not leaves:
        return []
    owner = {span.id: _above(span, spans) for span in spans.values() if span.kind in {"agent", "tool"}}
    calls: dict[str | None, list[Span]] = defaultdict(list)
    for span in leaves:
        calls[_above(span, spans)].append(span)
    tools = Counter(owner[span.id] for span in spans.values() if span.kind == "tool")
    starts = Counter(owner[span.id] for span in agents)
    apart = bool(calls[None]) or starts[None] != 1

    def place(span: Span, key: str | None, parent: str | None, depth: int) -> _Place:
        name = span.id if key is None else key
        below = {"calls": calls[key], "tools": tools[key], "starts": starts[key]}
        return _Place(span=span, name=name, parent=parent, depth=depth, **below)  # type: ignore[arg-type]

    found = [place(_whole(spans, root), None, None, 0)] if apart else []
    for span in agents:
        above = owner[span.id]
        parent = root if above is None and apart else above
        found.append(place(span, span.id, parent, _depth(span.id, owner) + apart))
    return found


def leaf_calls(spans: dict[str, Span]) -> tuple[list[Span], int]:
    """Return the model spans that count, and how many were left out as wrappers or wrapped without usage."""
    inner: dict[str, list[Span]] = defaultdict(list)
    models = [span for span in spans.values() if span.kind == "model"]
    for span in models:
        for above in _way_up(span, spans):
            if above.kind == "model":
                inner[above.id].append(span)
    wrappers = {name for name, found in inner.items() if not spans[name].tells or any(one.tells for one in found)}
    silent = {one.id for name, found in inner.items() if name not in wrappers for one in found}
    leaves = [span for span in models if span.id not in wrappers and span.id not in silent]
    return leaves, len(models) - len(leaves)


def _way_up(span: Span, spans: dict[str, Span]) -> Iterable[Span]:
    """Yield what is above a span, nearest first; a loop of parents ends it."""
    seen = {span.id}
    while span.parent is not None and span.parent in spans and span.parent not in seen:
        span = spans[span.parent]
        seen.add(span.id)
        yield span


def _above(span: Span, spans: dict[str, Span]) -> str | None:
    return next((above.id for above in _way_up(span, spans) if above.kind == "agent"), None)


def _depth(name: str, owner: dict[str, str | None]) -> int:
    depth, seen = 0, {name}
    above = owner.get(name)
    while above is not None and above not in seen:
        seen.add(above)
        depth, above = depth + 1, owner.get(above)
    return depth


def _when(span: Span) -> tuple[int, str]:
    return (span.start_ns if span.start_ns is not None else 2**62, span.id)


def _whole(spans: dict[str, Span], name: str) -> Span:
    """Return the trace itself as a span: as its topmost span tells, if there is exactly one."""
    tops = [span for span in spans.values() if span.parent is None]
    top = tops[0] if len(tops) == 1 else min(spans.values(), key=_when)
    starts = [span.start_ns for span in spans.values() if span.start_ns is not None]
    timed = [(span.start_ns, span.duration_ns) for span in spans.values()]
    ends = [start + took for start, took in timed if start is not None and took is not None]
    lone = len(tops) == 1 and top.kind != "tool"
    shared = {name: value for name, value in top.fields.items() if name in {"session", "user", "backend"}}
    return Span(
        trace=top.trace,
        id=name,
        parent=None,
        kind="other",
        start_ns=min(starts) if starts else None,
        duration_ns=max(ends) - min(starts) if ends and starts else None,
        end=top.end if lone else (Outcome.UNKNOWN, None, None),
        source=top.source,
        line=top.line,
        fields=shared,
    )

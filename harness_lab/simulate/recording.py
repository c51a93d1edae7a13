"""Recorded runs as trees of calls and children that can be played again, one after another, through real modules."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, Cause, Outcome
from harness_lab.policies.protocol import End
from harness_lab.providers.recorded import Answer
from harness_lab.settlements.columns import PARTS
from harness_lab.settlements.schema import conform_calls
from harness_lab.usage import TokenCounts

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from harness_lab.settlements import Settlements
    from harness_lab.usage import Amounts

MOST_CALLS: Final = 1_000_000
"""Calls of a node over which its totals are spread; more are no agent's, and would fill the memory."""

EVENLY = "no call rows: its totals are spread over its calls, the prompt growing from half the mean to one and a half"
ONE_CALL = "the number of its calls is not recorded: it is taken as one call"
SPLIT = "cache use is not recorded: the whole prompt counts as newly presented"
UNPLACED = "where a child was started is not recorded: it is put by its time, or after the first call"
_UNORDERED = 1 << 62
_GROUPS = ("user", "team", "repo", "session")


class Step:
    """One recorded call and the pause before it.

    Parameters
    ----------
    pause_ns : int
        Time between what came before and this call.
    call, attempt : int
        The logical call and its attempt.
    model : str
        The model asked for.
    prompt, resent : int
        Prompt tokens, and the part of them that the call before had sent too.
    answer : Answer
        What came back.
    """

    __slots__ = ("answer", "attempt", "call", "model", "pause_ns", "prompt", "resent")

    def __init__(
        self, pause_ns: int, call: int, attempt: int, model: str, prompt: int, resent: int, answer: Answer
    ) -> None:
        self.pause_ns = pause_ns
        self.call = call
        self.attempt = attempt
        self.model = model
        self.prompt = prompt
        self.resent = resent
        self.answer = answer

    def plain(self) -> tuple[Any, ...]:
        """Return all that is played, as plain values."""
        answer = self.answer
        came = (answer.status, answer.duration_ns, answer.model, answer.tokens, answer.cost_nusd, answer.billed_nusd)
        return (self.pause_ns, self.call, self.attempt, self.model, self.prompt, self.resent, *came)


@dataclass(slots=True, kw_only=True)
class RecordedNode:
    """One recorded node.

    Parameters
    ----------
    name, agent : str
        Its name in the record, and its role.
    ask : Amounts
        What its parent declared for it.
    end : End
        How it ended.
    start_ns, duration_ns : int or None
        When and how long; None: not recorded.
    steps : list of Step
        Its calls in order.
    children : dict of int to list of (slot, attempt, RecordedNode)
        Its children by the place in `steps` after which they were started (-1: before its first call).
    tail_ns : int
        Time after its last call or child.
    marks : tuple of str
        What the record does not say about it.
    groups : dict of str to str
        Who ran it, as far as recorded: user, team, repo, session.
    """

    name: str
    agent: str
    ask: Amounts
    end: End
    start_ns: int | None
    duration_ns: int | None
    steps: list[Step]
    children: dict[int, list[tuple[int, int, RecordedNode]]]
    tail_ns: int = 0
    marks: tuple[str, ...] = ()
    groups: dict[str, str] = field(default_factory=dict)

    def below(self) -> Iterable[RecordedNode]:
        """Yield the node and all nodes below it."""
        yield self
        for batch in self.children.values():
            for _, _, child in batch:
                yield from child.below()

    def plain(self) -> tuple[Any, ...]:
        """Return all that is played, as plain values (children by their names)."""
        below = [(at, slot, attempt, child.name) for at, b in self.children.items() for slot, attempt, child in b]
        steps = [step.plain() for step in self.steps]
        return (self.name, self.agent, self.ask, str(self.end), self.tail_ns, steps, below)


def recorded_runs(settlements: Settlements) -> dict[str, RecordedNode]:
    """Return the root of each recorded run by its name.

    Parameters
    ----------
    settlements : Settlements
        Recorded or simulated nodes of one policy, call rows beside them where there are any.

    Raises
    ------
    InputError
        If there are no nodes, or the rows are of several policies.

    Notes
    -----
    Nodes that were denied are kept: a child that never started is asked for again. A run whose nodes name no root, or
    several, is played from each of them in turn under the name ``run#node``.
    """
    nodes = settlements.nodes
    if nodes.empty:
        raise InputError("records to replay", expected="at least one node", got="none")
    policies = nodes["policy"].dropna().unique()
    if len(policies) > 1:
        hint = "settlements.where(policy=...)"
        raise InputError("records to replay", expected="of one policy", got=sorted(policies), hint=hint)
    calls = _calls_by_node(settlements.calls)
    made = {(row["run"], row["node"]): _node(row, calls.get((row["run"], row["node"]))) for row in _rows(nodes)}
    roots = _linked(nodes, made)
    several = Counter(run for run, _ in roots)
    return {run if several[run] == 1 else f"{run}#{node}": made[run, node] for run, node in roots}


def output_ceilings(runs: Iterable[RecordedNode]) -> dict[str, int]:
    """Return the longest recorded answer of each model."""
    most: dict[str, int] = {}
    for run in runs:
        for node in run.below():
            for step in node.steps:
                tokens = step.answer.tokens
                if tokens is not None:
                    most[step.model] = max(most.get(step.model, 0), tokens.output or 0)
    return most


def _linked(nodes: pd.DataFrame, made: Mapping[tuple[str, str], RecordedNode]) -> list[tuple[str, str]]:
    """Put every child below its parent; return the nodes that have none."""
    roots = []
    for row in _rows(nodes[["run", "node", "parent", "path"]]):
        parent = made.get((row["run"], row["parent"]))
        if parent is None:
            roots.append((row["run"], row["node"]))
            continue
        _place(parent, made[row["run"], row["node"]], row["path"])
    for node in made.values():
        _pauses(node)
    return roots


def _place(parent: RecordedNode, child: RecordedNode, path: str | None) -> None:
    if path is not None:
        call, slot, attempt = (int(part) for part in str(path).rsplit("/", 1)[-1].split("."))
        at = max((i for i, step in enumerate(parent.steps) if step.call <= call), default=-1)
    else:
        at = _by_time(parent, child)
        slot, attempt = len(parent.children.get(at, ())), 0
        child.marks += (UNPLACED,)
    parent.children.setdefault(at, []).append((slot, attempt, child))


def _by_time(parent: RecordedNode, child: RecordedNode) -> int:
    if child.start_ns is None or parent.start_ns is None:
        return min(0, len(parent.steps) - 1)
    at, now = -1, parent.start_ns
    for i, step in enumerate(parent.steps):
        now += step.pause_ns + step.answer.duration_ns
        if now > child.start_ns:
            break
        at = i
    return at


def _pauses(node: RecordedNode) -> None:
    """Children are waited for: the pause after a batch is what was left of it when the last child had ended."""
    for at, batch in node.children.items():
        batch.sort(key=lambda one: (one[0], one[1]))
        longest = max((child.duration_ns or 0 for _, _, child in batch), default=0)
        if at + 1 < len(node.steps):
            step = node.steps[at + 1]
            step.pause_ns = max(0, step.pause_ns - longest)
        else:
            node.tail_ns = max(0, node.tail_ns - longest)


def _calls_by_node(calls: pd.DataFrame | None) -> dict[Hashable, list[dict[str, Any]]]:
    if calls is None or calls.empty:
        return {}
    made = calls[calls["kind"].isna() | calls["kind"].isin(["model", "compaction"])]
    order = made["call"].fillna(_UNORDERED)
    made = made.assign(_order=order).sort_values(
        ["run", "node", "_order", "attempt", "start_ns"], kind="stable", na_position="last"
    )
    found: dict[Hashable, list[dict[str, Any]]] = {}
    for row in _rows(made):
        found.setdefault((row["run"], row["node"]), []).append(row)
    return found


def _node(row: Mapping[str, Any], calls: list[dict[str, Any]] | None) -> RecordedNode:
    marks: tuple[str, ...] = ()
    if calls is None:
        steps = even_steps(row)
        marks = (ONE_CALL,) if steps and row["calls"] is None else (EVENLY,) if len(steps) > 1 else ()
        tail = 0
    else:
        steps, tail = _steps(row, calls)
    known = row["input_total"] is not None and row["input_fresh"] is None
    if known or any(call["input_total"] is not None and call["input_fresh"] is None for call in calls or ()):
        marks += (SPLIT,)
    ask = tuple(row[f"ask_{channel}"] for channel in CHANNELS)
    end = End(Outcome(row["outcome"]), row["stopped_by"], Cause(row["cause"]) if row["cause"] else Cause.NONE)
    return RecordedNode(
        name=row["node"],
        agent=row["agent"] or "agent",
        ask=ask,
        end=end,
        start_ns=row["start_ns"],
        duration_ns=row["duration_ns"],
        steps=steps,
        children={},
        tail_ns=tail,
        marks=marks,
        groups={name: row[name] for name in _GROUPS if row[name] is not None},
    )


def _steps(row: Mapping[str, Any], calls: list[dict[str, Any]]) -> tuple[list[Step], int]:
    steps: list[Step] = []
    now, before = row["start_ns"], 0
    for i, call in enumerate(calls):
        start, took = call["start_ns"], call["duration_ns"] or 0
        pause = max(0, start - now) if start is not None and now is not None else 0
        prompt = call["input_total"] or 0
        number = i if call["call"] is None else call["call"]
        model = call["model"] or row["model"] or "unknown"
        steps.append(
            Step(pause, number, call["attempt"] or 0, model, prompt, min(before, prompt), _answer(call, model, took))
        )
        now, before = (start + took if start is not None else now), prompt
    ended = row["start_ns"] + row["duration_ns"] if row["start_ns"] is not None and row["duration_ns"] else None
    return steps, max(0, ended - now) if ended is not None and now is not None else 0


def _answer(call: Mapping[str, Any], model: str, took: int) -> Answer:
    status = "failed" if call["status"] in ("failed", "abandoned", "unsent") else "completed"
    cost, billed = call["cost_nusd"], call["billed_nusd"]
    if status == "failed" and call["input_total"] is None:  # an attempt without usage used nothing that is known of
        return Answer("failed", took, TokenCounts(input_fresh=0, output=0), model, cost or 0, billed)
    return Answer(status, took, _tokens(call), model, cost, billed)  # type: ignore[arg-type]


def _tokens(row: Mapping[str, Any]) -> TokenCounts | None:
    total, output = row["input_total"], row["output"]
    if total is None or output is None:
        return None
    if any(row[name] is None for name in PARTS):  # the prompt is known, what of it came from a cache is not
        return TokenCounts(input_fresh=total, output=output)
    return TokenCounts(
        input_fresh=row["input_fresh"], cache_read=row["cache_read"], cache_write=row["cache_write"], output=output
    )


def even_steps(row: Mapping[str, Any]) -> list[Step]:
    """Spread the totals of a node over its calls: each part adds up, and the prompt grows evenly.

    Parameters
    ----------
    row : mapping
        A node's columns; unknown values None. A node without a count of calls but with tokens has made one.

    Returns
    -------
    list of Step
        With `n` calls the first prompt is half the mean and the last one and a half of it; answers are even.

    Raises
    ------
    InputError
        If the node has made more than a million calls.
    """
    n = row["calls"]
    if n is None:
        n = 1 if row["input_total"] is not None else 0
    if not n:
        return []
    if n > MOST_CALLS:
        raise InputError("calls", expected=f"at most {MOST_CALLS:,} calls of a node that has no call rows", got=n)
    weights = np.linspace(0.5, 1.5, n) if n > 1 else np.ones(1)
    even = np.ones(n)
    parts = {name: _spread(row[name], weights) for name in ("input_total", *PARTS)}
    parts |= {name: _spread(row[name], even) for name in ("output", "cost_nusd", "billed_nusd", "duration_ns")}
    model, before = row["model"] or "unknown", 0
    steps = []
    for i in range(n):
        call = {name: None if values is None else values[i] for name, values in parts.items()}
        if call["input_fresh"] is not None:
            call["input_total"] = sum(call[name] or 0 for name in PARTS)
        prompt = call["input_total"] or 0
        answer = _answer({**call, "status": "completed"}, model, call["duration_ns"] or 0)
        steps.append(Step(0, i, 0, model, prompt, min(before, prompt), answer))
        before = prompt
    return steps


def even_calls(nodes: pd.DataFrame) -> pd.DataFrame:
    """Return call rows that spread each node's totals over its calls; see :func:`even_steps`."""
    rows = []
    for node in _rows(nodes):
        now = node["start_ns"]
        for step in even_steps(node):
            tokens, took = step.answer.tokens, step.answer.duration_ns if node["duration_ns"] is not None else None
            row = {"run": node["run"], "node": node["node"], "call": step.call, "attempt": 0, "model": node["model"]}
            row |= {"status": "completed", "start_ns": now, "duration_ns": took, "cost_nusd": step.answer.cost_nusd}
            if tokens is not None:
                row |= {name: getattr(tokens, name) for name in ("input_total", *PARTS, "output")}
            rows.append(row)
            now = None if now is None or took is None else now + took
    return conform_calls(pd.DataFrame(rows))


def _spread(total: int | None, weights: np.ndarray[Any, np.dtype[np.float64]]) -> list[int] | None:
    """Split a whole number by weights so that the parts add up."""
    if total is None:
        return None
    edges = np.rint(np.cumsum(weights) / weights.sum() * total).astype(np.int64)
    edges[-1] = total
    return [int(part) for part in np.diff(edges, prepend=0)]


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows of plain values, unknown ones None."""
    columns = {str(name): _plain(frame[name]) for name in frame.columns}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _plain(column: pd.Series[Any]) -> list[Any]:
    return column.astype(object).where(column.notna(), None).tolist()

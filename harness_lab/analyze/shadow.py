"""What a shadowed policy would have refused, by which limit, and what that then turned out to cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_lab.errors import ReadError
from harness_lab.usage import usd

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ANSWERS = ("granted", "refused", "moot", "waits")
_NEEDED = {"run", "node", "question", "answer", "codes", "cost_nusd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowLimit:
    """What one limit would have stopped.

    Parameters
    ----------
    limit : str
        Its reason code, with its channel.
    runs, nodes : int
        Runs and nodes in which it would have been the first to refuse.
    asks : int
        Calls and children that it would have refused, or that would not have been asked for after it.
    cost_nusd : int
        What those calls then cost, nano-dollars, as far as known.
    unknown : int
        Those of them whose cost was not reported: `cost_nusd` is then a lower bound.
    """

    limit: str
    runs: int
    nodes: int
    asks: int
    cost_nusd: int
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowReport:
    """A policy's answers in the shadow of what really ran.

    Parameters
    ----------
    runs : int
        Runs that were watched.
    answers : mapping of str to int
        How many were granted, refused, moot (after a refusal of the same node) and queued.
    limits : tuple of ShadowLimit
        By what it cost, the dearest first.
    cost_nusd, unknown : int
        Cost of all calls as far as known, and calls of unknown cost.
    stopped_runs : int
        Runs in which anything would have been refused.
    set_aside : int
        Lines of the file that were no rows, such as one cut short when its writer died; they are in no other figure.
    """

    runs: int
    answers: Mapping[str, int]
    limits: tuple[ShadowLimit, ...]
    cost_nusd: int
    unknown: int
    stopped_runs: int
    set_aside: int = 0

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what the calls that each limit would have stopped then cost; return the axes."""
        from harness_lab.plots.bars import plot_bars
        from harness_lab.plots.quantities import Quantity

        frame = self.to_frame()
        made = frame.assign(name=frame["limit"], value=frame["cost_usd"], marked=frame["unknown"] > 0)
        shown = Quantity(name="cost of what it would have stopped", unit="$")
        title = f"{self.stopped_runs:,} of {self.runs:,} runs would have been stopped somewhere"
        marked, empty = "at least: some cost unknown", "nothing would have been refused"
        return plot_bars(made, ax=ax, shown=shown, marked=marked, title=title, empty=empty)

    def summary(self) -> str:
        """Say in short what would have been refused."""
        asks = sum(self.answers.values())
        lines = [
            f"{self.runs} run(s), {asks} questions: {self.answers['granted']} granted, "
            f"{self.answers['refused']} refused, {self.answers['moot']} moot after a refusal, "
            f"{self.answers['waits']} queued; "
            f"{self.stopped_runs} run(s) would have been cut"
        ]
        lines += [
            f"  {limit.limit}: {limit.nodes} node(s) in {limit.runs} run(s), {limit.asks} question(s), which then cost "
            f"{_money(limit.cost_nusd, limit.unknown)}"
            for limit in self.limits
        ]
        lines.append(f"  all calls cost {_money(self.cost_nusd, self.unknown)}")
        if self.set_aside:
            lines.append(f"  {self.set_aside} line(s) set aside: cut short, or no shadow's row")
        return "\n".join(lines)

    def explain(self) -> str:
        """Say what this means, and what not."""
        return (
            "Nothing was stopped: each question was put to the policy and then admitted. The cost of a limit is that "
            "of the calls it would have refused and of all that the same node and those below it asked for "
            "afterwards. That much would have been saved if agents simply stopped there; but an agent that notices a "
            "limit may do something else, and what was cut may have been what was wanted.\n"
            "Next: simulate the policy, or enforce it for a part of the runs, to see what becomes of the results."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row a limit: ``limit, runs, nodes, asks, cost_nusd, unknown, cost_usd``."""
        import pandas as pd

        names = ["limit", "runs", "nodes", "asks", "cost_nusd", "unknown"]
        frame = pd.DataFrame([{name: getattr(limit, name) for name in names} for limit in self.limits], columns=names)
        return frame.assign(cost_usd=frame["cost_nusd"] / 1e9)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        limits = [
            {"limit": x.limit, "runs": x.runs, "nodes": x.nodes, "asks": x.asks, "cost_nusd": x.cost_nusd}
            | {"unknown": x.unknown}
            for x in self.limits
        ]
        return {
            "runs": self.runs,
            "stopped_runs": self.stopped_runs,
            "answers": dict(self.answers),
            "cost_nusd": self.cost_nusd,
            "unknown": self.unknown,
            "set_aside": self.set_aside,
            "limits": limits,
        }

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def shadow_report(rows: Iterable[Mapping[str, Any]] | str | Path) -> ShadowReport:
    """Report on the rows of :class:`harness_lab.policies.Shadow`.

    Parameters
    ----------
    rows : iterable of mapping, or path
        What its `sink` or ``rows()`` gave, of one run or of many; or a file of them, one JSON object a line.

    Raises
    ------
    ReadError
        If the file cannot be read or has lines but no row among them, or a row that is handed over is no shadow's.
    """
    if isinstance(rows, str | Path):
        found, aside = _read(Path(rows))
        return replace(_report(found), set_aside=aside)
    return _report(list(map(_checked, rows)))


def _report(rows: list[Mapping[str, Any]]) -> ShadowReport:
    cut = [row for row in rows if row["answer"] != "granted"]
    by_limit: dict[str, list[Mapping[str, Any]]] = {}
    for row in cut:
        by_limit.setdefault(row["codes"][0] if row["codes"] else "unknown", []).append(row)
    limits = [_limit(name, found) for name, found in by_limit.items()]
    counted = Counter(row["answer"] for row in rows)
    cost, unknown = _cost(rows)
    return ShadowReport(
        runs=len({row["run"] for row in rows}),
        answers={answer: counted[answer] for answer in _ANSWERS},
        limits=tuple(sorted(limits, key=lambda limit: (-limit.cost_nusd, limit.limit))),
        cost_nusd=cost,
        unknown=unknown,
        stopped_runs=len({row["run"] for row in cut}),
    )


def _limit(name: str, rows: list[Mapping[str, Any]]) -> ShadowLimit:
    first = [row for row in rows if row["answer"] != "moot"]
    cost, unknown = _cost(rows)
    return ShadowLimit(
        limit=name,
        runs=len({row["run"] for row in first}),
        nodes=len({(row["run"], row["node"]) for row in first}),
        asks=len(rows),
        cost_nusd=cost,
        unknown=unknown,
    )


def _cost(rows: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    calls = [row["cost_nusd"] for row in rows if row["question"] == "admit" and row.get("status") != "unsent"]
    known = [cost for cost in calls if cost is not None]
    return sum(known), len(calls) - len(known)


def _read(path: Path) -> tuple[list[Mapping[str, Any]], int]:
    """Return a file's rows, and how many of its lines are none."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ReadError(str(path), expected="a file of shadow rows", got=str(error)) from error
    rows, wrong = [], []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append(_row(line, f"{path} line {number}"))
            except ReadError as error:
                wrong.append(error)
    if wrong and not rows:
        raise wrong[0]
    return rows, len(wrong)


def _row(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ReadError(where, expected="a JSON object", got=line.decode(errors="replace")) from error
    return _checked(row, where)


def _checked(row: Any, where: str = "row") -> Mapping[str, Any]:
    if not isinstance(row, Mapping) or not set(row) >= _NEEDED or row["answer"] not in _ANSWERS:
        raise ReadError(where, expected=f"a shadow's row with {', '.join(sorted(_NEEDED))}", got=row)
    cost, codes = row["cost_nusd"], row["codes"]
    if not (cost is None or (type(cost) is int and cost >= 0)) or not isinstance(codes, list):
        raise ReadError(where, expected="cost_nusd as a whole number >= 0 or null, and codes as a list", got=row)
    return row


def _money(cost_nusd: int, unknown: int) -> str:
    least = f"at least ${usd(cost_nusd):.4f} ({unknown} call(s) of unknown cost)"
    return least if unknown else f"${usd(cost_nusd):.4f}"

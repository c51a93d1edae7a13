"""``Settlements``: the table in the hand, with what it says in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness_lab.clock import NS_PER_S
from harness_lab.errors import InputError
from harness_lab.settlements import store
from harness_lab.settlements._keys import calls_of, placed
from harness_lab.settlements.columns import CALL_NAMES, NODE_NAMES
from harness_lab.settlements.report import ReadReport
from harness_lab.settlements.schema import Columns, conform_calls, conform_nodes
from harness_lab.usage import NUSD_PER_USD

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Settlements:
    """Recorded or simulated settlements: one row per node, call rows optional beside it.

    Make it with :func:`harness_lab.settlements.read`, :meth:`from_parquet` or :meth:`from_columns`.

    Parameters
    ----------
    nodes : DataFrame
        One row per node, the columns of ``settlements.columns.NODE_COLUMNS`` (counts and money nullable Int64; NA is
        unknown, never zero).
    calls : DataFrame or None, default None
        One row per model call, the columns of ``CALL_COLUMNS``; None: no call rows were recorded.
    report : ReadReport
        How reading went.

    Raises
    ------
    InputError
        If a frame does not have the schema's columns; :meth:`from_columns` brings it into shape.
    """

    nodes: pd.DataFrame
    calls: pd.DataFrame | None = None
    report: ReadReport = field(default_factory=ReadReport)

    def __post_init__(self) -> None:
        for name, frame, wanted in (("nodes", self.nodes, NODE_NAMES), ("calls", self.calls, CALL_NAMES)):
            if frame is not None and tuple(frame.columns) != wanted:
                hint = "Settlements.from_columns brings a frame into shape"
                raise InputError(name, expected="the columns of the schema", got=list(frame.columns), hint=hint)

    @classmethod
    def from_columns(cls, nodes: pd.DataFrame | Columns, calls: pd.DataFrame | Columns | None = None) -> Settlements:
        """Make settlements of columns: arrays of equal length, or scalars that apply to every row.

        Nothing is done row by row, so hundreds of thousands of rows take a fraction of a second.

        Raises
        ------
        InputError
            As :func:`harness_lab.settlements.schema.conform_nodes`.
        """
        frame = conform_nodes(nodes)
        report = ReadReport(read=len(frame), kept=len(frame))
        return cls(nodes=frame, calls=None if calls is None else conform_calls(calls), report=report)

    @classmethod
    def from_parquet(cls, path: str | Path) -> Settlements:
        """Read what :meth:`to_parquet` wrote, of this or an older schema version.

        Raises
        ------
        ReadError
            If there is no such file, or it is none of ours, damaged, or of a newer version.
        """
        nodes, calls, report = store.read(Path(path))
        return cls(nodes=nodes, calls=calls, report=report)

    def to_parquet(self, path: str | Path) -> Path:
        """Write the nodes to `path` and the calls, if any, beside it as ``NAME.calls.parquet``; return `path`.

        Each file is written beside its place and moved into it.
        """
        place = Path(path)
        store.write(place, self.nodes, self.calls, self.report)
        return place

    @classmethod
    def concat(cls, parts: Iterable[Settlements]) -> Settlements:
        """Return all rows of `parts`, in order, with their reports added up; runs of equal name are not renamed."""
        tables = tuple(parts)
        if not tables:
            return cls.from_columns({})
        nodes = pd.concat([table.nodes for table in tables], ignore_index=True)
        with_calls = [table.calls for table in tables if table.calls is not None]
        calls = pd.concat(with_calls, ignore_index=True) if with_calls else None
        return cls(nodes=nodes, calls=calls, report=ReadReport.merge(table.report for table in tables))

    def where(self, **column_equals: object) -> Settlements:
        """Return the nodes in which each named column equals its value, and their calls.

        Parameters
        ----------
        **column_equals
            ``column=value``; a list, tuple or set means "one of these", None means NA.

        Raises
        ------
        InputError
            If a column does not exist.
        """
        keep = pd.Series(data=True, index=self.nodes.index)
        for name, value in column_equals.items():
            if name not in NODE_NAMES:
                raise InputError(name, expected=f"a column of the nodes: {', '.join(NODE_NAMES)}", got=name)
            keep &= _equals(self.nodes[name], value)
        nodes = self.nodes[keep].reset_index(drop=True)
        return Settlements(nodes=nodes, calls=self._calls_of(nodes), report=self.report)

    def _calls_of(self, nodes: pd.DataFrame) -> pd.DataFrame | None:
        return None if self.calls is None else calls_of(nodes, placed(self.nodes, self.calls)[0])

    def to_frame(self) -> pd.DataFrame:
        """Return the nodes as a DataFrame (a copy: changing it changes nothing here)."""
        return self.nodes.copy()

    @property
    def cost_usd(self) -> pd.Series:
        """Cost of each node, dollars, Float64; NA is unknown."""
        return (self.nodes["cost_nusd"] / NUSD_PER_USD).rename("cost_usd")

    @property
    def duration_s(self) -> pd.Series:
        """Duration of each node, seconds, Float64; NA is unknown."""
        return (self.nodes["duration_ns"] / NS_PER_S).rename("duration_s")

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        calls = "no call rows" if self.calls is None else f"{len(self.calls):,} calls"
        return f"Settlements({len(self.nodes):,} nodes of {self.nodes['run'].nunique():,} runs, {calls})"

    def summary(self) -> str:
        """Return a few lines of plain text: size, outcomes, what is unknown, time span, how reading went."""
        return "\n".join([*self._lines(), self.report.summary()])

    def _lines(self) -> list[str]:
        nodes = self.nodes
        calls = "no call rows" if self.calls is None else f"{len(self.calls):,} calls"
        lines = [f"{len(nodes):,} node(s) of {nodes['run'].nunique():,} run(s), {calls}{_span(nodes)}"]
        paths = nodes.groupby(["agent", "backend", "model", "context"], dropna=False).size()
        lines += [f"{len(paths):,} path(s) (agent, backend, model, context)"]
        for name, label in (("outcome", "outcomes"), ("stopped_by", "stopped by")):
            counts = nodes[name].value_counts()
            if len(counts):
                lines.append(f"{label}: " + ", ".join(_share(word, n, len(nodes)) for word, n in counts.items()))
        unknown = {
            "usage": unknown_usage(nodes),
            "cost": nodes["cost_nusd"].isna(),
            "delivery": nodes["delivered"].isna(),
        }
        shares = ", ".join(_share(name, int(missing.sum()), len(nodes)) for name, missing in unknown.items())
        return [*lines, f"unknown: {shares}"]

    def explain(self) -> str:
        """Return what the table means, what it does not, and what to do next."""
        return (
            "One row is one node: one agent's execution within a run (a whole tree). Token counts are disjoint, money "
            "is in nano-dollars, and NA means unknown, never zero: sums over rows with unknown usage are too low.\n"
            "A row that was stopped by a limit says that the need was larger than what it used; it is no completed "
            "run. 'completed' says that the work ended by itself, 'delivered' whether the result was good.\n"
            "Runs of one user, repository or session are not independent; give these columns to the analyses.\n"
            "Next: harness_lab.analyze for floors, quantiles and ceilings, or in a shell 'harness-lab floors FILE'."
        )

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self._lines())
        report = escape(self.report.summary())
        return f"<p><b>{escape(repr(self))}</b></p><ul>{lines}</ul><pre>{report}</pre>"


def unknown_usage(nodes: pd.DataFrame) -> pd.Series:
    """Return, for each node, whether its token usage is unknown or known to be incomplete (boolean, no NA)."""
    no_figure = nodes["input_total"].isna() & nodes["blended_tokens"].isna()
    started = nodes["outcome"] != "denied"
    return (no_figure & started) | (~nodes["usage_known"]).fillna(value=False)


def _equals(values: pd.Series, wanted: object) -> pd.Series:
    if wanted is None:
        return values.isna()
    choices = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
    return values.isin(choices)


def _share(word: object, count: int, total: int) -> str:
    return f"{word} {count:,} ({count / total:.1%})" if total else f"{word} {count:,}"


def _span(nodes: pd.DataFrame) -> str:
    starts = nodes["start_ns"].dropna()
    if starts.empty:
        return ""
    first, last = (np.datetime64(int(value), "ns").astype("datetime64[D]") for value in (starts.min(), starts.max()))
    return f", started {first}" if first == last else f", started {first} to {last}"

"""A settlement store: a folder of Parquet files that grows, for records that do not fit into one table in memory.

On disk::

    DIR/
      store.json              the manifest: schema version, and which files are in force; replacing it is the commit
      nodes/NNNNNN-XXXX.parquet    node rows
      calls/NNNNNN-XXXX.parquet    call rows of the same append

Nothing is in the store but what the manifest names. An append writes new files beside the old ones, makes them durable,
and then replaces the manifest in one step; a process that is killed before that leaves files that nobody names, and
the next append removes them. Files that an append replaces stay until the append after it, so that whoever reads
meanwhile can finish.

A run is the unit of an append. A run that the store does not have is added; one that it has with equal rows is left
alone; one that says something else is the same run read again, later or earlier, and the version that knows more stays
(more nodes, then more calls, then more tokens; of two that know equally much, the one that came last).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from harness_lab.errors import InputError, ReadError
from harness_lab.settlements import _parts
from harness_lab.settlements._keys import KEY, calls_of
from harness_lab.settlements._manifest import Manifest, locked
from harness_lab.settlements._versions import base_of, decide
from harness_lab.settlements.columns import CALL_COLUMNS, CALL_NAMES, NODE_COLUMNS, NODE_NAMES
from harness_lab.settlements.schema import conform_calls, conform_nodes
from harness_lab.settlements.settlements import Settlements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    Table = Literal["nodes", "calls"]

_COLUMNS: Final = {"nodes": NODE_COLUMNS, "calls": CALL_COLUMNS}
_NAMES: Final = {"nodes": NODE_NAMES, "calls": CALL_NAMES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What an append did, in runs and rows.

    Parameters
    ----------
    added, replaced, unchanged, kept_older : int
        Runs that were new; that took the place of an earlier reading; that the store had already; that the store knows
        better than what came.
    nodes, calls : int
        Rows in the store afterwards.
    """

    added: int
    replaced: int
    unchanged: int
    kept_older: int
    nodes: int
    calls: int

    def __str__(self) -> str:
        kept = f", {self.kept_older:,} known better already" if self.kept_older else ""
        return (
            f"{self.added:,} run(s) added, {self.replaced:,} replaced, {self.unchanged:,} unchanged{kept}; "
            f"the store holds {self.nodes:,} node(s) and {self.calls:,} call(s)"
        )


class SettlementStore:
    """A folder of settlements that is appended to and scanned, never loaded whole.

    Parameters
    ----------
    path : path
        The folder; it is made with the first append.

    Raises
    ------
    ReadError
        If the folder holds something else, or a store of a newer schema version.

    Examples
    --------
    >>> import tempfile
    >>> store = SettlementStore(tempfile.mkdtemp())
    >>> one = Settlements.from_columns({"run": ["a"], "node": "0", "cost_nusd": 5})
    >>> store.append(one).added, store.append(one).unchanged, len(store)
    (1, 1, 1)
    """

    __slots__ = ("path",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.exists():
            Manifest.read(self.path)

    def append(self, settlements: Settlements) -> Appended:
        """Add settlements; what the store has already is not added again.

        The store is as before or whole afterwards, also if the process is killed meanwhile. Two processes that append
        at the same time wait for one another.

        Raises
        ------
        InputError
            If the folder cannot be written to.
        """
        try:
            with locked(self.path):
                return self._append(settlements)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise InputError(str(self.path), expected="a folder that can be written to", got=why) from None

    def _append(self, settlements: Settlements) -> Appended:
        before = Manifest.read(self.path)
        _parts.remove_unnamed(self.path, before)
        stored = self._stored(settlements, before)
        verdict = decide(new=settlements, stored=stored)
        if verdict.nodes.empty:
            return self._appended(verdict.counts, before)
        after = _parts.without(self.path, before, verdict.replaced)
        after = _parts.write(self.path, after, nodes=verdict.nodes, calls=verdict.calls)
        after.commit(self.path)
        return self._appended(verdict.counts, after)

    def _stored(self, coming: Settlements, manifest: Manifest) -> Settlements:
        """Return what the store has of the runs that come, and of others of their names."""
        runs = coming.nodes["run"].unique()
        wanted = {*runs, *map(base_of, runs)}
        numbered = pc.match_substring(ds.field("run"), "~")
        names = [
            run
            for batch in _parts.scan(
                self.path, manifest, "nodes", ["run"], ds.field("run").isin(list(wanted)) | numbered
            )
            for run in batch["run"].unique().to_pylist()
            if run in wanted or base_of(run) in wanted
        ]
        return Settlements(nodes=self._rows("nodes", names, manifest), calls=self._rows("calls", names, manifest))

    def _rows(self, table: Table, runs: Any, manifest: Manifest) -> pd.DataFrame:
        """Return the stored rows of some runs."""
        named = pa.array(runs, type=pa.string())
        batches = _parts.scan(self.path, manifest, table, columns=None, where=ds.field("run").isin(named))
        return _frame(batches, table)

    def _appended(self, counts: dict[str, int], manifest: Manifest) -> Appended:
        return Appended(**counts, nodes=manifest.rows("nodes"), calls=manifest.rows("calls"))

    def scan(
        self,
        table: Table = "nodes",
        *,
        columns: Sequence[str] | None = None,
        where: ds.Expression | None = None,
        **column_equals: object,
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows in pieces, each a frame of the schema's dtypes; only what is asked for is read from disk.

        Parameters
        ----------
        table : {"nodes", "calls"}
            Which rows.
        columns : sequence of str, optional
            Which columns; all if None.
        where : pyarrow.dataset.Expression, optional
            Which rows, such as ``pyarrow.dataset.field("cost_nusd") > 10**9``.
        **column_equals
            ``column=value`` as in :meth:`Settlements.where`; both conditions must hold.

        Raises
        ------
        InputError
            If a column does not exist.
        """
        self._check(table, [*(columns or ()), *column_equals])
        condition = _condition(column_equals, where)
        wanted = list(_NAMES[table]) if columns is None else list(columns)
        for batch in _parts.scan(self.path, Manifest.read(self.path), table, columns=wanted, where=condition):
            yield _parts.to_frame(batch)

    def read(self, *, where: ds.Expression | None = None, **column_equals: object) -> Settlements:
        """Return the nodes that meet the condition (of :meth:`scan`) and their calls, in memory.

        Raises
        ------
        InputError
            If a column does not exist.
        """
        self._check("nodes", list(column_equals))
        manifest = Manifest.read(self.path)
        condition = _condition(column_equals, where)
        nodes = _frame(_parts.scan(self.path, manifest, "nodes", columns=None, where=condition), "nodes")
        if not manifest.rows("calls"):
            return Settlements(nodes=nodes)
        if condition is None:
            return Settlements(nodes=nodes, calls=_frame(_parts.scan(self.path, manifest, "calls"), "calls"))
        calls = self._rows("calls", nodes["run"].unique(), manifest)
        return Settlements(nodes=nodes, calls=calls_of(nodes, calls))

    def sql(self, query: str) -> pd.DataFrame:
        """Ask the store in SQL; the tables are ``nodes`` and ``calls``.

        Parameters
        ----------
        query : str
            Such as ``"select model, sum(cost_nusd) / 1e9 as usd from nodes group by model"``.

        Returns
        -------
        DataFrame
            The answer; DuckDB reads only the columns and rows that it needs. It sees nothing but the two tables: files
            and the network are shut off.

        Raises
        ------
        InputError
            If DuckDB is not installed, or does not understand the query.
        """
        from harness_lab.settlements._sql import ask

        manifest = Manifest.read(self.path)
        return ask(query, {name: _parts.dataset(self.path, manifest, name) for name in _COLUMNS})

    def runs(self) -> int:
        """Return how many runs the store holds."""
        seen: set[tuple[str | None, ...]] = set()
        for frame in self.scan(columns=KEY):
            seen.update(frame.drop_duplicates().itertuples(index=False, name=None))
        return len(seen)

    def summary(self) -> str:
        """Return one line: how much there is, and in which schema version."""
        manifest = Manifest.read(self.path)
        return (
            f"store {self.path.name}: {manifest.rows('nodes'):,} node(s), {manifest.rows('calls'):,} call(s) in "
            f"{len(manifest.nodes) + len(manifest.calls)} file(s), schema version {manifest.schema_version}"
        )

    def __len__(self) -> int:
        return Manifest.read(self.path).rows("nodes")

    def __repr__(self) -> str:
        return f"SettlementStore({self.summary()})"

    def _check(self, table: Table, names: Sequence[str]) -> None:
        if table not in _NAMES:
            raise InputError("table", expected="nodes or calls", got=table)
        for name in names:
            if name not in _NAMES[table]:
                raise InputError("columns", expected=f"columns of the {table}", got=name)


def _condition(equals: dict[str, object], where: ds.Expression | None) -> ds.Expression | None:
    found = where
    for name, value in equals.items():
        one = _equals(ds.field(name), value)
        found = one if found is None else found & one
    return found


def _equals(column: Any, value: object) -> Any:
    if value is None:
        return column.is_null()
    return column.isin(list(value)) if isinstance(value, (list, tuple, set, frozenset)) else column == value


def _frame(batches: Iterator[pa.RecordBatch], table: Table) -> pd.DataFrame:
    frames = [_parts.to_frame(batch) for batch in batches]
    conform = conform_nodes if table == "nodes" else conform_calls
    return conform(pd.concat(frames, ignore_index=True) if frames else {})


def open_store(path: str | os.PathLike[str]) -> SettlementStore:
    """Open a store that must exist.

    Raises
    ------
    ReadError
        If there is none.
    """
    if not Manifest.exists(Path(path)):
        raise ReadError(str(path), expected="a settlement store", got="none there")
    return SettlementStore(path)

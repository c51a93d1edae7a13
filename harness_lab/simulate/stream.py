"""Results that go to a file as they come, so that memory stays flat however many runs there are."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness_lab import files
from harness_lab.errors import InputError, ReadError
from harness_lab.settlements import Settlements
from harness_lab.settlements.columns import CALL_COLUMNS, NODE_COLUMNS
from harness_lab.settlements.schema import SCHEMA_VERSION, conform_calls, conform_nodes
from harness_lab.settlements.store import ARROW, VERSION_KEY, calls_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from harness_lab.simulate.blocks import Block

MANIFEST_KEY: Final = b"harness_lab.manifest"
ROWS: Final = 50_000
"""Rows that are gathered before they are written: a row group of the file."""
_SCHEMAS: Final = {
    "nodes": pa.schema([(column.name, ARROW[column.dtype]) for column in NODE_COLUMNS]),
    "calls": pa.schema([(column.name, ARROW[column.dtype]) for column in CALL_COLUMNS]),
}


class TableFile:
    """A settlement table that is written piece by piece; complete in its place when it is closed, or not there.

    Parameters
    ----------
    path : path
        The file; calls go beside it as :meth:`harness_lab.settlements.Settlements.to_parquet` has them.
    calls : bool
        Whether there are call rows.
    """

    def __init__(self, path: str | os.PathLike[str], *, calls: bool) -> None:
        self.path = Path(path)
        self._places = {"nodes": self.path} | ({"calls": calls_path(self.path)} if calls else {})
        self._parts: dict[str, Path] = {}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._waiting: dict[str, list[pa.Table]] = {name: [] for name in self._places}

    def __enter__(self) -> Self:
        for name, place in self._places.items():
            target = files.target(place)
            self._parts[name] = target.with_name(f".{os.getpid()}-{id(self)}-{name}.part")
            schema = _SCHEMAS[name].with_metadata({VERSION_KEY: str(SCHEMA_VERSION)})
            try:
                self._writers[name] = pq.ParquetWriter(self._parts[name], schema, compression="zstd")
            except OSError as error:
                why = os.strerror(error.errno) if error.errno else str(error)
                raise InputError(str(place), expected="a place that can be written to", got=why) from None
        return self

    def __exit__(self, failed: Any, *_: Any) -> None:
        try:
            for name, writer in self._writers.items():
                if failed is None:
                    self._flush(name)
                writer.close()
            if failed is None:
                for name, part in self._parts.items():
                    part.replace(files.target(self._places[name]))
        finally:
            for part in self._parts.values():
                part.unlink(missing_ok=True)
        if failed is None and "calls" not in self._places:
            files.remove(calls_path(self.path))

    def add(self, block: Block) -> None:
        """Take the rows of a block."""
        self._add("nodes", conform_nodes(block.nodes))
        if block.calls is not None:
            self._add("calls", conform_calls(block.calls))

    def seal(self, manifest: Mapping[str, Any]) -> None:
        """Put the manifest into the file."""
        self._writers["nodes"].add_key_value_metadata({MANIFEST_KEY.decode(): json.dumps(manifest)})

    def _add(self, name: str, frame: pd.DataFrame) -> None:
        self._waiting[name].append(pa.Table.from_pandas(frame, schema=_SCHEMAS[name], preserve_index=False))
        if sum(len(table) for table in self._waiting[name]) >= ROWS:
            self._flush(name)

    def _flush(self, name: str) -> None:
        waiting, self._waiting[name] = self._waiting[name], []
        if waiting:
            table = pa.concat_tables(waiting).replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION)})
            self._writers[name].write_table(table, row_group_size=ROWS)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StoredResult:
    """The result of an experiment in a file.

    Parameters
    ----------
    path : Path
        The settlement table (Parquet); the manifest is in its metadata.
    manifest : mapping
        As of :class:`harness_lab.simulate.Result`; ``outcomes`` counts the runs of each policy by how they ended.
    """

    path: Path
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> StoredResult:
        """Open a result that was written before.

        Raises
        ------
        ReadError
            If there is no such file, or it has no manifest.
        """
        return cls(path=Path(path), manifest=read_manifest(path))

    @property
    def policies(self) -> list[str]:
        """Names of the policies, in the order in which they were given."""
        return list(self.manifest["policies"])

    @property
    def settlements(self) -> Settlements:
        """The whole table in memory, in the order in which a result in memory has it."""
        table = Settlements.from_parquet(self.path)
        calls = None if table.calls is None else self._ordered(table.calls)
        return Settlements(nodes=self._ordered(table.nodes), calls=calls, report=table.report)

    def _ordered(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows by scenario and policy, as they were given; in the file they come by blocks of runs."""
        ranks = {}
        for column, names in (("scenario", "scenarios"), ("policy", "policies")):
            places = {name: i for i, name in enumerate(self.manifest[names])}
            ranks[column] = frame[column].map(places)
        rows = pd.DataFrame(ranks).sort_values(["scenario", "policy"], kind="stable").index
        return frame.loc[rows].reset_index(drop=True)

    def scan(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """Yield the node rows in pieces; only the columns that are asked for are read."""
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(columns=None if columns is None else list(columns)):
                yield batch.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.string(): pd.StringDtype()}.get)

    def summary(self) -> str:
        """Return what was simulated, in a few lines; the file is not read for it."""
        told = self.manifest
        lines = [
            f"{told['runs_done']:,} runs under each of {len(self.policies)} policies in {len(told['scenarios'])} "
            f"scenario(s), seed {told['seed']}, engine {told['engine']}; {told['ended']}; rows in {self.path.name}"
        ]
        for name, counts in told["outcomes"].items():
            whole = sum(counts.values())
            lines.append(f"  {name}: {counts.get('completed', 0) / whole:.1%} of {whole:,} runs completed")
        return "\n".join(lines)

    def explain(self) -> str:
        """Return what the numbers rest on, and the next step."""
        return (
            "All policies met the same luck; assumes oblivious agents, unless the workload says how they react. The "
            "rows are in the file and were never all in memory. Next: harness_lab.compare(result), or "
            "harness-lab best FILE."
        )

    def __repr__(self) -> str:
        return f"StoredResult({self.path.name}, {self.manifest['runs_done']:,} runs of {len(self.policies)} policies)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest in a result's file.

    Raises
    ------
    ReadError
        If there is no such file, or it has none.
    """
    expected = "a result of an experiment (Parquet with a manifest)"
    try:
        metadata = pq.read_metadata(path).metadata or {}
        manifest: dict[str, Any] = json.loads(metadata[MANIFEST_KEY])
    except FileNotFoundError:
        raise ReadError(str(path), expected=expected, got="no such file") from None
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise ReadError(str(path), expected=expected, got=_why(error)) from None
    return manifest


def _why(error: Exception) -> str:
    return "no manifest" if isinstance(error, KeyError) else str(error).partition("\n")[0]


def write_result(path: str | os.PathLike[str], settlements: Settlements, manifest: Mapping[str, Any]) -> Path:
    """Write a table with its manifest; other tables are written by ``Settlements.to_parquet``."""
    from harness_lab.simulate.blocks import Block

    with TableFile(path, calls=settlements.calls is not None) as file:
        file.add(Block(settlements.nodes, settlements.calls, None))
        file.seal(manifest)
    return Path(path)

"""The Parquet files of a settlement store: writing, scanning, leaving rows out, removing what nobody names."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from harness_lab.errors import ReadError
from harness_lab.settlements._keys import KEY, index
from harness_lab.settlements._manifest import NAME, PREVIOUS, Manifest, sync_folder
from harness_lab.settlements.columns import CALL_COLUMNS, NODE_COLUMNS
from harness_lab.settlements.schema import SCHEMA_VERSION, migrate
from harness_lab.settlements.store import ARROW, PANDAS, VERSION_KEY, stored_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pandas as pd

_COLUMNS: Final = {"nodes": NODE_COLUMNS, "calls": CALL_COLUMNS}
_ROW_GROUP: Final = 100_000
_BATCH: Final = 65_536


def schema(table: str) -> pa.Schema:
    """Return a table's Arrow schema, in this program's version."""
    return pa.schema([(column.name, ARROW[column.dtype]) for column in _COLUMNS[table]])


def dataset(folder: Path, manifest: Manifest, table: str) -> Any:
    """Return a table's files in force as one dataset; files of an older schema are brought up first (in memory)."""
    wanted = schema(table)
    parts = [_current(folder / name, wanted) for name in manifest.files(table)]
    if not parts:
        return ds.dataset(wanted.empty_table())
    return ds.dataset(parts)


def _current(path: Path, wanted: pa.Schema) -> Any:
    """Return one file as a dataset in the wanted schema."""
    try:
        found = pq.read_schema(path)
        version = stored_version(found.metadata)
        if version == SCHEMA_VERSION:
            return ds.dataset(path, schema=wanted, format="parquet")
        if version is None:
            raise ReadError(path.name, expected="a file of a settlement store", got="Parquet without a schema version")
        with pq.ParquetFile(path) as file:
            frame = file.read().to_pandas(types_mapper=PANDAS.get, ignore_metadata=True)
    except FileNotFoundError:
        raise ReadError(path.name, expected="a file that the store names", got="no such file") from None
    except (pa.ArrowException, OSError) as error:
        expected = "a file of a settlement store"
        raise ReadError(path.name, expected=expected, got=str(error).partition("\n")[0]) from None
    return ds.dataset(_table(migrate(frame, version=version), wanted))


def _table(frame: pd.DataFrame, wanted: pa.Schema) -> pa.Table:
    return pa.Table.from_pandas(frame.reindex(columns=wanted.names), schema=wanted, preserve_index=False)


def scan(
    folder: Path, manifest: Manifest, table: str, columns: Sequence[str] | None = None, where: Any = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that meet a condition, a batch at a time; what is not asked for is not read."""
    whole = dataset(folder, manifest, table)
    chosen = None if columns is None else list(columns)
    for batch in whole.to_batches(
        columns=chosen, filter=where, batch_size=_BATCH, batch_readahead=2, fragment_readahead=1
    ):
        if batch.num_rows:
            yield batch


def to_frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """Return a batch as a frame of the schema's dtypes."""
    frame: pd.DataFrame = batch.to_pandas(types_mapper=PANDAS.get)
    return frame


def write(folder: Path, manifest: Manifest, *, nodes: pd.DataFrame, calls: pd.DataFrame) -> Manifest:
    """Write new files and return the manifest that names them; it is not in force yet."""
    generation = manifest.generation + 1
    for table, frame in (("nodes", nodes), ("calls", calls)):
        if len(frame):
            name = _name(table, generation)
            _write(folder / name, _table(frame, schema(table)))
            manifest = manifest.with_files(table, {**manifest.files(table), name: len(frame)})
    return replace(manifest, generation=generation, schema_version=SCHEMA_VERSION)


def _name(table: str, generation: int) -> str:
    return f"{table}/{generation:06d}-{secrets.token_hex(4)}.parquet"


def _write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(exist_ok=True)
    table = table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION).encode()})
    with path.open("wb") as file:
        pq.write_table(table, file, compression="zstd", row_group_size=_ROW_GROUP)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def without(folder: Path, manifest: Manifest, runs: pd.DataFrame) -> Manifest:
    """Return a manifest without some runs: the files that hold them are written anew, one at a time.

    Parameters
    ----------
    folder, manifest
        The store.
    runs : DataFrame
        The keys (``policy, scenario, run``) to leave out; calls that name no policy go by their run alone.
    """
    if runs.empty:
        return manifest
    names = pa.array(runs["run"].unique(), type=pa.string())
    gone = index(runs, KEY)
    for table in ("nodes", "calls"):
        kept = dict(manifest.files(table))
        for name in manifest.files(table):
            part = _current(folder / name, schema(table))
            if not part.count_rows(filter=ds.field("run").isin(names)):
                continue
            rows = part.to_table()
            drop = pa.array(index(rows.select(list(KEY)).to_pandas(), KEY).isin(gone))
            if table == "calls":
                silent = pc.and_(pc.is_null(rows["policy"]), pc.is_null(rows["scenario"]))
                drop = pc.or_(drop, pc.and_(silent, pc.is_in(rows["run"], value_set=names)))
            del kept[name]
            rows = rows.filter(pc.invert(drop))
            if rows.num_rows:
                new = _name(table, manifest.generation + 1)
                _write(folder / new, rows)
                kept[new] = rows.num_rows
        manifest = manifest.with_files(table, kept)
    return manifest


def remove_unnamed(folder: Path, manifest: Manifest) -> None:
    """Remove files that neither this manifest nor the one before it names, and remember this one.

    Files of the manifest before may still be read by somebody; what an interrupted append left is named by none.
    """
    in_force = {*manifest.nodes, *manifest.calls}
    previous = folder / PREVIOUS
    try:
        earlier = set(json.loads(previous.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        earlier = set()
    for table in ("nodes", "calls"):
        for path in sorted((folder / table).glob("*.parquet")) if (folder / table).is_dir() else ():
            if f"{table}/{path.name}" not in in_force | earlier:
                path.unlink(missing_ok=True)
    for path in folder.glob(f".{NAME}.*.tmp"):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        previous.write_text(json.dumps(sorted(in_force)), encoding="utf-8")

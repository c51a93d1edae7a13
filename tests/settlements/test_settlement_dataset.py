"""A store of settlements: nothing twice, nothing lost, nothing loaded that was not asked for."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pytest

from harness_lab.errors import InputError, ReadError
from harness_lab.settlements import SCHEMA_VERSION, Settlements, SettlementStore, read
from harness_lab.settlements.dataset import open_store

STORED = Path(__file__).parent / "stored"


def run(name: str, *, calls: int = 2, start: int | None = 5, model: str = "m", source: str = "a.jsonl") -> Settlements:
    nodes = {"run": [name], "node": "0", "model": model, "calls": calls, "start_ns": start, "source": source}
    rows = {"run": [name] * calls, "node": "0", "call": list(range(calls)), "output": 7, "source": source}
    return Settlements.from_columns({**nodes, "output": 7 * calls}, rows)


def several(*names: str) -> Settlements:
    return Settlements.concat(run(name) for name in names)


def test_what_goes_in_comes_out(tmp_path) -> None:
    store, table = SettlementStore(tmp_path / "s"), several("a", "b", "c")
    store.append(table)
    pd.testing.assert_frame_equal(store.read().nodes, table.nodes)
    pd.testing.assert_frame_equal(store.read().calls, table.calls)


def test_appending_the_same_again_adds_nothing_and_writes_nothing(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(several("a", "b"))
    before = (tmp_path / "store.json").read_bytes()
    done = store.append(several("b", "a"))
    assert (done.added, done.replaced, done.unchanged) == (0, 0, 2)
    assert (tmp_path / "store.json").read_bytes() == before
    assert len(store) == 2


def test_reading_the_same_folder_again_adds_nothing(tmp_path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "one.csv").write_text("run,node,output,start\nx,0,5,2026-01-01T00:00:00Z\ny,0,6,\n")
    store = SettlementStore(tmp_path / "store")
    assert store.append(read(tmp_path / "records")).added == 2
    assert store.append(read(tmp_path / "records")).unchanged == 2
    assert len(store) == 2


def test_a_session_that_grew_replaces_its_older_rows(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(several("a", "b"))
    done = store.append(run("a", calls=5))
    assert (done.added, done.replaced, done.nodes, done.calls) == (0, 1, 2, 7)
    assert store.read(run="a").calls["call"].tolist() == [0, 1, 2, 3, 4]
    assert store.read(run="b").calls["call"].tolist() == [0, 1]


def test_an_older_copy_does_not_replace_what_the_store_knows_better(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(run("a", calls=5))
    assert store.append(run("a", calls=3)).kept_older == 1
    assert store.read().nodes["calls"].tolist() == [5]


def test_another_run_of_the_same_name_is_kept_beside_it_and_found_again(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(run("task-1", model="m", start=5))
    other = run("task-1", model="n", start=9, source="b.jsonl")
    assert store.append(other).added == 1
    assert store.append(other).unchanged == 1
    assert store.read().nodes[["run", "model"]].to_numpy().tolist() == [["task-1", "m"], ["task-1~2", "n"]]
    assert store.read(run="task-1~2").calls["run"].tolist() == ["task-1~2"] * 2


def test_without_a_start_the_file_says_whether_it_is_the_same_run(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(run("a", start=None, source="x/runs.csv"))
    assert store.append(run("a", start=None, calls=3, source="runs.csv")).replaced == 1
    assert store.append(run("a", start=None, calls=4, source="other.csv")).added == 1


def test_simulated_runs_are_known_by_policy_and_scenario_too(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    for policy in ("pool", "ledger"):
        table = Settlements.from_columns({"run": ["0", "1"], "node": "0", "policy": policy, "start_ns": 0})
        assert store.append(table).added == 2
    assert len(store.read(policy="pool")) == 2
    assert store.runs() == 4


def simulated(policy: str | None, *, named: bool = True, output: int = 1) -> Settlements:
    """Return run "0" under a policy, with one call."""
    calls = {"run": ["0"], "node": "0", "call": 0, "output": output, "policy": policy if named else None}
    return Settlements.from_columns({"run": ["0"], "node": "0", "policy": policy, "scenario": "base"}, calls)


def test_a_run_under_several_policies_keeps_the_calls_of_each(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(simulated("pool"))
    store.append(simulated("ledger", output=2))
    assert store.append(simulated("pool")).unchanged == 1
    assert store.append(simulated("ledger", output=3)).replaced == 1
    found = {policy: store.read(policy=policy).calls["output"].tolist() for policy in ("pool", "ledger")}
    assert found == {"pool": [1], "ledger": [3]}
    assert store.read().where(policy="ledger").calls["output"].tolist() == [3]


def test_calls_take_the_only_policy_of_their_run(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(simulated("pool", named=False))
    assert store.read().calls[["policy", "scenario"]].iloc[0].tolist() == ["pool", "base"]


def test_calls_that_cannot_be_told_apart_are_refused(tmp_path) -> None:
    both = Settlements.concat([simulated("pool", named=False), simulated("ledger", named=False)])
    with pytest.raises(InputError, match=r"^store: expected calls that name the policy and scenario of their run"):
        SettlementStore(tmp_path).append(both)


def test_only_the_columns_and_rows_that_were_asked_for_are_read(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(several("a", "b", "c"))
    (frame,) = store.scan(columns=["run", "output"], where=ds.field("output") > 5, run=["a", "c"])
    assert frame.to_dict("list") == {"run": ["a", "c"], "output": [14, 14]}
    assert not list(store.scan("calls", run="nobody"))
    with pytest.raises(InputError, match=r"^columns: expected columns of the calls, got 'outcome'"):
        list(store.scan("calls", columns=["outcome"]))
    with pytest.raises(InputError, match=r"^table: expected nodes or calls, got 'rows'"):
        list(store.scan("rows"))  # type: ignore[arg-type]


def test_unknown_is_a_condition_too(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(Settlements.concat([run("a"), run("b", start=None, source="b.jsonl")]))
    assert store.read(start_ns=None).nodes["run"].tolist() == ["b"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_older_version_is_read_and_appended_to(tmp_path, version: int) -> None:
    for table, file in (("nodes", f"version-{version}.parquet"), ("calls", f"version-{version}.calls.parquet")):
        (tmp_path / table).mkdir()
        (tmp_path / table / "000001-old.parquet").write_bytes((STORED / file).read_bytes())
    names = {"nodes": {"nodes/000001-old.parquet": 3}, "calls": {"calls/000001-old.parquet": 3}}
    old = {"kind": "harness_lab settlement store", "schema_version": version, "generation": 1, **names}
    (tmp_path / "store.json").write_text(json.dumps(old))
    store = open_store(tmp_path)
    assert store.append(Settlements.from_parquet(STORED / f"version-{version}.parquet")).unchanged == 2
    assert store.append(run("new")).nodes == 4
    assert sorted(store.read().nodes["run"]) == ["a", "a", "b", "new"]
    assert json.loads((tmp_path / "store.json").read_text())["schema_version"] == SCHEMA_VERSION


def test_a_folder_of_something_else_is_left_alone(tmp_path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ReadError, match=r"expected a settlement store, or an empty folder.*letter\.txt"):
        SettlementStore(tmp_path)
    with pytest.raises(ReadError, match=r"expected a settlement store, got 'none there'"):
        open_store(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "x"}', '{"nodes": {"../../etc/passwd": 1}}'])
def test_a_damaged_manifest_is_one_clear_line(tmp_path, text: str) -> None:
    (tmp_path / "store.json").write_text(text)
    with pytest.raises(ReadError, match=r"store\.json: expected a settlement store, .*damaged manifest'$"):
        SettlementStore(tmp_path)


@pytest.mark.parametrize("name", ["../x.parquet", "nodes/../../x", "nodes/.hidden", "/etc/passwd", "other/x"])
def test_a_manifest_that_points_outside_the_store_is_refused(tmp_path, name: str) -> None:
    data = {"kind": "harness_lab settlement store", "schema_version": 2, "generation": 1, "nodes": {name: 1}}
    (tmp_path / "store.json").write_text(json.dumps({**data, "calls": {}}))
    with pytest.raises(ReadError, match=r"damaged manifest"):
        SettlementStore(tmp_path)


def test_a_store_of_a_newer_schema_is_refused(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(run("a"))
    data = json.loads((tmp_path / "store.json").read_text()) | {"schema_version": 99}
    (tmp_path / "store.json").write_text(json.dumps(data))
    with pytest.raises(ReadError, match=r"^schema_version: expected at most 3, got 99.*newer harness_lab"):
        SettlementStore(tmp_path)


KILLED = """
import os, signal, sys
from harness_lab.settlements import Settlements, SettlementStore
from harness_lab.settlements import _parts, _manifest
moment, place = sys.argv[1], sys.argv[2]
seen = 0
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
def at(module, name, nth, *, after):
    real = getattr(module, name)
    def wrapped(*args, **kwargs):
        global seen
        seen += 1
        if seen == nth and not after: die()
        value = real(*args, **kwargs)
        if seen == nth and after: die()
        return value
    setattr(module, name, wrapped)
if moment == "commit":
    os_replace = _manifest.Manifest.commit
    _manifest.Manifest.commit = die
elif moment == "moved":
    _manifest.sync_folder = die
else:
    kind, nth = moment.split("-")
    at(_parts, "_write", int(nth), after=kind == "after")
from pathlib import Path
names = ["a", "new"]
nodes = {"run": names, "node": "0", "model": "m", "calls": 5, "start_ns": 5, "output": 35, "source": "a.jsonl"}
calls = {"run": ["a"] * 5 + ["new"] * 5, "node": "0", "call": [0, 1, 2, 3, 4] * 2, "output": 7, "source": "a.jsonl"}
SettlementStore(Path(place)).append(Settlements.from_columns(nodes, calls))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process outright")
@pytest.mark.parametrize("moment", ["before-1", "after-1", "after-2", "after-3", "after-4", "commit", "moved"])
def test_a_process_that_is_killed_leaves_the_store_as_it_was_or_whole(tmp_path, moment: str) -> None:
    store = SettlementStore(tmp_path)
    store.append(several("a", "b"))
    done = subprocess.run([sys.executable, "-c", KILLED, moment, str(tmp_path)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    calls = store.read().nodes.set_index("run")["calls"].to_dict()
    assert calls == ({"a": 5, "b": 2, "new": 5} if moment == "moved" else {"a": 2, "b": 2})
    assert len(store.read().calls) == sum(calls.values())
    again = Settlements.concat([run("a", calls=5), run("new", calls=5)])
    store.append(again)
    store.append(run("z"))
    store.append(run("zz"))
    assert store.read().nodes.set_index("run")["calls"].to_dict() == {"a": 5, "b": 2, "new": 5, "z": 2, "zz": 2}
    assert {path.name for path in tmp_path.rglob("*.tmp")} == set()


def test_files_that_were_replaced_stay_for_whoever_reads_and_go_with_the_append_after(tmp_path) -> None:
    store = SettlementStore(tmp_path)
    store.append(run("a"))
    (old,) = (tmp_path / "nodes").iterdir()
    store.append(run("a", calls=3))
    assert old.exists()
    store.append(run("b"))
    store.append(run("c"))
    assert not old.exists()


def test_a_folder_that_cannot_be_written_to_is_said_in_one_line(tmp_path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises((InputError, ReadError), match=r"expected a "):
        SettlementStore(tmp_path / "file" / "store").append(run("a"))


def test_sql_answers_over_both_tables(tmp_path) -> None:
    pytest.importorskip("duckdb")
    store = SettlementStore(tmp_path)
    store.append(several("a", "b"))
    found = store.sql("select n.run, sum(c.output) as output from nodes n join calls c using (run, node) group by 1")
    assert dict(zip(found["run"], found["output"], strict=True)) == {"a": 14, "b": 14}


@pytest.mark.parametrize(
    "query",
    [
        "select nothing from nowhere",
        "",
        "select * from read_csv('/etc/passwd')",
        "copy nodes to 'x.csv'",
        "install httpfs",
    ],
)
def test_sql_that_is_wrong_or_reaches_for_files_is_refused_in_one_line(tmp_path, query: str) -> None:
    pytest.importorskip("duckdb")
    store = SettlementStore(tmp_path)
    store.append(run("a"))
    with pytest.raises(InputError, match=r"^sql: expected a query that DuckDB understands, got .*"):
        store.sql(query)
    assert not Path("x.csv").exists()


def test_without_duckdb_the_error_says_what_to_install(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    store = SettlementStore(tmp_path)
    with pytest.raises(InputError, match=r"^sql: expected DuckDB to be installed.*harness-lab\[sql\]"):
        store.sql("select 1")


def test_two_processes_that_append_at_once_lose_nothing(tmp_path) -> None:
    code = (
        "import sys; from harness_lab.settlements import Settlements, SettlementStore\n"
        "store = SettlementStore(sys.argv[1])\n"
        "for n in range(4): store.append(Settlements.from_columns({'run': [sys.argv[2] + str(n)], 'node': '0'}))"
    )
    jobs = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "s"), name]) for name in "pq"]
    assert [job.wait() for job in jobs] == [0, 0]
    assert SettlementStore(tmp_path / "s").runs() == 8


@pytest.mark.parametrize("rows", [80_000, pytest.param(3_000_000, marks=pytest.mark.slow)])
def test_a_scan_of_one_column_does_not_hold_the_table(tmp_path, rows: int) -> None:
    store = SettlementStore(tmp_path)
    step = 40_000
    for first in range(0, rows, step):
        runs = pd.array([f"r{n:08d}" for n in range(first, first + step)], dtype="string")
        store.append(Settlements.from_columns({"run": runs, "node": "0", "cost_nusd": range(first, first + step)}))
    tracemalloc.start()
    total = sum(int(frame["cost_nusd"].sum()) for frame in store.scan(columns=["cost_nusd"]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == rows * (rows - 1) // 2
    assert peak < 8 * 2**20

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from harness_lab.errors import InputError, ReadError
from harness_lab.settlements import ReadReport, SetAside, Settlements


def table() -> Settlements:
    nodes = {
        "run": ["a", "a", "b"],
        "node": ["0", "1", "0"],
        "agent": ["lead", "worker", "lead"],
        "outcome": ["completed", "exhausted", "denied"],
        "stopped_by": [None, "cost-exhausted", None],
        "input_total": [100, None, None],
        "cost_nusd": [1_500_000_000, 2, None],
        "duration_ns": [2_500_000_000, None, None],
        "start_ns": [1_763_508_908_000_000_000, None, 1_763_608_908_000_000_000],
    }
    return Settlements.from_columns(nodes, {"run": ["a", "a", "b"], "node": ["0", "1", "0"], "call": [0, 0, 0]})


def test_the_summary_says_what_is_there_and_what_is_unknown() -> None:
    text = table().summary()
    assert "3 node(s) of 2 run(s), 3 calls, started 2025-11-18 to 2025-11-20" in text
    assert "outcomes: completed 1 (33.3%), exhausted 1 (33.3%), denied 1 (33.3%)" in text
    assert "stopped by: cost-exhausted 1 (33.3%)" in text
    assert "unknown: usage 1 (33.3%), cost 1 (33.3%), delivery 3 (100.0%)" in text


def test_an_empty_table_can_be_summed_up() -> None:
    assert Settlements.from_columns({}).summary().startswith("0 node(s) of 0 run(s), no call rows")


def test_where_keeps_matching_nodes_and_their_calls() -> None:
    leads = table().where(agent="lead", outcome=["completed", "failed"])
    assert leads.nodes["run"].tolist() == ["a"]
    assert leads.calls is not None
    assert leads.calls[["run", "node"]].values.tolist() == [["a", "0"]]  # noqa: PD011
    assert len(table().where(stopped_by=None)) == 2


def test_where_on_a_column_that_does_not_exist_lists_those_that_do() -> None:
    with pytest.raises(InputError, match=r"^agnet: expected a column of the nodes: run, policy, .*got 'agnet'"):
        table().where(agnet="lead")


def test_money_and_time_are_shown_in_dollars_and_seconds() -> None:
    assert table().cost_usd.tolist() == [1.5, 2e-9, pd.NA]
    assert table().duration_s.iloc[0] == 2.5
    assert table().duration_s.isna().sum() == 2


def test_changing_the_frame_does_not_change_the_table() -> None:
    settlements = table()
    frame = settlements.to_frame()
    frame.loc[0, "agent"] = "other"
    assert settlements.nodes["agent"].iloc[0] == "lead"


def test_html_escapes_whatever_the_records_say() -> None:
    evil = "<script>alert(1)</script>"
    report = ReadReport(read=1, set_aside=(SetAside(evil, 1, evil),))
    nodes = Settlements.from_columns({"run": evil, "node": "0", "stopped_by": [evil]}).nodes
    html = Settlements(nodes=nodes, report=report)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_concat_adds_rows_calls_and_reports() -> None:
    both = Settlements.concat([table(), Settlements.from_columns({"run": "c", "node": ["0"]})])
    assert both.nodes["run"].tolist() == ["a", "a", "b", "c"]
    assert both.calls is not None
    assert len(both.calls) == 3
    assert both.report.read == 4
    assert len(Settlements.concat([])) == 0


def test_a_frame_of_another_shape_is_refused_with_the_way_to_make_it_fit() -> None:
    with pytest.raises(InputError, match=r"^nodes: expected the columns of the schema.*from_columns"):
        Settlements(nodes=pd.DataFrame({"run": ["a"]}))


def test_a_table_comes_back_from_parquet_as_it_was(tmp_path) -> None:
    report = ReadReport(files=1, read=4, kept=3, set_aside=(SetAside("f", 2, "why"),))
    before = Settlements(nodes=table().nodes, calls=table().calls, report=report)
    after = Settlements.from_parquet(before.to_parquet(tmp_path / "runs.parquet"))
    pd.testing.assert_frame_equal(after.nodes, before.nodes)
    assert after.calls is not None
    assert before.calls is not None
    pd.testing.assert_frame_equal(after.calls, before.calls)
    assert after.report == report
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.calls.parquet", "runs.parquet"]


def test_calls_of_an_earlier_table_do_not_stay_beside_a_new_one(tmp_path) -> None:
    place = table().to_parquet(tmp_path / "runs.parquet")
    Settlements(nodes=table().nodes).to_parquet(place)
    assert Settlements.from_parquet(place).calls is None


def test_writing_where_nothing_can_be_written_says_so(tmp_path) -> None:
    with pytest.raises(InputError, match=r"expected a place that can be written to, got 'No such file"):
        table().to_parquet(tmp_path / "no" / "runs.parquet")


def test_half_a_million_rows_are_columns_and_not_rows() -> None:
    n = 500_000
    columns = {"run": pd.Series(np.arange(n)).astype("string"), "node": "0", "output": np.arange(n), "calls": 1}
    settlements = Settlements.from_columns(columns)
    assert len(settlements) == n
    assert int(settlements.nodes["output"].sum()) == n * (n - 1) // 2


@pytest.mark.parametrize("content", [b"", b"PAR1 not really", b"run,node\n"])
def test_a_file_that_is_no_table_is_refused(tmp_path, content: bytes) -> None:
    place = tmp_path / "x.parquet"
    place.write_bytes(content)
    with pytest.raises(ReadError, match=r"expected a settlement table"):
        Settlements.from_parquet(place)


def test_a_missing_file_and_a_foreign_table_are_refused(tmp_path) -> None:
    with pytest.raises(ReadError, match=r"expected a settlement table.*no such file"):
        Settlements.from_parquet(tmp_path / "none.parquet")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "foreign.parquet")
    with pytest.raises(ReadError, match=r"Parquet without a schema version.*settlements\.read"):
        Settlements.from_parquet(tmp_path / "foreign.parquet")


def test_explain_says_what_comes_next() -> None:
    assert "harness-lab floors" in table().explain()
    assert repr(table()) == "Settlements(3 nodes of 2 runs, 3 calls)"

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError, ReadError
from harness_lab.outcome import CHANNELS
from harness_lab.settlements import CALL_COLUMNS, NODE_COLUMNS, conform_calls, conform_nodes, empty_calls, empty_nodes
from harness_lab.settlements.schema import SCHEMA_VERSION, migrate

ONE = {"run": ["r"], "node": ["0"]}


def test_an_empty_table_has_every_column_with_its_dtype() -> None:
    for frame, columns in ((empty_nodes(), NODE_COLUMNS), (empty_calls(), CALL_COLUMNS)):
        assert list(frame.columns) == [column.name for column in columns]
        assert [str(dtype) for dtype in frame.dtypes] == [column.dtype for column in columns]
        assert len(frame) == 0


def test_every_column_says_what_it_means_and_what_na_means() -> None:
    for column in (*NODE_COLUMNS, *CALL_COLUMNS):
        assert column.meaning
        assert "NA" in column.meaning or column.name in {"run", "node", "outcome", "schema_version"}


def test_asks_ceilings_and_holds_have_one_column_for_each_channel() -> None:
    names = {column.name for column in NODE_COLUMNS}
    assert {f"{kind}_{channel}" for kind in ("ask", "ceiling", "held") for channel in CHANNELS} <= names
    assert {"ask_time_ns", "ceiling_time_ns"} <= names


def test_missing_columns_become_na_and_scalars_apply_to_every_row() -> None:
    frame = conform_nodes({"run": ["a", "b"], "node": "0", "output": np.array([1, 2])})
    assert frame["node"].tolist() == ["0", "0"]
    assert frame["cost_nusd"].isna().all()
    assert frame["outcome"].tolist() == ["unknown", "unknown"]
    assert frame["schema_version"].tolist() == [SCHEMA_VERSION] * 2


def test_an_unknown_column_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"^nodes columns: expected only columns of the schema.*tokens_total"):
        conform_nodes({**ONE, "tokens_total": [1]})


@pytest.mark.parametrize("value", [True, "7", 1.5, float("inf"), b"7"])
def test_what_is_no_whole_number_is_no_count(value: object) -> None:
    with pytest.raises(InputError, match=r"^nodes\.output: expected whole numbers or NA, got .*row 0"):
        conform_nodes({**ONE, "output": [value]})


def test_a_negative_count_is_refused_with_its_row_and_run() -> None:
    with pytest.raises(InputError, match=r"^nodes\.calls: expected at least 0, got -1.*row 1 \(run b\)"):
        conform_nodes({"run": ["a", "b"], "node": "0", "calls": [3, -1]})


def test_the_prompt_is_the_sum_of_its_parts_where_all_are_known() -> None:
    parts = {"input_fresh": [5, 5], "cache_read": [7, None], "cache_write": [1, 1]}
    frame = conform_nodes({"run": ["a", "b"], "node": "0", **parts})
    assert frame["input_total"].tolist() == [13, pd.NA]
    with pytest.raises(InputError, match=r"^nodes\.input_total: expected the sum of"):
        conform_nodes({**ONE, "input_fresh": [5], "cache_read": [7], "cache_write": [1], "input_total": [14]})


@pytest.mark.parametrize(("part", "whole"), [("reasoning", "output"), ("cache_write_1h", "cache_write")])
def test_a_part_never_exceeds_its_whole(part: str, whole: str) -> None:
    assert conform_calls({**ONE, part: [9], whole: [None]})[part].tolist() == [9]
    with pytest.raises(InputError, match=rf"^calls\.{part}: expected at most {whole}, got 9"):
        conform_calls({**ONE, part: [9], whole: [8]})


def test_outcome_and_cause_are_words_of_the_vocabulary() -> None:
    with pytest.raises(InputError, match=r"^nodes\.outcome: expected one of completed"):
        conform_nodes({**ONE, "outcome": ["Completed"]})
    with pytest.raises(InputError, match=r"^nodes\.cause: expected one of limit"):
        conform_nodes({**ONE, "cause": ["bad luck"]})


def test_a_row_without_a_run_is_refused() -> None:
    with pytest.raises(InputError, match=r"^nodes\.run: expected a value in every row"):
        conform_nodes({"run": [None], "node": ["0"]})


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(InputError, match=r"the same length for all"):
        conform_nodes({"run": ["a", "b"], "node": ["0"]})


def test_large_integers_beside_unknown_ones_stay_exact() -> None:
    frame = conform_nodes({"run": ["a", "b"], "node": "0", "start_ns": [2**60 + 1, None]})
    assert frame["start_ns"].iloc[0] == 2**60 + 1


def test_a_newer_schema_is_refused_and_an_older_one_is_brought_up_step_by_step() -> None:
    old = pd.DataFrame({"run": ["a"], "knot": ["0"]})
    step = {1: lambda frame: frame.rename(columns={"knot": "node"}), 2: lambda frame: frame.assign(calls=1)}
    assert list(migrate(old, version=1, migrations=step, target=3).columns) == ["run", "node", "calls"]
    with pytest.raises(ReadError, match=r"^schema_version: expected at most 3, got 4"):
        migrate(old, version=4)
    with pytest.raises(ReadError, match=r"can be brought to 3, got 0"):
        migrate(old, version=0)
    with pytest.raises(InputError, match=r"^nodes\.schema_version"):
        conform_nodes({**ONE, "schema_version": [SCHEMA_VERSION + 1]})


counts = st.one_of(st.none(), st.integers(0, 2**40))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(counts, counts, counts), min_size=1, max_size=20))
def test_conforming_twice_changes_nothing(rows: list[tuple[int | None, ...]]) -> None:
    fresh, read, write = zip(*rows, strict=True)
    runs = [f"r{number}" for number in range(len(rows))]
    parts = {"input_fresh": list(fresh), "cache_read": list(read), "cache_write": list(write)}
    once = conform_nodes({"run": runs, "node": "0", **parts})
    pd.testing.assert_frame_equal(conform_nodes(once), once)
    known = once.dropna(subset=[*parts])
    assert (known["input_total"] == known[[*parts]].sum(axis=1)).all()

"""`ceiling` on the command line: what it would have done, with intervals and units; no option is ignored in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run

from harness_lab.analyze import ceiling, ceiling_curve
from harness_lab.cli.output import by_group, named_by_unit
from harness_lab.settlements import read

DATA = Path(__file__).parents[2] / "data" / "synthetic_runs.parquet"
SHARES = ("cut_share", "avoided_share", "sunk_share", "completed_share")


def test_json_has_the_unit_and_every_share_with_its_interval_as_the_curve_has_them(capsys) -> None:
    assert run("ceiling", DATA, "--target", "0.85", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["unit"] == "nano-dollars"
    curve = ceiling_curve(read(DATA), candidates=[row["ceiling"]]).iloc[0]
    for name in (f"{share}{end}" for share in SHARES for end in ("", "_low", "_high")):
        assert row[name] == pytest.approx(curve[name])
    assert row["cut_share_low"] < row["cut_share"] < row["cut_share_high"]


def test_the_text_has_the_intervals_too_and_so_has_each_group(capsys) -> None:
    assert run("ceiling", DATA, "--target", "0.6", "--by", "task_kind") == 0
    text = capsys.readouterr().out
    effects = [line for line in text.splitlines() if line.startswith("At it, ")]
    assert len(effects) == len(ceiling(read(DATA), target=0.6, by="task_kind").parts)
    assert all(line.count("[") == 3 or "no interval" in line for line in effects)


def test_every_ceiling_is_printed_when_asked_for(capsys) -> None:
    assert run("ceiling", DATA, "--target", "0.85", "--curve") == 0
    assert "every ceiling, with 95 % intervals" in capsys.readouterr().out
    assert run("ceiling", DATA, "--target", "0.85", "--curve", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["unit"], len(found["curve"])) == ("nano-dollars", len(ceiling_curve(read(DATA))))


@pytest.mark.parametrize(
    "options",
    [
        ["--target", "0.5", "--failure-usd", "3"], ["--runaways", DATA, "--failure-usd", "3"],
        ["--by", "model", "--write", "c.json"], ["--simulate", "--by", "model"], ["--retries", "2"],
        ["--into", DATA], ["--key-file", DATA], ["--experiment", DATA], ["--curve", "--simulate"],
    ],
)  # fmt: skip
def test_an_option_that_would_be_ignored_is_refused(options: list, capsys) -> None:
    assert run("ceiling", DATA, *options) == 2
    assert capsys.readouterr().err.startswith("harness-lab: --")


def test_a_declined_ceiling_exits_with_1_and_writes_nothing(tmp_path) -> None:
    out = tmp_path / "config.json"
    assert run("ceiling", DATA, "--target", "0.999", "--write", out) == 1
    assert not out.exists()


def test_metrics_in_dollars_and_seconds_are_named_so() -> None:
    frame = ceiling_curve(read(DATA)).head(1)[["avoided_nusd"]].rename(columns={"avoided_nusd": "cost_nusd_high"})
    assert list(named_by_unit(frame)) == ["cost_usd_high"]
    assert named_by_unit({"duration_ns": 3}) == {"duration_s": 3}


def test_groups_without_an_answer_are_in_the_json_with_the_reason() -> None:
    from harness_lab.tune import sensitivity_of_records

    nodes = read(DATA).nodes
    first = nodes["run"].drop_duplicates().head(20)
    roots = nodes[nodes["parent"].isna()]
    few = roots.assign(task_kind=roots["run"].isin(first).map({True: "few", False: "many"}))
    rows = by_group(sensitivity_of_records(few, ("calls",), by="task_kind"))
    assert [row["group"] for row in rows] == ["many", "few"]
    assert "at least 50 runs" in rows[1]["declined"]


UNITS = {
    "distribution": ([], lambda found: found["unit"]),
    "caps": ([], lambda found: found["unit"]),
    "holds": (["--pool", "2e6", "--at-once", "3"], lambda found: found[0]["unit"]),
    "floor-costs": ([], lambda found: found[0]["unit"]),
    "price": ([], lambda found: found[0]["unit"]),
    "period": (["--budget-usd", "40", "--period-runs", "40"], lambda found: found["figures"][0]["unit"]),
}


@pytest.mark.parametrize("command", UNITS)
def test_amounts_in_json_have_their_unit(command: str, capsys) -> None:
    options, unit = UNITS[command]
    assert run(command, DATA, *options, "--json") == 0
    assert unit(json.loads(capsys.readouterr().out))

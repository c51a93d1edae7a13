"""Which paths need cheap runs, how many, at what cost; and what their results change."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from harness_lab.analyze import floors, plan_probes
from harness_lab.analyze.probes import with_results
from harness_lab.cli import main
from harness_lab.errors import InputError
from harness_lab.floors import FloorKey
from harness_lab.settlements import Settlements

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400 * 10**9
NOW = 2_000_000_000 * 10**9
CENT = 10_000_000


def rows(path: str, n: int, *, tokens: int = 5000, age_days: int = 1, **other: Any) -> pd.DataFrame:
    backend, model = path.split("/")
    given = {
        "backend": backend,
        "model": model,
        "outcome": "completed",
        "cost_nusd": [CENT * (i + 1) for i in range(n)],
    }
    runs = [f"{path}-{age_days}-{i}" for i in range(n)]
    used = {"run": runs, "node": runs, "input_total": [tokens + i for i in range(n)], "start_ns": NOW - age_days * DAY}
    return pd.DataFrame(used | given | other)


def table(*parts: pd.DataFrame) -> Settlements:
    return Settlements.from_columns(pd.concat(parts, ignore_index=True))


def derive(settlements: Settlements) -> Any:
    return floors(settlements, stale_after=timedelta(days=30), now_ns=NOW)


def test_a_path_is_unmeasured_stale_thin_or_needs_nothing() -> None:
    records = table(
        rows("pi/a", 14), rows("pi/b", 20, age_days=60), rows("pi/c", 3), rows("pi/d", 2, outcome="exhausted")
    )
    plan = plan_probes(records, derive(records))
    assert {p.key.model: (p.why, p.runs) for p in plan.probes} == {
        "b": ("stale", 14),
        "c": ("thin", 11),
        "d": ("unmeasured", 14),
    }
    assert plan.measured == 1


def test_the_number_of_runs_is_wilks_and_the_cost_that_of_recorded_runs() -> None:
    plan = plan_probes(table(rows("pi/a", 3)), coverage=0.95)
    probe = plan.probes[0]
    assert (probe.runs, probe.low_usd, probe.usual_usd) == (59 - 3, 0.01, 0.02)  # 0.95**59 < 0.05
    assert plan.total_usd == pytest.approx((0.56, 1.12))
    assert "56 run(s), about $0.56 to $1.12 (n = 3 run(s) of this path)" in plan.summary()


def test_a_wanted_path_is_priced_by_its_model_elsewhere_or_its_cost_is_unknown() -> None:
    wanted = [
        FloorKey(backend="codex", model="a"),
        FloorKey(backend="codex", model="z"),
        FloorKey(backend="pi", model="a"),
    ]
    plan = plan_probes(table(rows("pi/a", 14)), wanted=wanted)
    assert [(str(p.key.model), p.low_usd) for p in plan.probes] == [("a", 0.01), ("z", None)]
    assert "n = 14 run(s) of its model on other paths" in plan.summary()
    assert "cost unknown (no run of z has a recorded cost)" in plan.summary()
    assert plan.to_frame()["low_usd"].isna().tolist() == [False, True]


def test_results_retire_what_was_stale_and_add_to_what_was_not() -> None:
    before = table(rows("pi/a", 14, tokens=100, age_days=60), rows("pi/b", 10, tokens=100))
    results = table(rows("pi/a", 14, tokens=9000, age_days=0), rows("pi/b", 4, tokens=9000, age_days=0))
    after = with_results(before, results, derive(before))
    found = {path.key.model: (path.applies.floor, path.applies.n) for path in derive(after)}
    assert found == {"a": (9000, 14), "b": (100, 14)}
    plan = plan_probes(after, derive(after))
    assert plan.probes == ()
    assert "nothing to probe" in plan.summary()


def test_the_command_plans_and_reads_the_results_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, results = tmp_path / "before.parquet", tmp_path / "results.parquet"
    table(rows("pi/a", 3)).to_parquet(before)
    table(rows("pi/a", 11, age_days=0)).to_parquet(results)
    told = []
    for more in ([], ["--results", str(results)]):
        with pytest.raises(SystemExit) as left:
            main(["floors", str(before), "--plan-probes", "--want", "backend=codex,model=a", "--json", *more])
        assert left.value.code == 0
        told.append([(row["backend"], row["why"], row["runs"]) for row in json.loads(capsys.readouterr().out)])
    assert told == [[("pi", "thin", 11), ("codex", "unmeasured", 14)], [("codex", "unmeasured", 14)]]


@pytest.mark.parametrize(
    "options", [["--want", "backend=x,model=y"], ["--plan-probes", "--want", "x"], ["--plan-probes", "--coverage", "1"]]
)
def test_a_plan_that_makes_no_sense_is_refused_in_one_line(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(rows("pi/a", 3)).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(SystemExit) as left:
        main(["floors", str(tmp_path / "x.parquet"), *options])
    assert left.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    with pytest.raises(InputError, match="coverage"):
        plan_probes(table(rows("pi/a", 1)), coverage=1.5)


def test_paths_that_the_records_do_not_name_say_what_they_need() -> None:
    unnamed = rows("pi/a", 3, backend=None)
    plan = plan_probes(table(unnamed))
    assert plan.summary().splitlines() == [
        "1 path(s) have to be named before they can be run, and are not in the plan:",
        "- unknown / a (context unknown, input-total): its records name no backend; then 11 run(s), about $0.11 to "
        "$0.22 (n = 3 run(s) of this path)",
        "Name them where the records are read (--map backend=COLUMN --map model=COLUMN), or say what shall run them "
        "(--want backend=B,model=M).",
    ]
    assert (plan.unnamed, plan.probes, plan.total_usd) == (1, (), (0, 0))
    both = plan_probes(table(unnamed, rows("pi/b", 3)))
    assert both.summary().splitlines()[-3:] == plan.summary().splitlines()
    assert "have to be named" not in plan_probes(table(rows("pi/b", 14))).summary()


def test_a_path_that_is_not_named_and_measured_needs_its_name_only() -> None:
    (probe,) = plan_probes(table(rows("pi/a", 14, model=None, agent="w"))).to_name
    assert (probe.missing, probe.runs) == (("model",), 0)
    assert str(probe).endswith("its records name no model; then none is needed")


def test_paths_to_be_named_are_in_json_without_the_name_they_lack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(rows("pi/a", 3, backend=None, model=None), rows("pi/b", 2)).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(SystemExit):
        main(["floors", str(tmp_path / "x.parquet"), "--plan-probes", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [(row["backend"], row["model"], row["why"], row["runs"], row["missing"]) for row in told] == [
        ("pi", "b", "thin", 12, None),
        (None, None, "unnamed", 11, "backend, model"),
    ]


def test_a_path_of_an_agent_is_priced_by_its_own_runs() -> None:
    mine, other = rows("pi/a", 2, agent="w"), rows("pi/a", 3, agent="lead", cost_nusd=50 * CENT)
    other["run"] = other["node"] = ["x", "y", "z"]
    found = {p.key.agent: (p.low_usd, p.usual_usd, p.priced_by) for p in plan_probes(table(mine, other)).probes}
    assert found == {
        "w": (0.01, 0.015, "n = 2 run(s) of this path"),
        "lead": (0.5, 0.5, "n = 3 run(s) of this path"),
    }

"""Carrying an experiment out: scenarios, stopping early, what is kept, where it is written, and its manifest."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from harness_lab.errors import InputError, ReadError
from harness_lab.policies import shared_ledger, unlimited
from harness_lab.settlements import Settlements
from harness_lab.simulate import Experiment, Precision, Scenario, StoredResult, build_experiment
from harness_lab.simulate.precision import FIRST, Watch, run_values
from harness_lab.simulate.progress import Reporter, somebody_looks
from harness_lab.simulate.stream import read_manifest, write_result
from harness_lab.stats.distributions import Distribution

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def many(busy: Experiment) -> Experiment:
    """Two policies, so many runs that there is something to stop."""
    return replace(busy, runs=3_000).with_policies(shared_ledger(25, name="ledger"), unlimited())


@pytest.fixture
def slow_and_fast(busy: Experiment) -> Experiment:
    """The busy world, and the same with a model that takes ten times as long."""
    model = replace(busy.provider.models["m"], latency_s=Distribution.constant(60))
    slow = Scenario(name="slow", provider=replace(busy.provider, models={"m": model}))
    return replace(busy, runs=10, scenarios=(Scenario(name="as it is"), slow))


def test_every_policy_is_simulated_in_every_scenario_on_the_same_luck(slow_and_fast: Experiment) -> None:
    nodes = slow_and_fast.run(backend="serial").settlements.nodes
    assert nodes.groupby(["scenario", "policy"], sort=False).ngroups == 8
    alone = replace(slow_and_fast, scenarios=(), name="as it is").run(backend="serial").settlements.nodes
    pd.testing.assert_frame_equal(nodes[nodes["scenario"] == "as it is"].reset_index(drop=True), alone)
    free = nodes[(nodes["policy"] == "unlimited") & nodes["parent"].isna()].set_index(["scenario", "run"])
    assert free.loc["slow", "calls"].tolist() == free.loc["as it is", "calls"].tolist()
    assert (free.loc["slow", "duration_ns"] > free.loc["as it is", "duration_ns"]).all()


def test_the_results_of_scenarios_do_not_depend_on_blocks_or_workers(slow_and_fast: Experiment) -> None:
    digests = {slow_and_fast.run(backend="serial", block=block).digest() for block in (3, 250)}
    assert len({*digests, slow_and_fast.run(backend="loky", workers=2, block=4).digest()}) == 1


def test_scenarios_have_different_names_and_models_that_exist(busy: Experiment) -> None:
    with pytest.raises(InputError, match=r"^scenarios: expected different names"):
        replace(busy, scenarios=(Scenario(name="a"), Scenario(name="a")))
    with pytest.raises(InputError, match=r"^models of the workload"):
        replace(busy, scenarios=(Scenario(name="a", provider=replace(busy.provider, models={})),))


@pytest.mark.parametrize(
    "until",
    [Precision(metric="completed", half_width=0.04), Precision(metric="cost", relative=0.06),
     Precision(metric="time", half_width=3.0, of="differences"), Precision(metric="calls", relative=0.05)],
    ids=str,
)  # fmt: skip
def test_it_stops_when_the_wanted_half_width_is_reached(many: Experiment, until: Precision) -> None:
    result = many.run(backend="serial", until=until)
    told = result.manifest
    assert told["ended"] == "precise enough"
    assert told["runs_done"] < many.runs
    assert told["precision"]["looks"] >= 1
    nodes = result.settlements.nodes
    assert nodes.groupby("policy")["run"].nunique().tolist() == [told["runs_done"]] * 2
    values = {name: run_values(nodes[nodes["policy"] == name], until.metric) for name in result.policies}
    assert widest(values, until) <= (until.half_width or 0) + (until.relative or 0)


def widest(values: dict[str, Any], until: Precision) -> float:
    """Return the widest half-width by the plain formula of a mean, a little smaller than the corrected one."""
    found = [values["unlimited"] - values["ledger"]] if until.of == "differences" else list(values.values())
    known = [x[~np.isnan(x)] for x in found]
    scales = [1.0 if until.relative is None else abs(x.mean()) for x in known]
    return max(1.9 * x.std() / np.sqrt(x.size) / scale for x, scale in zip(known, scales, strict=True))


def test_a_precision_that_is_not_reached_is_said(many: Experiment) -> None:
    result = replace(many, runs=600).run(backend="serial", until=Precision(half_width=0.001))
    assert result.manifest["ended"] == "not precise enough after all runs"
    assert result.manifest["runs_done"] == 600


def test_the_first_runs_are_the_same_however_many_follow(many: Experiment) -> None:
    stopped = many.run(backend="serial", until=Precision(half_width=0.04))
    done = stopped.manifest["runs_done"]
    assert stopped.digest() == replace(many, runs=done).run(backend="serial").digest()


@pytest.mark.parametrize(
    "values",
    [{}, {"half_width": 1, "relative": 1}, {"half_width": 0}, {"relative": float("inf")},
     {"half_width": 1, "metric": "joy"}, {"half_width": 1, "of": "all"}, {"half_width": 1, "confidence": 95}],
    ids=str,
)  # fmt: skip
def test_a_bad_precision_is_refused(values: Any) -> None:
    with pytest.raises(InputError):
        Precision(**values)


def test_cancelling_keeps_what_is_done_under_every_policy(many: Experiment) -> None:
    blocks = iter([False] * 5 + [True])
    result = many.run(backend="serial", block=50, cancelled=lambda: next(blocks))
    assert result.manifest["ended"] == "cancelled"
    assert result.manifest["runs_done"] == 150
    assert result.digest() == replace(many, runs=150).run(backend="serial").digest()


@pytest.mark.parametrize("backend", ["serial", "loky"])
def test_an_interrupt_keeps_what_is_done(many: Experiment, backend: Any) -> None:
    def interrupt(done: int, _trees: int) -> None:
        if done >= 200:
            raise KeyboardInterrupt

    result = many.run(backend=backend, workers=2, block=50, progress=interrupt)
    assert result.manifest["ended"] == "cancelled"
    assert result.manifest["runs_done"] == 100


def test_an_interrupt_between_two_policies_keeps_the_same_runs_of_both(many: Experiment) -> None:
    def interrupt(done: int, _trees: int) -> None:
        if done >= 250:  # the first policy has a block more
            raise KeyboardInterrupt

    result = many.run(backend="serial", block=50, progress=interrupt)
    assert result.manifest["runs_done"] == 100
    assert result.digest() == replace(many, runs=100).run(backend="serial").digest()


def test_an_interrupt_before_anything_is_done_is_one(many: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness_lab.simulate.execute.simulate_block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        many.run(backend="serial")


def test_a_stream_holds_the_same_rows_with_its_manifest(busy: Experiment, tmp_path: Path) -> None:
    stored = busy.stream(tmp_path / "runs.parquet", calls=True, backend="serial", block=7)
    whole = busy.run(backend="serial", calls=True)
    pd.testing.assert_frame_equal(stored.settlements.nodes, whole.settlements.nodes)
    assert stored.settlements.calls is not None
    pd.testing.assert_frame_equal(stored.settlements.calls, whole.settlements.calls)
    again = StoredResult.open(tmp_path / "runs.parquet")
    assert again.manifest == stored.manifest == json.loads(json.dumps(stored.manifest))
    assert again.summary() == stored.summary()
    assert whole.manifest["config_sha256"] == again.manifest["config_sha256"]
    assert len(Settlements.from_parquet(stored.path)) == len(whole.settlements)


def test_a_stream_is_read_in_pieces(busy: Experiment, tmp_path: Path) -> None:
    stored = busy.stream(tmp_path / "runs.parquet", backend="serial")
    frames = list(stored.scan(["run", "policy", "calls"]))
    assert list(frames[0].columns) == ["run", "policy", "calls"]
    assert sum(map(len, frames)) == len(stored.settlements)


def test_a_stream_that_fails_leaves_nothing(busy: Experiment, tmp_path: Path) -> None:
    def fail(done: int, _trees: int) -> None:
        raise RuntimeError(str(done))

    with pytest.raises(RuntimeError):
        busy.stream(tmp_path / "runs.parquet", progress=fail, backend="serial")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="got 'a folder'"):
        busy.stream(tmp_path)


def test_a_cancelled_stream_is_a_whole_file(many: Experiment, tmp_path: Path) -> None:
    stored = many.stream(tmp_path / "runs.parquet", block=50, backend="serial", cancelled=lambda: True)
    assert stored.manifest["ended"] == "cancelled"
    assert pq.read_metadata(stored.path).num_rows == len(stored.settlements) > 0


def test_a_manifest_says_what_is_needed_to_get_the_result_again(busy: Experiment) -> None:
    told = busy.run(backend="serial").manifest
    assert told["draws"] == "draws v1"
    assert (told["seed"], told["runs"], told["runs_done"], told["ended"]) == (7, 40, 40, "all runs")
    assert told["engine"] == "kernel"
    assert told["specs"]["ledger"] == busy.policies[0].to_dict()
    assert told["config_sha256"] == busy.digest() != replace(busy, seed=8).digest()
    assert {"harness_lab", "numpy", "scipy", "python"} <= set(told)


def test_a_table_without_a_manifest_is_no_result(busy: Experiment, tmp_path: Path) -> None:
    result = busy.run(backend="serial")
    result.settlements.to_parquet(tmp_path / "plain.parquet")
    with pytest.raises(ReadError, match="a result of an experiment"):
        read_manifest(tmp_path / "plain.parquet")
    write_result(tmp_path / "told.parquet", result.settlements, result.manifest)
    assert read_manifest(tmp_path / "told.parquet")["seed"] == 7


def test_a_bar_is_drawn_only_where_somebody_may_look(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert not somebody_looks()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert somebody_looks()
    shown = Reporter(True, 100)
    assert "0/100" in capsys.readouterr().err
    shown.close()


def test_somebody_who_wants_to_know_is_told_every_block(busy: Experiment) -> None:
    told: list[tuple[int, int]] = []
    busy.run(backend="serial", block=20, progress=lambda done, trees: told.append((done, trees)))
    assert told == [(20 * i, 160) for i in range(1, 9)]


@pytest.mark.slow
def test_an_interval_that_stopped_a_simulation_still_covers() -> None:
    luck, covered = np.random.default_rng(1), []
    for _ in range(600):
        watch, values, n = Watch(Precision(metric="cost", relative=0.05)), luck.lognormal(0, 1, 20_000), FIRST
        while True:
            watch._values = {(0, 0): [values[:n]]}
            needed = watch.needed(n)
            if needed <= n:
                break
            n = needed
        covered.append(watch.estimates[0, 0].holds(np.exp(0.5)))
    assert 0.92 <= np.mean(covered) <= 0.98


FILE = """
runs = 4
[workload]
root = "solo"
[workload.agents.solo]
model = "m"
calls = { dist = "lognorm", s = 0.5, scale = 4 }
startup_tokens = 1000
[provider.models.m]
output_tokens = 50
latency_s = 1
[[policies]]
name = "free"
[[scenarios]]
name = "as it is"
[[scenarios]]
name = "slow and short"
[scenarios.workload.agents.solo]
calls = 2
[scenarios.provider.models.m]
latency_s = 30
"""


def test_scenarios_of_a_file_change_what_they_name_and_keep_the_rest() -> None:
    one = build_experiment(tomllib.loads(FILE))
    nodes = one.run(backend="serial").settlements.nodes.set_index("scenario")
    alone = build_experiment(tomllib.loads(FILE.split("[[scenarios]]")[0])).run(backend="serial").settlements.nodes
    assert nodes.loc["as it is", "calls"].tolist() == alone["calls"].tolist()
    assert nodes.loc["slow and short", "calls"].tolist() == [2] * 4
    assert nodes.loc["slow and short", "duration_ns"].tolist() == [60 * 10**9] * 4
    assert nodes.loc["slow and short", "input_total"].tolist() == [1000 + 1050] * 4


@pytest.mark.parametrize(
    ("line", "message"),
    [("[[scenarios]]\nruns = 3", r"^scenarios\.2.*expected name, and maybe tables workload and provider"),
     ("[[scenarios]]\nname = 'x'\n[scenarios.provider.models.m]\nlatency = 3", r"^scenarios\.2\..*latency")],
)  # fmt: skip
def test_a_bad_scenario_of_a_file_is_named_with_its_place(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_experiment(tomllib.loads(FILE + line))

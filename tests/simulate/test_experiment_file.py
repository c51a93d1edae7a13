"""Experiment files: what they build, and what they refuse in one clear line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness_lab.datasets import data_dir
from harness_lab.errors import InputError, ReadError
from harness_lab.simulate import build_experiment, gallery, load_experiment

TEXT = """
name = "small"
runs = 5
seed = 3
[workload]
root = "lead"
[workload.agents.lead]
model = "m"
calls = 3
startup_tokens = { dist = "uniform", loc = 500, scale = 1000 }
backend = "cli"
[[workload.agents.lead.spawns]]
agent = "helper"
count = 2
after = [0]
ask = { tokens = 8000, cost_usd = 0.5 }
[workload.agents.helper]
model = "m"
calls = 1
startup_tokens = 200
[provider.models.m]
output_tokens = 50
latency_s = 1
[provider.prices]
m = [{ input = 3.0, output = 15.0 }, { above_input_tokens = 1000, input = 6.0, output = 15.0 }]
[[policies]]
name = "pool"
max_wait_s = 10
[policies.reservation_pool]
tokens = 50_000
"""


def data(**changes: Any) -> dict[str, Any]:
    return tomllib.loads(TEXT) | changes


def test_a_file_builds_workload_provider_and_policies(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(TEXT)
    experiment = load_experiment(tmp_path / "x.toml")
    assert (experiment.runs, experiment.seed, experiment.name) == (5, 3, "small")
    (spawn,) = experiment.workload.agents["lead"].spawns
    assert (spawn.count, spawn.after, spawn.budget[2], spawn.budget[4]) == (2, (0,), 8000, 500_000_000)
    assert [tier.above_input_tokens for tier in experiment.provider.prices.models["m"]] == [0, 1000]
    assert experiment.policies[0].max_wait_s == 10
    assert set(experiment.run().settlements.nodes["agent"]) == {"lead", "helper"}


def test_the_shipped_file_fits_the_shipped_records() -> None:
    experiment = load_experiment(data_dir() / "experiment.toml")
    assert set(experiment.workload.agents) == {"lead", "worker", "reviewer"}
    assert [policy.name for policy in experiment.policies] == [
        "shared ledger",
        "reservation pool",
        "pool + tree limits",
    ]


def test_models_without_a_price_by_hand_take_the_list_price() -> None:
    given = data()
    given["workload"]["agents"]["helper"]["model"] = "claude-sonnet-4-5"
    given["provider"]["models"]["claude-sonnet-4-5"] = given["provider"]["models"]["m"]
    prices = build_experiment(given).provider.prices
    assert prices.models["claude-sonnet-4-5"][0].input == 3_000_000
    assert prices.source.startswith("by hand and genai-prices")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("runs",), 0, "at least 1"),
        (("seed",), -1, "seed"),
        (("workload", "root"), "nobody", "profile for each"),
        (
            ("workload", "agents", "lead", "calls"),
            {"dist": "nope"},
            r"workload\.agents\.lead\.calls\.dist: expected the name",
        ),
        (("workload", "agents", "lead", "calls"), {"dist": "lognorm", "s": float("nan")}, "expected"),
        (("workload", "agents", "lead", "model"), "other", "models of the workload"),
        (
            ("workload", "agents", "lead", "tokens"),
            3,
            "expected a known key .did you mean shared_tokens. allowed: model, calls",
        ),
        (("provider", "models", "m", "error_rate"), 1.5, r"^provider\.models\.m\.error_rate: expected"),
        (("workload", "agents", "lead", "failure_rate"), 3, r"^workload\.agents\.lead\.failure_rate: expected 0 to 1"),
        (("provider", "prices", "m"), {"output": 1.0}, "input and output"),
        (("policies",), [], "at least one"),
        (("policies",), [{"name": "a"}, {"name": "a"}], "different names"),
        (("policies",), [{"name": "a", "warp": {"speed": 9}}], "shared_ledger"),
        (("policies",), [{"name": "a", "shared_ledger": {}}], "max_steps"),
        (("policies",), [{"name": "a", "tree_limits": {"max_depth": -1}}], "max_depth"),
        (("policies",), [{"name": "a", "max_wait_s": 5, "tree_limits": {"max_concurrent": 2}}], "max_depth=1"),
    ],
)
def test_what_is_wrong_is_named(place: tuple[str, ...], value: object, message: str) -> None:
    given = data()
    inner = given
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    with pytest.raises(InputError, match=message):
        build_experiment(given)


def test_a_missing_or_broken_file_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"experiment file \(TOML\)"):
        load_experiment(tmp_path / "nowhere.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ReadError, match=r"experiment file \(TOML\)"):
        load_experiment(tmp_path / "bad.toml")


def test_asks_beside_a_workload_that_is_written_out_are_refused() -> None:
    given = data()
    given["workload"]["asks"] = {"helper": {"tokens": 8000}}
    with pytest.raises(InputError, match=r"^workload\.asks: expected .* write ask = \{ \.\.\. \} inside"):
        build_experiment(given)


def test_a_distribution_without_a_name_is_told_with_its_place_and_an_example() -> None:
    given = data()
    given["provider"]["models"]["m"]["latency_s"] = {"s": 0.5, "scale": 2}
    with pytest.raises(InputError, match=r'^provider\.models\.m\.latency_s\.dist: .*\{ dist = "lognorm", s = 0\.5'):
        build_experiment(given)


def test_every_problem_is_told_in_one_line_up_to_five() -> None:
    given = data()
    lead = given["workload"]["agents"]["lead"]
    del lead["model"]
    lead |= {"tool_s": "slow", "grow_tokens": 5}
    given |= {"runs": "many", "sed": 1, "nam": "x", "workloads": 1}
    with pytest.raises(InputError) as raised:
        build_experiment(given)
    text = str(raised.value)
    assert "runs: expected a valid integer, got 'many'" in text
    assert "workload.agents.lead.model: expected this key, which has no default" in text
    assert "did you mean growth_tokens?" in text
    assert text.endswith("; and 2 more")
    assert text.count("; ") == 4
    assert "\n" not in text


TIERS = [{"input": 1.0, "output": 2.0}, {"input": 2, "output": 4, "above_input_tokens": 5000}]


def whole() -> dict[str, Any]:
    """Every table that a file can have."""
    given = data()
    given["runs"] = 3
    given["workload"]["arrivals"] = {"period_s": 3600.0, "gap_s": 900, "users": 2}
    given["workload"]["faults"] = [
        {"kind": "worker_dies", "chance": 0.1},
        {"kind": "slow_store", "delay_s": {"dist": "uniform", "loc": 0, "scale": 1}, "refuse_chance": 0.01},
    ]
    name = given["workload"]["root"]
    given["workload"]["agents"][name] |= {
        "retry": {"layers": [2, 2], "jitter": "full"},
        "reaction": {"kind": "wind-down", "at": 0.9, "told": {"tokens": 50_000}},
        "think_s": 20,
        "think_chance": 0.5,
        "context_limit_tokens": 9_000,
        "delivery": [[0.5, 0.0], [1.0, 0.9]],
    }
    model = given["workload"]["agents"][name]["model"]
    given["provider"]["models"][model] |= {"limits": {"concurrent": 2}, "late_rate": 0.1, "cache_ttl_s": 60.0}
    given["provider"]["prices"][model] = TIERS
    given["provider"]["billing"] = [{"from_s": 60.0, "prices": {model: {"input": 3.0, "output": 6.0}}}]
    return given


def test_every_table_of_a_file_is_read_and_simulated() -> None:
    experiment = build_experiment(whole())
    lead = experiment.workload.agents[experiment.workload.root]
    assert (lead.retry.attempts, lead.reaction.at, lead.delivery) == (4, 0.9, ((0.5, 0.0), (1.0, 0.9)))
    assert [type(fault).__name__ for fault in experiment.workload.faults] == ["WorkerDies", "SlowStore"]
    nodes = experiment.run(backend="serial").settlements.nodes
    assert set(nodes["user"]) <= {"user-0", "user-1"}
    assert nodes["delivered"].notna().any()
    assert (nodes["billed_nusd"] != nodes["cost_nusd"]).fillna(value=False).any()


@pytest.mark.parametrize("name", list(gallery()))
def test_every_workload_of_the_gallery_can_be_named_in_a_file(name: str) -> None:
    given = {"runs": 1, "workload": {"gallery": name}, "policies": [{"name": "free"}]}
    experiment = build_experiment(given)
    nodes = experiment.run(backend="serial").settlements.nodes
    assert nodes["cost_nusd"].sum() > 0
    assert (nodes.loc[nodes["parent"].isna(), "outcome"] == "completed").any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workload": {"gallery": "coding-agnet"}}, r"^workload\.gallery\..*did you mean coding-agent\?"),
        (
            {"policies": [{"name": "a", "shared_leger": {}}]},
            r"^policies\.0\.shared_leger: .*did you mean shared_ledger\?",
        ),
        ({"policies": [{"nmae": "a"}]}, r"^policies\.0\.nmae: .*did you mean name\?"),
        (
            {"workload": {"gallery": "marathon", "faults": [{"kind": "worker_die"}]}},
            r"faults\.0\.kind: .*did you mean worker_dies",
        ),
        (
            {"workload": {"gallery": "marathon", "faults": [{"kind": "worker_dies", "chanec": 1}]}},
            r"^workload\.faults\.0\.chanec: .*did you mean chance\?",
        ),
        (
            {"provider": {"prices": {"large": {"input": 3, "output": 5, "cache_raed": 1}}}},
            r"^provider\.prices\.large\.cache_raed: .*did you mean cache_read\?",
        ),
        ({"provider": {"prices": {"large": {"input": -3, "output": 5}}}}, r"^provider\.prices\.large\.input: expected"),
        (
            {
                "provider": {
                    "prices": {
                        "large": [{"input": 3, "output": 5}, {"input": 3, "output": "x", "above_input_tokens": 5}]
                    }
                }
            },
            r"^provider\.prices\.large\.1\.output: expected",
        ),
        (
            {"workload": {"gallery": "marathon", "method": "family"}},
            r"^workload\.method: expected no method without fit",
        ),
        (
            {"workload": {"gallery": "marathon", "arrivals": {"period_s": 5.0}}},
            r"^workload\.arrivals\.arrivals: expected one of",
        ),
    ],
)
def test_what_is_misspelt_is_told_with_its_place_and_the_nearest(change: dict[str, Any], message: str) -> None:
    given = {"runs": 1, "workload": {"gallery": "marathon"}, "policies": [{"name": "free"}]} | change
    with pytest.raises(InputError, match=message):
        build_experiment(given)


def test_asks_for_an_agent_that_the_records_do_not_have_are_not_passed_over(tmp_path: Path) -> None:
    table = build_experiment(data()).run(calls=True, backend="serial").settlements
    one = table.where(policy=str(table.nodes["policy"].iloc[0]))
    one.to_parquet(tmp_path / "records.parquet")
    given = {"workload": {"fit": "records.parquet", "asks": {"nobody": {"tokens": 5}}}, "policies": [{"name": "free"}]}
    with pytest.raises(InputError, match=r"^workload\.asks: expected agents that are children in the records"):
        build_experiment(given, folder=tmp_path)
    given["workload"] = {"fit": "records.parquet", "method": "family"}
    assert type(build_experiment(given, folder=tmp_path).workload).__name__ == "Workload"

"""Policies as data: what is written is read back, and what does not exist is said in one line."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.policies import (
    PolicySpec,
    ReservationPoolSpec,
    RuntimeFloorsSpec,
    SharedLedgerSpec,
    TreeLimitsSpec,
    compose,
    reservation_pool,
    runtime_floors,
    shared_ledger,
    tree_limits,
    unlimited,
)

COUNT = st.none() | st.integers(0, 10**9)
USD = st.none() | st.floats(0, 1e6)
UNKNOWN = st.sampled_from(["release", "charge-hold"])
FLOORS = FloorTable(
    (
        FloorRow(key=FloorKey(backend="pi", model="m"), floor=31_211, n=6, sources=("a", "b"), note="n = 5 without it"),
        FloorRow(key=FloorKey(backend="inline", model="m", agent="coder"), floor=None),
    )
)
LEDGER = st.builds(
    SharedLedgerSpec, max_steps=st.integers(0, 99), max_cost_usd=USD, max_seconds=USD, unknown_usage=UNKNOWN
)
POOL = st.builds(
    ReservationPoolSpec,
    calls=COUNT,
    input=COUNT,
    tokens=COUNT,
    fresh=COUNT,
    cost_usd=USD,
    inside=st.sampled_from(["stop", "record"]),
    unknown_usage=UNKNOWN,
)
TREE = st.builds(
    TreeLimitsSpec,
    max_depth=COUNT,
    max_concurrent=COUNT,
    max_calls=COUNT,
    timeout_s=USD,
    concurrency=st.just("parent"),
)
SPECS = st.builds(
    PolicySpec,
    name=st.text(min_size=1, max_size=9),
    modules=st.tuples(LEDGER, POOL, TREE, st.just(RuntimeFloorsSpec(table=FLOORS))),
    max_wait_s=USD,
)


@given(SPECS)
@settings(max_examples=100, deadline=None)
def test_a_policy_survives_the_way_through_json_and_through_toml(spec: PolicySpec) -> None:
    assert PolicySpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert PolicySpec.from_dict(tomllib.loads(tomli_w.dumps(spec.to_dict()))) == spec


@pytest.mark.parametrize(
    "spec",
    [
        unlimited(),
        shared_ledger(20, 1.0, 300),
        reservation_pool(tokens=50_000, floors=FLOORS),
        tree_limits(2, 3, 12, 120),
        runtime_floors(FLOORS),
        compose(shared_ledger(20), tree_limits(2, 3, 12), name="both"),
    ],
    ids=lambda spec: spec.name,
)
def test_every_preset_is_data(spec: PolicySpec) -> None:
    assert PolicySpec.from_dict(spec.to_dict()) == spec


def test_a_started_policy_shares_no_state_with_another() -> None:
    spec = reservation_pool(tokens=5)
    one, two = spec.start(), spec.start()
    one.modules[0].pool.observe((1, 5, 5, 5, 0))  # type: ignore[attr-defined]
    assert two.modules[0].pool.free()[2] == 5  # type: ignore[attr-defined]


def test_a_parameter_can_be_changed_in_a_copy() -> None:
    spec = compose(shared_ledger(20), tree_limits(2, 3, 12))
    changed = spec.with_module("tree_limits", max_calls=24)
    assert changed.module("tree_limits").max_calls == 24
    assert changed.module("shared_ledger") == spec.module("shared_ledger")
    assert spec.module("tree_limits").max_calls == 12
    with pytest.raises(InputError, match=r"^module: expected one of \['shared_ledger', 'tree_limits'\]"):
        spec.with_module("reservation_pool", tokens=1)


def test_a_floor_table_puts_its_gate_before_the_pool() -> None:
    assert [module.kind for module in reservation_pool(tokens=5, floors=FLOORS).modules] == [
        "runtime_floors",
        "reservation_pool",
    ]


BAD = [
    {},
    {"name": ""},
    {"name": 5},
    {"name": "p", "colour": "red"},
    {"name": "p", "max_wait_s": -1},
    {"name": "p", "max_wait_s": float("nan")},
    {"name": "p", "modules": 7},
    {"name": "p", "modules": [7]},
    {"name": "p", "modules": [{"kind": "nothing"}]},
    {"name": "p", "modules": [{"kind": ["shared_ledger"]}]},
    {"name": "p", "modules": [{"max_steps": 5}]},
    {"name": "p", "modules": [{"kind": "shared_ledger"}]},
    {"name": "p", "modules": [{"kind": "shared_ledger", "max_steps": -1}]},
    {"name": "p", "modules": [{"kind": "shared_ledger", "max_steps": 5, "max_cost_usd": float("nan")}]},
    {"name": "p", "modules": [{"kind": "shared_ledger", "max_steps": 5, "unknown_usage": "shrug"}]},
    {"name": "p", "modules": [{"kind": "shared_ledger", "max_steps": 5, "steps": 5}]},
    {"name": "p", "modules": [{"kind": "shared_ledger", "max_steps": 5}, {"kind": "shared_ledger", "max_steps": 6}]},
    {"name": "p", "modules": [{"kind": "reservation_pool", "tokens": -5}]},
    {"name": "p", "modules": [{"kind": "reservation_pool", "cost_usd": float("inf")}]},
    {"name": "p", "modules": [{"kind": "reservation_pool", "inside": "shrug"}]},
    {"name": "p", "modules": [{"kind": "tree_limits", "max_depth": 1.5}]},
    {"name": "p", "modules": [{"kind": "tree_limits", "timeout_s": -1}]},
    {"name": "p", "modules": [{"kind": "tree_limits", "concurrency": "shrug"}]},
    {"name": "p", "modules": [{"kind": "tree_limits", "max_concurrent": 2}], "max_wait_s": 1},
    {"name": "p", "modules": [{"kind": "runtime_floors", "table": 7}]},
    {"name": "p", "modules": [{"kind": "runtime_floors", "table": [{"backend": "pi"}]}]},
]


@pytest.mark.parametrize("data", BAD, ids=str)
def test_a_bad_policy_is_refused_in_one_line(data: Any) -> None:
    with pytest.raises(InputError) as caught:
        PolicySpec.from_dict(data)
    assert "\n" not in str(caught.value)


def test_whole_floats_become_counts_so_that_files_stay_whole() -> None:
    spec = compose(shared_ledger(5.0), reservation_pool(tokens=7.0), tree_limits(2.0))  # type: ignore[arg-type]
    assert json.dumps(spec.to_dict()).count(".0") == 0

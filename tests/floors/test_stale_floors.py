"""Floors whose evidence is old, or was measured under another starting context; and rows that are retired, not lost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from harness_lab.analyze import floors
from harness_lab.budget import advice
from harness_lab.clock import Time
from harness_lab.errors import InputError
from harness_lab.floors import FloorKey, FloorRow, FloorTable, preflight
from harness_lab.outcome import Code, Refusal
from harness_lab.policies import (
    COMPLETED,
    AtLimit,
    Grant,
    PolicySpec,
    RuntimeFloorsSpec,
    SpawnAsk,
    StepAsk,
    Use,
    Wait,
    compose,
    locked,
    period_budget,
    reservation_pool,
    runtime_floors,
    shared_ledger,
    tree_limits,
)
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.simulate import AgentProfile, Experiment, Spawn, Workload, explain
from harness_lab.stats import Distribution
from harness_lab.usage import amounts

DAY = 86_400 * 10**9
OLD = FloorKey(backend="pi", model="m", context="c1")
NEW = FloorKey(backend="pi", model="m", context="c2")
WAS, IS = {"client": "1.0", "tools": 9}, {"client": "1.1", "tools": 9}
ROW = FloorRow(key=OLD, floor=5000, n=3, measured_ns=DAY, stale_after_ns=3 * DAY, context_fields=WAS)
TABLE = FloorTable((ROW,))


@pytest.mark.parametrize(
    ("stale", "admitted", "floor"), [("warn", True, 5000), ("enforce", False, 5000), ("ignore", True, None)]
)
def test_under_another_context_a_floor_warns_refuses_or_counts_as_none(stale: Any, admitted: bool, floor: Any) -> None:
    answer = preflight(TABLE, NEW, 4000, stale=stale, context_fields=IS)
    assert (answer.admitted, answer.floor) == (admitted, floor)
    named = "the starting context changed in client '1.0' -> '1.1'"
    assert answer.stale == ("" if stale == "ignore" else named)
    assert (named in str(answer)) is (stale != "ignore")
    assert answer.to_dict()["stale"] is (None if stale == "ignore" else True)


def test_where_the_fields_are_not_known_the_digests_are_named() -> None:
    assert preflight(TABLE, NEW, 4000).stale == "the starting context is c2, the floor was measured under c1"


@pytest.mark.parametrize(("days", "stale"), [(3, ""), (4, "measured 3.0 days ago")])
def test_evidence_past_its_date_is_stale_and_before_it_is_not(days: int, stale: str) -> None:
    answer = preflight(TABLE, OLD, 4000, now_ns=days * DAY)
    assert (answer.stale, answer.admitted) == (stale, bool(stale))
    assert preflight(TABLE, OLD, 4000, now_ns=days * DAY, stale="enforce").admitted is False
    assert preflight(TABLE, OLD, 4000).admitted is False


def test_an_ask_that_names_no_context_is_not_compared_and_a_bad_word_is_refused() -> None:
    assert preflight(TABLE, FloorKey(backend="pi", model="m"), 1).floor is None
    with pytest.raises(InputError, match="stale: expected warn, enforce or ignore"):
        preflight(TABLE, OLD, 1, stale="maybe")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="stale"):
        RuntimeFloorsSpec(stale="maybe")  # type: ignore[arg-type]


@pytest.mark.parametrize(("stale", "refused"), [("warn", False), ("enforce", True), ("ignore", False)])
def test_a_policy_refuses_by_a_stale_floor_only_when_told_to(stale: Any, refused: bool) -> None:
    spec = PolicySpec(name="x", modules=(RuntimeFloorsSpec(table=TABLE, stale=stale),))
    assert PolicySpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    policy = spec.start()
    root: Any = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    answer: Any = policy.spawn(SpawnAsk(root.ticket, ((0, 0, 0),), amounts(input=4000), NEW), Time(0))
    assert isinstance(answer, Refusal if refused else Grant)
    assert not isinstance(answer, Refusal) or answer.code is Code.BELOW_RUNTIME_FLOOR
    if stale == "warn":
        (warning,) = list(getattr(answer, "warnings", ()))
        assert "only stale evidence" in warning
        assert "floor was measured under c1 (the old floor is 5,000)" in warning
    else:
        assert getattr(answer, "warnings", ()) == ()


@pytest.mark.parametrize(
    ("key", "tokens"), [(OLD, 6000), (None, 6000), (FloorKey(backend="x", model="m", context="c2"), 1)]
)
def test_fresh_evidence_and_none_at_all_grant_without_a_warning(key: Any, tokens: int) -> None:
    policy = runtime_floors(TABLE).start()
    root: Any = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    answer = policy.spawn(SpawnAsk(root.ticket, ((0, 0, 0),), amounts(input=tokens), key), Time(0))
    assert isinstance(answer, Grant)
    assert answer.warnings == ()


@pytest.mark.parametrize("limit", [AtLimit(warn_at=0.0), None])
def test_who_waited_for_a_slot_is_warned_when_it_starts_and_a_steps_own_warnings_stay_apart(limit: Any) -> None:
    policy: Any = compose(
        tree_limits(max_depth=1, max_concurrent=1, max_wait_s=9),
        runtime_floors(TABLE),
        shared_ledger(9),
        at_limit=limit,
    ).start()
    root = policy.spawn(SpawnAsk(None, (), amounts()), Time(0)).ticket
    first = policy.spawn(SpawnAsk(root, ((0, 0, 0),), amounts(input=6000), OLD, awaited=False), Time(0)).ticket
    waits = policy.spawn(SpawnAsk(root, ((1, 0, 0),), amounts(input=4000), NEW, awaited=False), Time(0))
    assert isinstance(waits, Wait)
    policy.close(first, Use(amounts()), COMPLETED, Time(1))
    (news,) = list(policy.outbox())
    assert ["only stale evidence" in line for line in news.grant.warnings] == [True]
    step = policy.admit(StepAsk(waits.ticket, 0, 0, amounts()), Time(2))
    assert [line.split(":")[0] for line in step.warnings] == ([] if limit is None else ["calls"])


def test_a_policy_under_a_lock_and_on_shared_state_hands_the_warning_on() -> None:
    shared = compose(runtime_floors(TABLE), period_budget(calls=9, by="user")).open()
    for policy in (locked(runtime_floors(TABLE).start()), shared.start("r", {"user": "ann"}, wall_ns=10**18)):
        root: Any = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
        answer: Any = policy.spawn(SpawnAsk(root.ticket, ((0, 0, 0),), amounts(input=4000), NEW), Time(0))
        assert len(answer.warnings) == 1


def test_a_run_that_is_explained_shows_the_warning_beside_its_start() -> None:
    one = Distribution.constant(1)
    child = AgentProfile(model="m", calls=one, startup_tokens=one, floor_key=NEW)
    lead = replace(child, floor_key=None, spawns=(Spawn(agent="child", budget=amounts(input=4000)),))
    world = Workload(root="lead", agents={"lead": lead, "child": child})
    provider = MockProvider(models={"m": ModelProfile(output_tokens=one, latency_s=one)})
    experiment = Experiment(workload=world, provider=provider, policies=(runtime_floors(TABLE, name="floors"),), runs=1)
    events = explain(experiment, 0, policy="floors").to_frame()
    assert "only stale evidence" in " ".join(events["reason"].astype(str))


def test_a_new_row_retires_the_one_before_and_keeps_it() -> None:
    again = TABLE.with_row(FloorRow(key=OLD, floor=7000, n=20))
    found = again.lookup(OLD)
    assert found is not None
    assert (found.floor, len(again), again.rows[0].retired) == (7000, 2, "measured again")
    assert FloorTable.from_dicts(json.loads(json.dumps(again.to_dicts()))) == again
    gone = again.retire(OLD, why="the router was replaced")
    assert (gone.lookup(OLD), gone.units(OLD), gone.met_by(10**6, unit="input-total")) == (None, (), ())
    assert [row.retired for row in gone] == ["measured again", "the router was replaced"]
    for key, why in ((NEW, "x"), (OLD, "")):
        with pytest.raises(InputError, match="retirement"):
            again.retire(key, why=why)


def test_derived_floors_carry_the_fields_of_their_context() -> None:
    nodes = pd.DataFrame({"run": ["a"], "outcome": "completed", "input_total": 5000, "backend": "pi", "model": "m"})
    table = floors(nodes.assign(context="c1", context_fields=json.dumps(WAS))).to_table()
    assert dict(table.rows[0].context_fields) == WAS
    assert "client '1.0' -> '1.1'" in preflight(table, NEW, 4000, context_fields=IS).stale


def test_below_the_floor_and_above_the_pool_neither_less_nor_more_is_advised() -> None:
    table = FloorTable((FloorRow(key=OLD, floor=5000, n=6),))
    policy = compose(reservation_pool(input=3000, calls=1), runtime_floors(table)).start()
    root: Any = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    refused: Any = policy.spawn(SpawnAsk(root.ticket, ((0, 0, 0),), amounts(input=4000, calls=2), OLD), Time(0))
    assert [(short.channel, short.helps) for short in refused.shortfalls][1:] == [
        ("input", "smaller"),
        ("input", "larger"),
    ]
    assert refused.no_size_fits == ("input",)
    assert str(refused).endswith("no ask of input fits, neither less nor more")
    told = advice(refused)
    assert "no ask of input fits: this path has never worked with less than 5000, and 3000 are left" in told
    assert ("ask for more" in told, "well under 3000" in told, "at most 1 fits" in told) == (False, False, True)


@pytest.mark.parametrize(("pool", "word"), [(9000, "ask for more"), (3000, "well under 3000")])
def test_one_of_the_two_alone_is_advised_as_before(pool: int, word: str) -> None:
    floors = FloorTable((FloorRow(key=OLD, floor=5000 if pool > 4000 else 100, n=6),))
    policy = compose(reservation_pool(input=pool), runtime_floors(floors)).start()
    root: Any = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    refused: Any = policy.spawn(SpawnAsk(root.ticket, ((0, 0, 0),), amounts(input=4000), OLD), Time(0))
    assert (refused.no_size_fits, word in advice(refused)) == ((), True)

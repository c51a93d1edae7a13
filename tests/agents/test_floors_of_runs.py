"""Floors in a live run: a subagent's ask is held against its path's floor, and stale evidence arrives as a warning."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest

from harness_lab.agents import AgentRuntime, Events, ModeRegistry, Sessions, SettlementRecorder, Subagent, ToolRegistry
from harness_lab.agents.scripted import ScriptedClient, calls, says
from harness_lab.errors import InputError, UnitMismatch
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.outcome import Outcome
from harness_lab.policies import RuntimeFloorsSpec, compose, reservation_pool
from harness_lab.policies.spec import PolicySpec

KEY = FloorKey(backend="pi", model="small", agent="dig", context="v1")


def floors(*, stale: Any = "warn") -> PolicySpec:
    table = FloorTable((FloorRow(key=KEY, floor=5_000, n=6),))
    return PolicySpec(name="floors", modules=(RuntimeFloorsSpec(table=table, stale=stale),))


class Played:
    """One run of a lead that calls its subagent once."""

    def __init__(self, policy: Any, *, asks: int = 4_000, context: str = "v2", unit: str = "input") -> None:
        dig = {"mode": "child", "max_steps": 2, "ask": {unit: asks}}
        lead = {"model": "big", "max_steps": 8, "subagents": {"dig": dig}}
        modes = ModeRegistry(
            {"default": "lead", "modes": {"lead": lead, "child": {"model": "small", "context": context}}}
        )
        client = ScriptedClient(by_model={"big": [calls("dig", task="look"), says("done")], "small": [says("found")]})
        self.events: list[Any] = []
        self.rows = io.StringIO()
        runtime = AgentRuntime(
            client,
            modes,
            ToolRegistry(),
            events=Events().listen(self.events.append),
            recorder=SettlementRecorder(self.rows),
            policy=policy,
        )
        session = runtime.sessions.session("top").using_model("big", provider="pi")
        self.response = asyncio.run(runtime.send(session, "go"))
        self.session = runtime.sessions.session("top::sub::dig")
        self.child = self.session.run
        results = next(m for m in session.messages if m["type"] == "tool_result")["results"]
        self.handed = json.loads(results[0]["result"])


def test_a_subagent_whose_ask_is_below_its_floor_is_denied_with_the_floor_named() -> None:
    played = Played(floors(), context="v1")
    assert (played.handed["outcome"], played.child) == ("denied", None)
    assert "the floor is 5,000 (n = 6), 1,000 are missing" in played.handed["reason"]
    assert Played(floors(), context="v1", asks=5_000).handed["outcome"] == "completed"


def test_an_ask_in_another_unit_than_its_floor_is_found_before_the_run_has_cost_anything() -> None:
    client = ScriptedClient([says("never")])
    modes = {
        "lead": {"subagents": {"mid": {}}},
        "mid": {"subagents": {"dig": {"ask": {"fresh": 9_000}}}},
        "dig": {"context": "v1"},
    }
    runtime = AgentRuntime(client, ModeRegistry({"default": "lead", "modes": modes}), policy=floors())
    session = runtime.sessions.session("top").using_model("small", provider="pi")
    with pytest.raises(UnitMismatch, match=r"^ask of subagent \[dig\] in mode \[mid\]: expected the unit in which"):
        asyncio.run(runtime.send(session, "go"))
    assert client.requests == []
    assert session.messages == []


def test_a_denial_by_floor_and_pool_names_both() -> None:
    played = Played(compose(floors(), reservation_pool(input=3_999)), context="v1")
    assert played.handed["outcome"] == "denied"
    assert "below-runtime-floor" in played.handed["reason"]
    assert "budget-exhausted" in played.handed["reason"]


def test_stale_evidence_warns_in_the_run_record_and_in_the_events_and_not_to_the_model() -> None:
    played = Played(floors())
    assert played.handed["outcome"] == "completed"
    ended = [event.warnings for event in played.events if event.name == "run.finished"]
    (warning,), of_lead = ended
    assert "the starting context is v2, the floor was measured under v1" in warning
    assert "the old floor is 5,000" in warning
    assert of_lead == ()
    assert played.child is not None
    assert played.child.warnings == (warning,)
    assert "stale" not in json.dumps(played.handed)


@pytest.mark.parametrize(("stale", "outcome"), [("enforce", "denied"), ("ignore", "completed")])
def test_whoever_enforces_or_ignores_stale_evidence_is_not_warned(stale: Any, outcome: str) -> None:
    played = Played(floors(stale=stale))
    assert played.handed["outcome"] == outcome
    assert all(getattr(event, "warnings", ()) == () for event in played.events)


def test_a_subagents_tokens_are_set_aside_by_a_pool() -> None:
    assert Played(reservation_pool(input=4_000)).handed["outcome"] == "completed"
    assert Played(reservation_pool(input=3_999)).handed["outcome"] in ("denied", "exhausted")
    both = Played(compose(reservation_pool(input=3_999), floors()), context="v1")
    assert both.response.outcome is Outcome.COMPLETED
    assert both.handed["outcome"] in ("denied", "exhausted")


def test_the_context_of_a_mode_stands_in_the_settlement_rows() -> None:
    rows = [json.loads(line) for line in Played(None).rows.getvalue().splitlines()]
    assert {row["agent"]: row["context"] for row in rows} == {"lead": None, "dig": "v2"}


def test_a_stored_session_keeps_the_warnings_of_its_last_run() -> None:
    played = Played(floors())
    assert played.child is not None
    stored = json.loads(json.dumps(played.session.to_dict()))
    assert stored["run"]["warnings"] == list(played.child.warnings)
    assert Sessions().restore(stored).run == played.child


@pytest.mark.parametrize("ask", [{"input": -1}, {"cost": 1}, [1], {"input": True}, "x"])
def test_an_ask_that_is_none_is_a_problem_of_its_mode(ask: Any) -> None:
    with pytest.raises(InputError, match=r"^ask(\.input)? of subagent \[dig\]: expected"):
        Subagent.from_config("dig", {"ask": ask})
    modes = {"lead": {"subagents": {"dig": {"mode": "lead", "ask": ask}}, "context": 7}}
    report = ModeRegistry({"default": "lead", "modes": modes}).check()
    assert [problem.key.removesuffix(".input") for problem in report.problems] == ["context", "subagents.dig.ask"]

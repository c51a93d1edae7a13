"""Agents under a hard cost cap: bounded before each call, charged at trusted prices, stopped before the cap."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_lab.agents import AgentRuntime, ModelError, ModelResponse, ModeRegistry, Tool, ToolCall, ToolRegistry
from harness_lab.agents.capped import CappedClient
from harness_lab.agents.scripted import ScriptedClient
from harness_lab.budget import RunBudget, RunContext
from harness_lab.outcome import Outcome
from harness_lab.policies import CallRefused, hard_cap
from harness_lab.pricing import CapPrices
from harness_lab.usage import TokenCounts, nusd

ENTRY = {"inputPerMTok": 3.0, "outputPerMTok": 15.0, "toolOverheadTokens": 346}
MODES = {"modes": {"chat": {"model": "m", "max_steps": 9, "tools": ["echo"], "system_prompt": "You are brief."}}}
AGAIN = ModelResponse(
    tool_calls=[ToolCall(id="c", name="echo")], usage=TokenCounts(input_fresh=100, output=1000), cost_usd=99.0
)


class Seen:
    """An observer."""

    def __init__(self, refuse_after: int = 99) -> None:
        self.reserved: list[Any] = []
        self.settled_with: list[Any] = []
        self.refuse_after = refuse_after

    def reserving(self, reservation: Any, context: Any) -> None:
        if len(self.reserved) >= self.refuse_after:
            raise CallRefused("frozen")
        self.reserved.append((reservation, context))

    def settled(self, settlement: Any, context: Any) -> None:
        self.settled_with.append((settlement, context))


class Records:
    """Where records of nodes go."""

    def __init__(self) -> None:
        self.codes: list[str] = []

    def node(self, conversation: Any, record: Any) -> None:
        self.codes += [str(short.code) for short in record.refusal.shortfalls] if record.refusal else []


def run(script: list[Any], cap: float, seen: Seen | None = None, **options: Any) -> tuple[Any, Any]:
    records = Records()
    client = ScriptedClient(script, repeat_last=True)
    entry = options.pop("entry", ENTRY)
    capped = CappedClient(client, CapPrices({"m": entry}), output_ceiling=options.pop("ceiling", 1000), **options)
    service = AgentRuntime(
        capped,
        ModeRegistry(MODES),
        ToolRegistry().register(Tool("echo", lambda arguments: "again")),
        policy=hard_cap(cap, observer=seen),
        bound=capped.bound,
        recorder=records,  # type: ignore[arg-type]
    )
    response = asyncio.run(service.send(service.sessions.session("s"), "go"))
    client.codes = records.codes
    return response, client


def test_a_run_stops_before_the_call_whose_worst_case_would_cross_the_cap() -> None:
    seen = Seen()
    response, client = run([AGAIN], 0.06, seen)
    assert response.outcome is Outcome.EXHAUSTED
    assert len(client.requests) == 3
    assert client.codes == ["cost-cap-would-exceed"]
    assert response.tree.cost_usd == pytest.approx(3 * 0.0153)
    assert all(r.worst_case_nusd > nusd(0.0153) for r, _ in seen.reserved)


def test_each_call_has_one_id_one_reservation_and_one_settlement() -> None:
    seen = Seen()
    run([AGAIN], 0.06, seen)
    ids = [reservation.call_id for reservation, _ in seen.reserved]
    assert ids == [settlement.call_id for settlement, _ in seen.settled_with]
    assert len(set(ids)) == 3
    assert [context.run in call for call, (_, context) in zip(ids, seen.reserved, strict=True)] == [True] * 3
    assert seen.reserved[0][1].run.startswith("run_")


def test_ids_of_two_runs_differ() -> None:
    seen = Seen()
    run([AGAIN], 0.03, seen)
    run([AGAIN], 0.03, seen)
    ids = [reservation.call_id for reservation, _ in seen.reserved]
    assert len(set(ids)) == len(ids) == 2


def test_the_ceiling_is_sent_and_a_modes_own_can_only_lower_it() -> None:
    _, client = run([ModelResponse(text="hi", usage=TokenCounts(input_fresh=1, output=1))], 1.0)
    assert client.requests[0].provider_options["max_output_tokens"] == 1000


def test_the_clients_own_figure_counts_only_where_the_entry_says_that_it_is_complete() -> None:
    seen = Seen()
    run([ModelResponse(text="hi", cost_usd=0.001)], 1.0, seen)
    run([ModelResponse(text="hi", cost_usd=0.001)], 1.0, seen, entry={**ENTRY, "billing": "reported-complete"})
    first, second = (settlement for settlement, _ in seen.settled_with)
    assert (first.usage_known, first.charged_nusd) == (False, seen.reserved[0][0].worst_case_nusd)
    assert (second.usage_known, second.charged_nusd) == (True, nusd(0.001))


@pytest.mark.parametrize(
    ("error", "known", "charged"),
    [
        (ModelError("down", sent=False), True, 0),
        (ModelError("down", usage=TokenCounts(input_fresh=1000, output=0)), True, nusd(0.003)),
        (ModelError("down"), False, None),
        (RuntimeError("?"), False, None),
    ],
)
def test_a_failed_call_is_charged_what_is_known_else_its_hold(error: Any, known: bool, charged: int | None) -> None:
    seen = Seen()
    with pytest.raises(type(error)):
        run([error], 1.0, seen)
    ((settlement, _),) = seen.settled_with
    assert (settlement.outcome, settlement.usage_known) == ("failed", known)
    assert settlement.charged_nusd == (seen.reserved[0][0].worst_case_nusd if charged is None else charged)


def test_an_observers_refusal_ends_the_run_with_its_code() -> None:
    response, client = run([AGAIN], 1.0, Seen(refuse_after=1))
    assert len(client.requests) == 1
    assert client.codes == ["call-refused"]
    assert response.stopped_because == "frozen"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"ceiling": None}, "output-ceiling-missing"),
        ({"summarising_compaction": True}, "compaction-conflict"),
        ({"entry": {"inputPerMTok": 3.0, "outputPerMTok": 15.0}}, "tool-overhead-missing"),
        ({"entry": {"inputPerMTok": 3.0}}, "price-invalid"),
    ],
)
def test_a_run_whose_calls_cannot_be_bounded_makes_none_and_says_why(options: dict[str, Any], code: str) -> None:
    response, client = run([AGAIN], 1.0, **options)
    assert client.requests == []
    assert client.codes == [f"cost-cap-{code}"]
    assert response.outcome is Outcome.EXHAUSTED


def test_a_dearer_model_that_served_the_call_is_charged_as_such() -> None:
    client = ScriptedClient([ModelResponse(served_model="big", usage=TokenCounts(input_fresh=1000, output=0))])
    capped = CappedClient(client, CapPrices({"m": ENTRY, "big": {**ENTRY, "inputPerMTok": 30.0}}), output_ceiling=1)
    service = AgentRuntime(capped, ModeRegistry({"modes": {"chat": {"model": "m"}}}), bound=capped.bound)
    response = asyncio.run(service.send(service.sessions.session("s"), "go"))
    assert response.tree.cost_usd == 0.03


@pytest.mark.parametrize("cap", [None, 0.05])
def test_a_context_that_goes_on_for_several_turns_has_one_cap(cap: float | None) -> None:
    client = ScriptedClient(
        [ModelResponse(text="hi", usage=TokenCounts(input_fresh=100, output=1000))], repeat_last=True
    )
    capped = CappedClient(client, CapPrices({"m": ENTRY}), output_ceiling=1000)
    modes = ModeRegistry({"modes": {"chat": {"model": "m", "max_steps": 9}}})
    service = AgentRuntime(capped, modes, policy=hard_cap(cap), bound=capped.bound)
    session, context = service.sessions.session("s"), RunContext.root("r", RunBudget(20, 0.05))
    ends = [asyncio.run(service.send(session, "go", context=context)).outcome for _ in range(4)]
    assert ends == [Outcome.COMPLETED] * 3 + [Outcome.EXHAUSTED]
    assert len(client.requests) == 3
    assert context.ledger.cost_nusd == 3 * nusd(0.0153)

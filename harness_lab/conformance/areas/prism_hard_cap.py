"""Cases of prism-harness's hard cost cap: statements of its documentation, each tried out on ours."""

from __future__ import annotations

import ast
import asyncio
import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

from harness_lab.agents import (
    AgentRuntime,
    CappedClient,
    ModelResponse,
    ModeRegistry,
    SubagentRunner,
    Tool,
    ToolCall,
    ToolRegistry,
)
from harness_lab.agents.scripted import ScriptedClient
from harness_lab.budget import RunBudget, RunContext
from harness_lab.clock import ManualClock, Time
from harness_lab.conformance.shapes import UnknownShape, operation
from harness_lab.outcome import Code, Refusal
from harness_lab.policies import (
    CallCostObserver,
    CallRefused,
    CallReservation,
    CallSettlement,
    Grant,
    SpawnAsk,
    StepAsk,
    Use,
    hard_cap,
)
from harness_lab.policies.hard_cap import CallHolds
from harness_lab.pricing import CallTerms, CapPrices, measure
from harness_lab.usage import TokenCounts, amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.conformance.shapes import Answer, Case
    from harness_lab.pricing import CallBound

ENTRY: Final = {"inputPerMTok": 3.0, "outputPerMTok": 15.0, "toolOverheadTokens": 346, "imageTokenBound": 1600}
MODES: Final = {
    "modes": {
        "chat": {"model": "m", "max_steps": 9, "tools": ["echo"], "subagents": {"helper": {"max_cost_usd": 0.03}}},
        "helper": {"model": "m", "max_steps": 9, "tools": ["echo"]},
    }
}
CAP_USD: Final = 0.03
"""Lets one call of the script through, and not a second."""
_NOW: Final = Time(0)
_AGAIN: Final = ModelResponse(
    tool_calls=[ToolCall(id="c", name="echo")], usage=TokenCounts(input_fresh=50, output=1000)
)


class Seen:
    """An observer of call costs that keeps what it is told."""

    def __init__(self, refuse: str | None = None) -> None:
        self.reserved: list[CallReservation] = []
        self.settlements: list[CallSettlement] = []
        self._refuse = refuse

    def reserving(self, reservation: CallReservation, context: Any) -> None:
        """Keep it, or refuse."""
        if self._refuse is not None:
            raise CallRefused(self._refuse)
        self.reserved.append(reservation)

    def settled(self, settlement: CallSettlement, context: Any) -> None:
        """Keep it."""
        self.settlements.append(settlement)


def _service(cap: float | None, seen: Seen) -> tuple[AgentRuntime, ScriptedClient]:
    client = ScriptedClient([_AGAIN], repeat_last=True)
    capped = CappedClient(client, CapPrices({"m": ENTRY}), output_ceiling=1000)
    tools = ToolRegistry().register(Tool("echo", lambda _arguments: "echo"))
    policy = hard_cap(cap, observer=seen)
    return AgentRuntime(capped, ModeRegistry(MODES), tools, policy=policy, bound=capped.bound), client


def _admitted(bound: CallBound, seen: Seen | None = None) -> tuple[Grant | Refusal, CallHolds, Any]:
    """Ask for one call under a cap that is far away."""
    policy = hard_cap(100.0, observer=seen).start("run")
    root = policy.spawn(SpawnAsk(None, (), amounts()), _NOW)
    module = policy.modules[0]
    if not isinstance(root, Grant) or not isinstance(module, CallHolds):
        raise UnknownShape("the cap did not begin")
    answer = policy.admit(StepAsk(root.ticket, 0, 0, bound), _NOW)
    if not isinstance(answer, Grant | Refusal):
        raise UnknownShape("the cap let the call wait")
    return answer, module, policy


def before_each_call(_case: Case) -> Answer:
    """Run an agent whose second call would cross the cap."""
    seen = Seen()
    service, client = _service(CAP_USD, seen)
    session = service.sessions.session("s")
    response = asyncio.run(service.send(session, "go"))
    kept = {"ledger": response.tree.steps == 1, "thread": any(m["type"] == "assistant" for m in session.messages)}
    (reservation,), (settlement,) = seen.reserved, seen.settlements
    worst = CapPrices({"m": ENTRY}).terms("m")
    least = 0 if worst is None else worst.worst_nusd(0, 1000)
    return {
        "reserves_worst_case": (reservation.worst_case_nusd or 0) > max(least, settlement.charged_nusd - 1),
        "refuses_call_that_would_cross_cap": len(client.requests) == 1 and response.stopped_because is not None,
        "calls_already_made_stay_in": [place for place, there in kept.items() if there],
        "run_failure_reason": response.finish_reason,
    }


def price_defaults(case: Case) -> Answer:
    """Read an entry without prices of the cache."""
    _, read, write, _, _ = CallTerms.from_config(case["given"]["price_entry"]).tiers[0].rates()
    return {"cacheWritePerMTok": write / 1e6, "cacheReadPerMTok": read / 1e6}


def required_fields(case: Case) -> Answer:
    """Leave each figure out in turn, and see whether the call can still be bounded."""
    parts = [{"type": "image"}] if case["given"].get("turn_has_images") else []
    tools = [{"name": "t"}] if case["given"].get("tools_offered") else []
    size = measure("", [{"content": parts}], tools)
    required = []
    for key in ("toolOverheadTokens", "imageTokenBound"):
        entry = {name: value for name, value in ENTRY.items() if name != key}
        if CapPrices({"m": entry}).bound("m", size, output_ceiling=1).shortfalls:
            required.append(key)
    return {"required": required}


def admit(case: Case) -> Answer:
    """Ask for calls that cannot be bounded."""
    given, prices = case["given"], CapPrices({"m": ENTRY})
    compaction = "summarising_compaction_model" in given
    sizes = [measure("", [{"content": [{"type": part}]}]) for part in given.get("turn_media", ())] or [measure("", [])]
    bounds = [prices.bound("m", size, output_ceiling=1, summarising_compaction=compaction) for size in sizes]
    return {"refused": all(isinstance(_admitted(bound)[0], Refusal) for bound in bounds)}


def reserving(case: Case) -> Answer:
    """Let an observer refuse."""
    raised = ast.parse(case["given"]["observer_throws"], mode="eval").body
    if not isinstance(raised, ast.Call) or not isinstance(raised.args[0], ast.Constant):
        raise UnknownShape("the case names no code of the observer")
    code = str(raised.args[0].value)
    bound = CapPrices({"m": ENTRY}).bound("m", measure("", []), output_ceiling=1)
    answer, _, _ = _admitted(bound, Seen(refuse=code))
    if not isinstance(answer, Refusal):
        return {"call_refused": False}
    chosen = answer.code is Code.CALL_REFUSED and answer.shortfalls[0].detail == code
    return {"call_refused": True, "code_chosen_by": "observer" if chosen else "the cap"}


def observer_contract(_case: Case) -> Answer:
    """Read the contract off the protocol, and try one call that is settled and one whose worker dies."""
    bound = CapPrices({"m": ENTRY}).bound("m", measure("", []), output_ceiling=1)
    lives, dies = Seen(), Seen()
    answer, _, policy = _admitted(bound, lives)
    if isinstance(answer, Grant):
        policy.settle(answer.ticket, Use((1, 1, 1, 1, 1)), _NOW)
    _admitted(bound, dies)
    return {
        "reserving_args": _arguments(CallCostObserver.reserving),
        "reservation_fields": _public(CallReservation),
        "settled_args": _arguments(CallCostObserver.settled),
        "settlement_fields": _public(CallSettlement),
        "settlement_outcomes": list(get_args(get_type_hints(CallSettlement)["outcome"])),
        "settled_calls_per_reservation": len(lives.settlements) / len(lives.reserved),
        "settled_guaranteed_if_worker_dies": bool(dies.settlements),
    }


def billing_mode(case: Case) -> Answer:
    """Read an entry of a provider."""
    terms = CallTerms.from_config(ENTRY, provider=case["given"]["provider"])
    return {"billing": terms.billing}


def cap_applies(case: Case) -> Answer:
    """Declare the cap in each place in turn, and see whether the second call is refused before it is made."""
    metered = [_SOURCES[source]() for source in case["given"]["cap_sources"]]
    return {"any_of_these_meters_the_run": all(metered)}


def _by_agent() -> bool:
    service, client = _service(CAP_USD, Seen())
    asyncio.run(service.send(service.sessions.session("s"), "go"))
    return len(client.requests) == 1


def _by_context() -> bool:
    service, client = _service(None, Seen())
    context = RunContext.root("run", RunBudget(9, CAP_USD), clock=ManualClock())
    asyncio.run(service.send(service.sessions.session("s"), "go", context=context))
    return len(client.requests) == 1


def _by_declaration() -> bool:
    service, client = _service(None, Seen())
    context = RunContext.root("run", RunBudget(9), clock=ManualClock())
    helper = service.modes.resolve("chat").subagents["helper"]
    session = service.sessions.session("s")
    asyncio.run(SubagentRunner(service.sessions, service).run(helper, session, context, "run", "go"))
    return len(client.requests) == 1


_SOURCES: Final[Mapping[str, Callable[[], bool]]] = {
    "agent.max_cost_usd": _by_agent,
    "subagent declaration max_cost_usd": _by_declaration,
    "RunContext budget": _by_context,
}


def _arguments(method: Callable[..., None]) -> list[str]:
    return [str(p.annotation) for name, p in inspect.signature(method).parameters.items() if name != "self"]


def _public(kind: type[Any]) -> list[str]:
    """Return the fields of a value in camel case; money that is kept in nano-dollars by its view in dollars."""
    names = [field.name for field in fields(kind)]
    seen = [view if hasattr(kind, view := name.replace("_nusd", "_usd")) else name for name in names]
    return [head + "".join(word.title() for word in rest) for head, *rest in (name.split("_") for name in seen)]


_OPERATIONS: Final[Mapping[str, Callable[[Case], Answer]]] = {
    "before_each_model_call": before_each_call,
    "price_defaults": price_defaults,
    "required_price_fields": required_fields,
    "admit": admit,
    "reserving": reserving,
    "observer_contract": observer_contract,
    "billing_mode": billing_mode,
    "cap_applies": cap_applies,
}


def hard_cap_doc(case: Case, _preset: str) -> Answer:
    """Answer a case of the hard cost cap."""
    name = operation(case)
    if name not in _OPERATIONS:
        raise UnknownShape(f"the hard cost cap has no operation {name}")
    return _OPERATIONS[name](case)

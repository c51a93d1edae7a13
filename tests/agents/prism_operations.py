"""The operations that the behaviour cases of prism-harness name, carried out on our public API."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from harness_lab.agents import (
    RULES,
    AgentError,
    AgentRuntime,
    Events,
    ModelResponse,
    ModeRegistry,
    Participant,
    Sessions,
    Subagent,
    SubagentRunner,
    Tool,
    ToolAuthorizer,
    ToolCall,
    ToolRegistry,
)
from harness_lab.agents.envelope import NOTHING, SubagentResult, retryable, succeeded
from harness_lab.agents.readout import BudgetLeft
from harness_lab.agents.scripted import ScriptedClient
from harness_lab.agents.tools import narrowed
from harness_lab.budget import RunBudget, RunContext, RunLedger
from harness_lab.budget.lease import LeasedTask, LeaseGrant, extend_lease
from harness_lab.clock import ManualClock
from harness_lab.errors import InputError
from harness_lab.outcome import Outcome

PLAIN = {
    "default": "parent",
    "modes": {
        "parent": {"max_steps": 8, "subagents": {"researcher": {"mode": "child", "max_steps": 2}}},
        "child": {"max_steps": 2},
    },
}


def _budget(values: dict[str, Any]) -> RunBudget:
    return RunBudget(values["max_steps"], values["max_cost_usd"], values["max_seconds"])


def _ledger(state: dict[str, Any]) -> RunLedger:
    clock = ManualClock()
    ledger = RunLedger.start("root", clock=clock)
    clock.advance(state["elapsed_seconds"])
    ledger.record_steps(state["steps"])
    ledger.record_cost(state["cost_usd"])
    for _ in range(state["unmetered_runs"]):
        ledger.record_cost(None)
    if state["cancelled"]:
        ledger.cancel(state["cancel_reason"])
    return ledger


def nested(case: dict[str, Any], preset: str) -> dict[str, Any]:
    given, when, rules = case["given"], case["when"], RULES[preset]
    ledger, parent = _ledger(given["ledger"]), _budget(given["parent"])
    if "children" in given:
        one, two = (rules.nested_budget(_budget(child), parent, ledger) for child in given["children"])
        ledger.record_steps(when["record_steps"][0])
        answer = {"sibling_1_max_steps": one.max_steps, "sibling_2_max_steps": two.max_steps}
        return answer | {"sibling_1_exhaustion_after": ledger.exhaustion(one)}
    budget = rules.nested_budget(_budget(given["child"]), parent, ledger)
    found = {"max_steps": budget.max_steps, "max_cost_usd": budget.max_cost_usd, "max_seconds": budget.max_seconds}
    before = ledger.exhaustion(budget)
    found |= {"headroom_steps": budget.max_steps - ledger.steps, "exhaustion": before, "exhaustion_before": before}
    for steps in when.get("record_steps", ()):
        ledger.record_steps(steps)
    for cost in when.get("record_cost", ()):
        ledger.record_cost(cost)
    return found | {"exhaustion_after": ledger.exhaustion(budget)}


def charged(case: dict[str, Any], preset: str) -> dict[str, Any]:
    given, when = case["given"], case["when"]
    ledger = _ledger(given["ledger"])
    for value in when.get("values", ()):
        ledger.record_cost(value)
    for reason in when.get("reasons", ()):
        ledger.cancel() if reason is None else ledger.cancel(reason)
    found = {"cost_usd": ledger.cost_usd, "unmetered_runs": ledger.unmetered_runs, "cancelled": ledger.cancelled}
    if "budget" not in given:
        return found
    budget = _budget(given["budget"])
    left = BudgetLeft.of(ledger, budget, rules=RULES[preset])
    found |= {"remaining_cost": left.cost_usd, "remaining_seconds": left.seconds}
    return found | {"exhaustion": ledger.exhaustion(budget)}


def config(case: dict[str, Any], preset: str) -> dict[str, Any]:
    budget = RunBudget.from_config(case["given"]["config"], case["when"]["default_steps"])
    return {"max_steps": budget.max_steps, "max_cost_usd": budget.max_cost_usd, "max_seconds": budget.max_seconds}


def context(case: dict[str, Any], preset: str) -> dict[str, Any]:
    given = case["given"]
    root = RunContext.root(given["root_run_id"], _budget(given["root_budget"]), clock=ManualClock())
    child = RULES[preset].child_context(root, _budget(given["child"]), given["root_run_id"])
    child.ledger.record_steps(case["when"]["record_steps"][0])
    return {
        "root_ledger_steps": root.ledger.steps,
        "child_root_run_id": child.root_run_id,
        "child_is_child": child.is_child(),
        "root_is_child": root.is_child(),
        "child_depth": child.depth,
    }


def declaration(case: dict[str, Any], preset: str) -> dict[str, Any]:
    given = case["given"]
    subagent = Subagent.from_config(given["name"], given["config"])
    contains = case["then"].get("description_contains", "")
    return {
        "mode": subagent.mode,
        "scope": subagent.scope_under(case["when"]["parent_scope"]),
        "description": subagent.description,
        "description_contains": contains if contains in subagent.description else subagent.description,
        "max_steps": subagent.budget_in(99, rules=RULES[preset]).max_steps,
    }


def address(case: dict[str, Any], preset: str) -> dict[str, Any]:
    given = case["given"]
    who = Participant(given["participant_type"], given["participant_id"])
    return {"key": Sessions().session(given["scope"], participant=who).key}


def mode(case: dict[str, Any], preset: str) -> dict[str, Any]:
    when, modes = case["when"], ModeRegistry(case["given"]["config"])
    if when["op"] == "default":
        return {"default": modes.default}
    if when["op"] == "diagnose":
        report = modes.check()
        failing = [f"mode:{name}" for name in report.failing]
        return {"ok": report.ok, "failing_checks": failing, "passing_checks": [f"mode:{n}" for n in report.passing]}
    if when["op"] == "all":
        return {"names": sorted(modes.all())}
    if when["op"] == "subagent_names":
        return {name: list(modes.resolve(name).subagents) for name in when["modes"]}
    return _resolved(case, modes)


def _resolved(case: dict[str, Any], modes: ModeRegistry) -> dict[str, Any]:
    try:
        found = modes.resolve(case["when"]["mode"])
    except AgentError as error:
        if not {"message", "error_code"} & set(case["then"]):
            raise
        return {"error_code": error.code, "message": str(error)}
    lists = {key: list(getattr(found, key)) for key in ("tools", "skills", "subagents", "requires_approval")}
    return {"name": found.name, "system_prompt": found.system_prompt, "max_steps": found.max_steps} | lists


def _response(line: dict[str, Any]) -> ModelResponse:
    asked = [ToolCall(id=f"c{i}", name=name, arguments={"task": "go"}) for i, name in enumerate(line["tool_calls"])]
    return ModelResponse(
        text=line["text"], finish_reason=line["finish_reason"], tool_calls=asked, cost_usd=line["cost_usd"]
    )


class World:
    """A runtime on a script, and what was seen of it."""

    def __init__(self, given: dict[str, Any], preset: str, *, config: dict[str, Any] | None = None) -> None:
        script: list[Any] = [_response(line) for line in given.get("responses", ())]
        if "client_raises" in given:
            script = [RuntimeError(given["client_raises"])]
        self.client = ScriptedClient(script, repeat_last=given.get("responses_repeat_last", False))
        self.events: list[Any] = []
        self.executions = 0
        self._raises = given.get("tool_raises")
        denies = given.get("call_policy") == "deny_all"
        self.runtime = AgentRuntime(
            self.client,
            ModeRegistry(config if config is not None else given.get("config", PLAIN)),
            ToolRegistry().register(Tool("echo", self._echo)),
            rules=preset,
            events=Events().listen(self.events.append),
            authorizer=ToolAuthorizer(call=lambda *_: False) if denies else None,
        )
        self.session = self.runtime.sessions.session(given.get("parent_scope", "support"))

    def _echo(self, arguments: Any) -> str:
        self.executions += 1
        if self._raises is not None:
            raise ValueError(self._raises)
        return "echo"

    def messages(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.session.messages if message["type"] == kind]


def _context(given: dict[str, Any]) -> RunContext | None:
    if "context" not in given:
        return None
    values = given["context"]
    context = RunContext.root("run_parent", _budget(values["budget"]), clock=ManualClock())
    context.ledger.record_steps(values.get("ledger_steps", given.get("ledger_steps", 0)))
    if "cancel" in values:
        context.ledger.cancel(values["cancel"])
    return replace(context, depth=values.get("depth", 0))


def runtime(case: dict[str, Any], preset: str) -> dict[str, Any]:
    operation = case["when"]["op"]
    return _send(case, preset) if operation == "send" else STEPS[operation](case["given"])


def _send(case: dict[str, Any], preset: str) -> dict[str, Any]:
    given = case["given"]
    world = World(given, preset)
    context = _context(given)
    ledger = context.ledger if context is not None else None
    world.session.using_mode(given["mode"])
    found: dict[str, Any] = {"raises": None, "error_code": None}
    try:
        response = asyncio.run(world.runtime.send(world.session, case["when"]["prompt"], context=context))
        found |= {
            "text": response.text,
            "steps": response.steps,
            "finish_reason": response.finish_reason,
            "stopped_because": response.stopped_because,
            "tool_calls": list(response.tool_calls),
            "pending_tools": [p.tool for p in response.pending_approvals],
        }
    except (AgentError, RuntimeError) as error:
        found |= {"raises": str(error), "error_code": getattr(error, "code", None)}
    return found | _seen(world, ledger)


def _seen(world: World, ledger: RunLedger | None) -> dict[str, Any]:
    run, ends = world.session.run, [event for event in world.events if event.name != "run.started"]
    results = [r["result"] for message in world.messages("tool_result") for r in message["results"]]
    return {
        "client_calls": len(world.client.requests),
        "run_recorded": run is not None,
        "run_status": None if run is None else run.status,
        "thread_types": [message["type"] for message in world.session.messages],
        "tool_result": results[0] if results else None,
        "tool_executions": world.executions,
        "events": [event.name for event in world.events],
        "finished_cost_usd": getattr(ends[-1], "tree_cost_usd", None) if ends else None,
        "ledger_steps": ledger.steps if ledger is not None else (ends[-1].tree_steps if ends else 0),
    }


def _root_limit(given: dict[str, Any]) -> dict[str, Any]:
    config = {"modes": {"chat": {"max_steps": given["mode_max_steps"]}}}
    modes = ModeRegistry(config)
    service = AgentRuntime(ScriptedClient(), modes, max_steps_ceiling=given["max_steps_ceiling"])
    session = service.sessions.session("support")
    if given["session_max_steps"] is not None:
        session.using_max_steps(given["session_max_steps"])
    return {"max_steps": service.root_budget(modes.resolve(), session).max_steps}


STEPS: dict[str, Any] = {
    "php_root_step_limit": _root_limit,
    "php_store_session_override": lambda given: {
        "stored_max_steps": Sessions().session("s").using_max_steps(given["using_max_steps"]).max_steps
    },
    "php_tool_names_for": lambda given: {"tools": narrowed(given["requested_tools"], given["mode_tools"])},
    "tool_names_for": lambda given: {"tools": narrowed(given["requested_tools"], given["mode_tools"])},
}


def subagent_run(case: dict[str, Any], preset: str) -> dict[str, Any]:
    given, then = case["given"], case["then"]
    world, context = World(given, preset), _context(given)
    assert context is not None
    subagent = world.runtime.modes.resolve("parent").subagents["researcher"]
    if "subagent_budget" in given:
        subagent = replace(subagent, budget=_budget(given["subagent_budget"]))
    if "subagent_mode" in given:
        subagent = replace(subagent, mode=given["subagent_mode"])
    if given.get("parent_holds_session_lock"):
        world.session.hold("run_parent")
    runner = SubagentRunner(world.runtime.sessions, world.runtime)
    job = runner.run(subagent, world.session, context, "run_parent", case["when"].get("task", "go"))
    result = asyncio.run(job)
    child = world.runtime.sessions.session(f"{world.session.scope}::sub::researcher")
    return _envelope(result, then) | {
        "client_calls": len(world.client.requests),
        "ledger_steps": context.ledger.steps,
        "child_scope": child.scope,
        "child_mode": child.mode,
        "child_thread_nonempty": bool(child.messages),
    }


def _envelope(result: SubagentResult, then: dict[str, Any]) -> dict[str, Any]:
    handed = json.loads(result.to_tool_result())
    found = handed | {
        "text": result.text,
        "reason_is_null": handed["reason"] is None,
        "keys": list(handed),
        "missing_keys": [key for key in then.get("missing_keys", ()) if key not in handed],
    }
    for wanted, key in (("reason_contains", "reason"), ("_framing_contains", "_framing")):
        if wanted in then:
            found[wanted] = then[wanted] if then[wanted] in (handed[key] or "") else handed[key]
    prefix = then.get("run_id_prefix", "")
    return found | {"run_id_prefix": prefix if handed["run_id"].startswith(prefix) else handed["run_id"]}


def outcome(case: dict[str, Any], preset: str) -> dict[str, Any]:
    if case["when"]["op"] == "outcome_flags":
        return {
            name: {"succeeded": succeeded(Outcome(name)), "retryable": retryable(Outcome(name))}
            for name in case["then"]
        }
    result = SubagentResult(
        subagent="s", run_id="r", parent_run_id="p", outcome=Outcome.COMPLETED, tree=NOTHING, content="\ud800"
    )
    handed = json.loads(result.to_tool_result())
    missing = [key for key in ("parent_run_id", "usage", "content") if key not in handed]
    return handed | {"missing_keys": missing}


def tree(case: dict[str, Any], preset: str) -> dict[str, Any]:
    given = case["given"]
    config = json.loads(json.dumps(given["config"]))
    for name, entry in config["modes"].items():
        entry["model"] = name
    tools = {name: entry["tools"][0] for name, entry in config["modes"].items()}
    world = World({}, preset, config=config)
    lines = {
        name: [ModelResponse(tool_calls=[ToolCall(id="c", name=tool, arguments={"task": "go"})], cost_usd=0.10)]
        for name, tool in tools.items()
    }
    world.runtime.client = client = ScriptedClient(by_model=lines, repeat_last=True)
    context = _context(given)
    response = asyncio.run(world.runtime.send(world.session, case["when"]["prompt"], context=context))
    assert context is not None
    return {
        "call_order": [request.model for request in client.requests],
        "steps": response.steps,
        "ledger_cost_usd": context.ledger.cost_usd,
        "stopped_because": response.stopped_because,
        "parent_tool_calls": list(response.tool_calls),
    }


def lease(case: dict[str, Any], preset: str) -> dict[str, Any]:
    given = case["given"]
    if isinstance(given["lease_seconds"], list):
        return {"error_code": _lease_error(given["lease_seconds"])}
    ledger, task = _ledger(given["ledger"]), LeasedTask("task")
    task.claim(given["holder"], ledger.started, 1e6)
    answer = extend_lease(task, case["when"]["worker"], ledger, _budget(given["budget"]), given["lease_seconds"])
    if not isinstance(answer, LeaseGrant):
        part = case["then"].get("message_contains", "")
        held = part if part in answer.reason else answer.reason
        return {"error_code": answer.code.replace("-", "_"), "message_contains": held}
    low, high = case["then"].get("granted_seconds_between", (0, 0))
    between = [low, high] if low <= answer.granted_seconds <= high else answer.granted_seconds
    return {"granted_seconds": answer.granted_seconds, "granted_seconds_between": between}


def _lease_error(lengths: list[Any]) -> str:
    for length in lengths:
        try:
            LeasedTask("task").claim("worker", ManualClock().now(), float(length))
        except InputError:
            continue
        return f"a lease of {length} was accepted"
    return "task_lease_invalid"


ANSWERS = {
    "nested_budget": nested,
    "nested_budget_superseded": nested,
    "ledger": charged,
    "budget_config": config,
    "context": context,
    "subagent_declaration": declaration,
    "address": address,
    "mode": mode,
    "runtime": runtime,
    "subagent_run": subagent_run,
    "outcome": outcome,
    "tree": tree,
    "lease": lease,
}

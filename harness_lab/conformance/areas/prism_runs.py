"""Cases of prism-harness in which agents run: on scripted models, in memory, without a network."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents import (
    AgentError,
    AgentRuntime,
    Events,
    ModelResponse,
    ModeRegistry,
    Sessions,
    SubagentRunner,
    Tool,
    ToolAuthorizer,
    ToolCall,
    ToolRegistry,
)
from harness_lab.agents.envelope import NOTHING, SubagentResult, retryable, succeeded
from harness_lab.agents.scripted import ScriptedClient
from harness_lab.agents.tools import narrowed
from harness_lab.budget import RunContext
from harness_lab.clock import ManualClock
from harness_lab.conformance.areas.prism_values import budget_of
from harness_lab.conformance.shapes import UnknownShape, operation
from harness_lab.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.budget import RunLedger
    from harness_lab.conformance.shapes import Answer, Case

PLAIN: Final = {
    "default": "parent",
    "modes": {
        "parent": {"max_steps": 8, "subagents": {"researcher": {"mode": "child", "max_steps": 2}}},
        "child": {"max_steps": 2},
    },
}
"""The modes of a case that names none."""


class World:
    """A runtime on a script, and what was seen of it."""

    def __init__(self, given: Mapping[str, Any], preset: str, *, config: Mapping[str, Any] | None = None) -> None:
        script: list[Any] = [_response(line) for line in given.get("responses", ())]
        if "client_raises" in given:
            script = [RuntimeError(given["client_raises"])]
        self.client = ScriptedClient(script, repeat_last=given.get("responses_repeat_last", False))
        self.events: list[Any] = []
        self.executions = 0
        self._raises = given.get("tool_raises")
        denies = given.get("call_policy") == "deny_all"
        config = config if config is not None else given.get("config", PLAIN)
        self.runtime = AgentRuntime(
            self.client,
            ModeRegistry(config),
            ToolRegistry().register(*(Tool(name, self._echo) for name in sorted(_tools_of(config)))),
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
        """Return the session's messages of one kind."""
        return [message for message in self.session.messages if message["type"] == kind]


def runtime(case: Case, preset: str) -> Answer:
    """Send a prompt to a session, or ask for a limit of one."""
    name = operation(case)
    if name == "send":
        return _send(case, preset)
    if name not in LIMITS:
        raise UnknownShape(f"a runtime's operation {name!r}")
    return LIMITS[name](case["given"])


def subagent_run(case: Case, preset: str) -> Answer:
    """Run one subagent under its parent's context."""
    given = case["given"]
    world, context = World(given, preset), _context(given)
    if context is None:
        raise UnknownShape("a subagent's run without a context")
    modes = world.runtime.modes
    world.session.using_mode(given.get("parent_mode", modes.default))
    declared = modes.resolve(world.session.mode).subagents
    subagent = declared[given.get("subagent", next(iter(declared)))]
    if "subagent_budget" in given:
        subagent = replace(subagent, budget=budget_of(given["subagent_budget"]))
    if "subagent_mode" in given:
        subagent = replace(subagent, mode=given["subagent_mode"])
    if given.get("parent_holds_session_lock"):
        world.session.hold("run_parent")
    runner = SubagentRunner(world.runtime.sessions, world.runtime)
    parent = given["context"].get("parent_run_id", "run_parent")
    result = asyncio.run(runner.run(subagent, world.session, context, parent, case["when"].get("task", "go")))
    child = world.runtime.sessions.session(subagent.scope_under(world.session.scope))
    return _envelope(result) | {
        "client_calls": len(world.client.requests),
        "ledger_steps": context.ledger.steps,
        "child_scope": child.scope,
        "child_mode": child.mode,
        "child_thread_nonempty": bool(child.messages),
    }


def outcome(case: Case, _preset: str) -> Answer:
    """Read what each outcome means, or hand over a result that is no text."""
    if operation(case) == "outcome_flags":
        return {
            name: {"succeeded": succeeded(Outcome(name)), "retryable": retryable(Outcome(name))}
            for name in case["then"]
        }
    result = SubagentResult(
        subagent="s", run_id="r", parent_run_id="p", outcome=Outcome.COMPLETED, tree=NOTHING, content="\ud800"
    )
    handed: dict[str, Any] = json.loads(result.to_tool_result())
    missing = [key for key in ("parent_run_id", "usage", "content") if key not in handed]
    return handed | {"missing_keys": missing}


def tree(case: Case, preset: str) -> Answer:
    """Run a tree in which every model always calls its one tool for ten cents."""
    given = case["given"]
    config = json.loads(json.dumps(given["config"]))
    for name, entry in config["modes"].items():
        entry["model"] = name
    lines = {
        name: [ModelResponse(tool_calls=[ToolCall(id="c", name=entry["tools"][0], arguments={"task": "go"})],
                             cost_usd=0.10)]
        for name, entry in config["modes"].items()
    }  # fmt: skip
    world, context = World({}, preset, config=config), _context(given)
    world.runtime.client = client = ScriptedClient(by_model=lines, repeat_last=True)
    response = asyncio.run(world.runtime.send(world.session, case["when"]["prompt"], context=context))
    return {
        "call_order": [request.model for request in client.requests],
        "steps": response.steps,
        "ledger_cost_usd": context.ledger.cost_usd if context is not None else None,
        "stopped_because": response.stopped_because,
        "parent_tool_calls": list(response.tool_calls),
    }


def _tools_of(config: Mapping[str, Any]) -> set[str]:
    """Return the tools that modes name besides their subagents; each answers with a word."""
    modes = config.get("modes")
    entries = [entry for entry in (modes.values() if isinstance(modes, dict) else ()) if isinstance(entry, dict)]
    lists = [entry.get("tools") for entry in entries]
    names = {name for tools in lists if isinstance(tools, list) for name in tools if isinstance(name, str)}
    return (names | {"echo"}) - {"*"} - {sub for entry in entries for sub in entry.get("subagents") or ()}


def _response(line: Mapping[str, Any]) -> ModelResponse:
    asked = [ToolCall(id=f"c{i}", name=name, arguments={"task": "go"}) for i, name in enumerate(line["tool_calls"])]
    return ModelResponse(
        text=line["text"], finish_reason=line["finish_reason"], tool_calls=asked, cost_usd=line["cost_usd"]
    )


def _context(given: Mapping[str, Any]) -> RunContext | None:
    if "context" not in given:
        return None
    values = given["context"]
    context = RunContext.root("run_parent", budget_of(values["budget"]), clock=ManualClock())
    context.ledger.record_steps(values.get("ledger_steps", given.get("ledger_steps", 0)))
    if "cancel" in values:
        context.ledger.cancel(values["cancel"])
    return replace(context, depth=values.get("depth", 0))


def _send(case: Case, preset: str) -> Answer:
    given = case["given"]
    world, context = World(given, preset), _context(given)
    world.session.using_mode(given["mode"])
    found: dict[str, Any] = {"error_code": None}
    try:
        response = asyncio.run(world.runtime.send(world.session, case["when"]["prompt"], context=context))
        found |= {
            "text": response.text,
            "steps": response.steps,
            "finish_reason": response.finish_reason,
            "stopped_because": response.stopped_because,
            "tool_calls": list(response.tool_calls),
            "pending_tools": [pending.tool for pending in response.pending_approvals],
        }
    except AgentError as error:
        found["error_code"] = error.code
    except RuntimeError as error:
        found["raises"] = str(error)
    return found | _seen(world, context.ledger if context is not None else None)


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


def _root_limit(given: Mapping[str, Any]) -> Answer:
    modes = ModeRegistry({"modes": {"chat": {"max_steps": given["mode_max_steps"]}}})
    service = AgentRuntime(ScriptedClient(), modes, max_steps_ceiling=given["max_steps_ceiling"])
    session = service.sessions.session("support")
    if given["session_max_steps"] is not None:
        session.using_max_steps(given["session_max_steps"])
    return {"max_steps": service.root_budget(modes.resolve(), session).max_steps}


def _stored_limit(given: Mapping[str, Any]) -> Answer:
    return {"stored_max_steps": Sessions().session("s").using_max_steps(given["using_max_steps"]).max_steps}


def _narrowed(given: Mapping[str, Any]) -> Answer:
    return {"tools": narrowed(given["requested_tools"], given["mode_tools"])}


LIMITS: Final[dict[str, Callable[[Mapping[str, Any]], Answer]]] = {
    "php_root_step_limit": _root_limit,
    "php_store_session_override": _stored_limit,
    "php_tool_names_for": _narrowed,
    "tool_names_for": _narrowed,
}


def _envelope(result: SubagentResult) -> dict[str, Any]:
    handed: dict[str, Any] = json.loads(result.to_tool_result())
    return handed | {"text": result.text, "reason_is_null": handed["reason"] is None, "keys": list(handed)}

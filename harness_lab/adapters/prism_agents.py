"""The cases in which agents of prism-ai-harness run, on its own runtime with a scripted model, and those of modes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from harness_lab.adapters.protocol import NotApplicable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Case = Mapping[str, Any]


class _World:
    """A runtime of the package on a script, and what was seen of it."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        import prism_harness as prism
        from prism_harness.events import HarnessEvents
        from prism_harness.tools import ToolAuthorizer

        self.given, self.requests, self.events, self.executions = given, [], [], 0  # type: ignore[var-annotated]
        self.modes, tools = prism.ModeRegistry(given["config"]), prism.ToolRegistry()
        tools.register(SimpleNamespace(name="echo", handle=self._echo))
        events = HarnessEvents()
        events.listen(self.events.append)
        denies = given.get("call_policy") == "deny_all"
        authorizer = ToolAuthorizer(enabled=True, call=lambda *_: False) if denies else None
        self.runtime = prism.AgentRuntime(self._client, self.modes, tools, authorizer, events)
        self.harness = _harness()
        self.who = self.harness.for_(prism.Participant("User", 1))
        self.session = self.who.session(given.get("parent_scope", "support"))

    def context(self) -> Any:
        """Return the run's context, None without one."""
        from prism_harness.subagents import RunBudget, RunContext

        if "context" not in self.given:
            return None
        values = self.given["context"]
        context = RunContext.root("run_parent", RunBudget(**values["budget"]))
        context.ledger.record_steps(values.get("ledger_steps", 0))
        return replace(context, depth=values.get("depth", 0))

    def _client(self, request: Any) -> Any:
        from prism_harness.runtime import LlmResponse, LlmToolCall

        self.requests.append(request)
        if "client_raises" in self.given:
            raise RuntimeError(self.given["client_raises"])
        script = self.given["responses"]
        last = len(script) - 1 if self.given.get("responses_repeat_last") else len(self.requests) - 1
        line = dict(script[min(len(self.requests) - 1, last)])
        calls = [LlmToolCall(id=f"c{i}", name=n, arguments={}) for i, n in enumerate(line.pop("tool_calls"))]
        return LlmResponse(tool_calls=calls, **line)

    def _echo(self, _arguments: Any) -> str:
        self.executions += 1
        if "tool_raises" in self.given:
            raise ValueError(self.given["tool_raises"])
        return "echo"


def _harness() -> Any:
    import prism_harness as prism
    from prism_harness.stores.base import Durability
    from prism_harness.stores.memory import MemorySessionStore

    class Kept(MemorySessionStore):
        """A store that says it is durable."""

        def durability(self) -> Durability:
            return Durability.DURABLE

    return prism.PrismHarness(drivers={"default": Kept})


def sent(case: Case) -> dict[str, Any]:
    """Send a prompt to a session."""
    from prism_harness.errors import HarnessError

    if case["when"]["op"] != "send":
        raise NotApplicable(f"the case is about {case['when']['op']}, an inner function of the package")
    world = _World(case["given"])
    context = world.context()
    world.session.using_mode(case["given"]["mode"])
    found: dict[str, Any] = {"error_code": None}
    try:
        response = world.runtime.send(world.session, case["when"]["prompt"], context=context)
        named = ("text", "steps", "finish_reason", "stopped_because", "tool_calls")
        found |= {name: getattr(response, name) for name in named}
        found["pending_tools"] = [pending.tool for pending in response.pending_approvals]
    except HarnessError as error:
        found["error_code"] = error.code
    except RuntimeError as error:
        found["raises"] = str(error)
    return found | _seen(world, context)


def _seen(world: _World, context: Any) -> dict[str, Any]:
    run, ends = world.session.run(), [event for event in world.events if event.type != "run.started"]
    messages = [entry.message for entry in world.session.thread().messages()]
    results = [one["result"] for m in messages if m["type"] == "tool_result" for one in _results(m)]
    return {
        "client_calls": len(world.requests),
        "run_recorded": run is not None,
        "run_status": None if run is None else run["status"],
        "thread_types": [message["type"] for message in messages],
        "tool_result": results[0] if results else None,
        "tool_executions": world.executions,
        "events": [event.type for event in world.events],
        "finished_cost_usd": getattr(ends[-1], "cost_usd", None) if ends else None,
        "ledger_steps": context.ledger.steps if context is not None else (ends[-1].steps if ends else 0),
    }


def _results(message: Mapping[str, Any]) -> list[Any]:
    return list(message.get("tool_results") or message.get("results") or ())


def subagent_run(case: Case) -> dict[str, Any]:
    """Run one subagent under its parent's context."""
    from prism_harness.subagent_runner import SubagentRunner
    from prism_harness.subagents import RunBudget

    given = case["given"]
    world = _World(given)
    context = world.context()
    world.session.using_mode(world.modes.default())
    subagent = world.modes.resolve(None).subagents[given["subagent"]]
    if "subagent_budget" in given:
        subagent = replace(subagent, budget=RunBudget(**given["subagent_budget"]))
    runner = SubagentRunner(world.harness, world.runtime)
    result = runner.run(subagent, world.session, context, "run_parent", case["when"].get("task", "go"))
    child = world.who.session(subagent.scope_under(world.session.scope))
    return {
        "outcome": result.outcome,
        "text": result.text,
        "client_calls": len(world.requests),
        "ledger_steps": context.ledger.steps,
        "child_scope": child.scope,
        "child_mode": child.mode(),
        "child_thread_nonempty": bool(child.thread().messages()),
    }


def mode(case: Case) -> dict[str, Any]:
    """Resolve modes, list them, or check them all."""
    from prism_harness.errors import HarnessError
    from prism_harness.modes import ModeRegistry

    modes = ModeRegistry(case["given"]["config"])
    try:
        return _MODES[case["when"]["op"]](modes, case["when"])
    except HarnessError as error:
        return {"error_code": error.code, "message": error.message}


def _resolved(modes: Any, when: Any) -> dict[str, Any]:
    found = modes.resolve(when["mode"])
    lists = {key: list(getattr(found, key)) for key in ("tools", "skills", "subagents", "requires_approval")}
    return {"name": found.name, "system_prompt": found.system_prompt, "max_steps": found.max_steps} | lists


def _checked(modes: Any, _when: Any) -> dict[str, Any]:
    from prism_harness.doctor import diagnose

    report = diagnose(modes)
    said = {
        ok: [f.check for f in report.findings if f.ok is ok and f.check.startswith("mode:")] for ok in (True, False)
    }
    return {"ok": report.ok, "failing_checks": said[False], "passing_checks": said[True]}


def address(case: Case) -> dict[str, Any]:
    """Address a session."""
    import prism_harness as prism

    given = case["given"]
    who = prism.Participant(given["participant_type"], given["participant_id"])
    return {"key": _harness().for_(who).session(given["scope"]).key()}


_MODES: Final[dict[str, Callable[[Any, Any], dict[str, Any]]]] = {
    "default": lambda modes, _when: {"default": modes.default()},
    "all": lambda modes, _when: {"names": sorted(modes.all())},
    "subagent_names": lambda modes, when: {name: list(modes.resolve(name).subagents) for name in when["modes"]},
    "resolve": _resolved,
    "diagnose": _checked,
}

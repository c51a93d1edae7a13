"""Claude Agent SDK (Python): keywords of ``ClaudeAgentOptions``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.export.forms.data import Json
from harness_lab.export.forms.python import Python
from harness_lab.export.targets.amounts import INT32, Count, Dollars
from harness_lab.export.targets.base import Draft, Knob, Target, Values
from harness_lab.export.targets.claude import KEY_AGENTS, KEY_DENY, claude_agents, claude_extra, claude_model

if TYPE_CHECKING:
    from harness_lab.export.document import AgentLimits

CHILDREN, DEPTH = "env.CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "env.CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH"
KEYS = ("max_turns", "max_budget_usd", "disallowed_tools", CHILDREN, DEPTH, "agents")


class _EnvCount(Count):
    """A count in an environment variable: text."""

    __slots__ = ()

    def write(self, value: float) -> tuple[str, str]:  # type: ignore[override]
        """Return the count as text."""
        number, adjusted = Count.write(self, value)
        return str(number), adjusted


_ENV = _EnvCount(least=1, most=INT32, why="no children at all are a disallowed Agent tool")

KNOBS = (
    Knob(
        key="max_turns", quantity="calls", bounds=("root",), unit="agent turns (model calls)",
        scope="the main agent of one query",
        amount=Count(least=1, most=INT32, why="the SDK does not pass 0 on, which is no limit"),
        note="subagents have maxTurns of their own",
    ),
    Knob(
        key="max_budget_usd", quantity="cost", bounds=("tree",), unit="USD at list prices",
        scope="one query with its subagents", amount=Dollars(zero="must be greater than 0 there"),
        note="enforced by the bundled client from its own price list, checked after each call",
        reported="when a subagent crosses it the query gives no result (anthropics/claude-agent-sdk-python#1273)",
    ),
    Knob(
        key=CHILDREN, quantity="children", bounds=("tree",), unit="subagents that run at once", scope="one session",
        amount=_ENV, default="20 at once, or what the service says", note="a start beyond it is refused, not queued",
    ),
    Knob(
        key=DEPTH, quantity="depth", bounds=("tree",), unit="levels below the main agent", scope="one session",
        amount=_ENV, default="1, or what the service says",
    ),
)  # fmt: skip


def _extra(draft: Draft) -> None:
    claude_extra(draft, turns="max_turns", bounds=(CHILDREN, DEPTH))
    if KEY_DENY in draft.values:
        draft.values["disallowed_tools"] = draft.values.pop(KEY_DENY)
    if KEY_AGENTS in draft.values:
        rest = {agent["name"]: {k: v for k, v in agent.items() if k != "name"} for agent in draft.values[KEY_AGENTS]}
        draft.values[KEY_AGENTS] = rest


def _model(values: Values) -> Any:
    return claude_model(
        turns=values.get("max_turns"), dollars=values.get("max_budget_usd"), children=_int(values.get(CHILDREN)),
        depth=_int(values.get(DEPTH)), denied=values.get("disallowed_tools", []),
    )  # fmt: skip


def _agents(values: Values) -> tuple[AgentLimits, ...]:
    told: dict[str, dict[str, Any]] = values.get(KEY_AGENTS, {})
    return claude_agents([{"name": name, **agent} for name, agent in told.items()])


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)


TARGET = Target(
    name="claude-agent-sdk",
    title="Claude Agent SDK",
    version="0.2.189",
    knobs=KNOBS,
    forms={
        "python": Python(file="claude_options.py", keys=KEYS, constant="OPTIONS"),
        "json": Json(file="claude-options.json", keys=KEYS),
    },
    model=_model,
    rest=_extra,
    agents=_agents,
)

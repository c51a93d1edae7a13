"""OpenAI Agents SDK: keywords of ``Runner.run``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.export.document import AgentLimits
from harness_lab.export.forms.data import Json
from harness_lab.export.forms.python import Python
from harness_lab.export.forms.text import quoted
from harness_lab.export.targets.amounts import INT32, Count
from harness_lab.export.targets.base import Carried, Draft, Knob, Target, Values, agents_lost, label
from harness_lab.export.targets.modules import meter

if TYPE_CHECKING:
    from harness_lab.policies import ModuleSpec

KEYS = ("max_turns",)
AS_TOOL = "as_tool"

KNOBS = (
    Knob(
        key="max_turns", quantity="calls", bounds=("node",), unit="turns (model calls)",
        scope="one run; an agent used as a tool has a run of its own", amount=Count(most=INT32), none="null",
        missing="10",
        note="handoffs count on in the same run; calls for compaction are not counted "
        "(openai/openai-agents-python#4434); give it to Agent.as_tool(max_turns=...) too, where missing means 10",
    ),
)  # fmt: skip


def _extra(draft: Draft) -> None:
    most = draft.values.get(KEYS[0])  # holds for each agent, as each agent's own does
    own = {agent.name: agent.max_calls for agent in draft.config.agents if agent.max_calls is not None}
    told = {name: calls if most is None else min(calls, most) for name, calls in own.items()}
    if told:
        draft.values[AS_TOOL] = told
        draft.carried += [
            Carried(
                value=f"{label(name)}.max_calls", key=f"{AS_TOOL}[{quoted(name)}]", written=calls,
                unit="turns (model calls)", scope="one run of the agent as a tool: Agent.as_tool(max_turns=...)",
            )
            for name, calls in told.items()
        ]  # fmt: skip
    agents_lost(draft, "set it where the Agent is defined", keeps=("max_calls",))


def _model(values: Values) -> tuple[ModuleSpec, ...]:
    return meter(calls=values.get("max_turns"), whose="node", counts="replies")


def _agents(values: Values) -> tuple[AgentLimits, ...]:
    told: dict[str, int] = values.get(AS_TOOL) or {}
    return tuple(AgentLimits(name=name, max_calls=calls) for name, calls in told.items())


TARGET = Target(
    name="openai-agents",
    title="OpenAI Agents SDK",
    version="0.24",
    knobs=KNOBS,
    forms={
        "python": Python(
            file="run_limits.py", keys=KEYS, constant="RUN_LIMITS", beside=((AS_TOOL, "MAX_TURNS_AS_TOOL"),)
        ),
        "json": Json(file="run-limits.json", keys=(*KEYS, AS_TOOL)),
    },
    model=_model,
    rest=_extra,
    agents=_agents,
)

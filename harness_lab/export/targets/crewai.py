"""CrewAI: keys of each agent in ``agents.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.export.document import AgentLimits
from harness_lab.export.forms import yaml
from harness_lab.export.forms.text import comments, mapping, only_file, pick
from harness_lab.export.targets.amounts import INT32, Count, Seconds
from harness_lab.export.targets.base import Carried, Draft, Knob, Target, Values, agents_lost, label
from harness_lab.export.targets.modules import meter, tree
from harness_lab.policies import AtLimit

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Files
    from harness_lab.policies import ModuleSpec

KEYS = ("max_iter", "max_execution_time")
AGENTS, ANY = "agents", "agent"

KNOBS = (
    Knob(
        key=KEYS[0], quantity="calls", bounds=("node",), unit="iterations (model calls)", scope="one task of one agent",
        amount=Count(most=INT32), default="25 (20 in older versions)",
        note="at the limit one more call is made for an answer",
    ),
    Knob(
        key=KEYS[1], quantity="time", bounds=("child",), unit="seconds", scope="one task of one agent",
        amount=Seconds(least=1), reported="the work goes on past it (crewAIInc/crewAI#2379, #732)",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsYaml:
    """Limits by agent; without names in the config, those of one called ``agent``, to be copied."""

    file: str = "agents.yaml"
    keys: tuple[str, ...] = KEYS

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it lies: in a project of one's own, or as the command line makes one."""
        return (self.file, "config/agents.yaml", "src/*/config/agents.yaml")

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file."""
        return {self.file: comments(header, "#") + yaml.block(values[AGENTS])}

    def read(self, files: Files) -> Values:
        """Return what it holds."""
        data = mapping(yaml.read(only_file(files, self.file), what=self.file), what=self.file)
        return {AGENTS: {name: pick(own, (*KEYS, "llm")) for name, own in data.items() if isinstance(own, dict)}}


def _extra(draft: Draft) -> None:
    """Write what holds for every agent into each of them, and what is its own."""
    shared = {key: draft.values[key] for key in KEYS if key in draft.values}
    told: dict[str, dict[str, Any]] = {}
    for agent in draft.config.agents:
        own = dict(shared)
        if agent.max_calls is not None:
            own["max_iter"] = min(agent.max_calls, shared.get("max_iter", agent.max_calls))
            draft.carried.append(
                Carried(
                    value=f"{label(agent.name)}.max_calls", key=f"{label(agent.name)}.max_iter",
                    written=own["max_iter"], unit=KNOBS[0].unit, scope=KNOBS[0].scope,
                )
            )  # fmt: skip
        told[agent.name] = own | ({} if agent.model is None else {"llm": agent.model})
    draft.values = {AGENTS: told or {ANY: shared}}
    agents_lost(draft, "tools are set where the agent is defined", keeps=("max_calls", "model"))


def _model(values: Values) -> tuple[ModuleSpec, ...]:
    """Return the limits of all agents: those of the agent that may do most.

    What each of them has of its own is beside them (:func:`_agents`); which of them is the main one, no file says.
    """
    calls, seconds = ([own.get(key) for own in _by_agent(values).values()] for key in KEYS)
    most, longest = _most(calls), _most(seconds)
    late = () if longest is None else tree(timeout_s=longest, on_timeout="detach")
    return (*late, *meter(calls=most, whose="node"))


def _most(limits: list[Any]) -> Any:
    """Return the limit of the agent that may do most; None where one has none."""
    return None if None in limits or not limits else max(limits)


def _by_agent(values: Values) -> dict[str, dict[str, Any]]:
    """Return the settings by agent; those of no agent are everybody's."""
    told: dict[str, dict[str, Any]] = values.get(AGENTS, {ANY: values})
    return told


def _agents(values: Values) -> tuple[AgentLimits, ...]:
    told = _by_agent(values).items()
    return tuple(
        AgentLimits(name=name, max_calls=own.get("max_iter"), model=own.get("llm")) for name, own in told if name != ANY
    )


TARGET = Target(
    name="crewai",
    title="CrewAI",
    version="1.15",
    knobs=KNOBS,
    forms={"yaml": AgentsYaml()},
    model=_model,
    at_limit=AtLimit(then="wrap-up"),
    rest=_extra,
    agents=_agents,
)

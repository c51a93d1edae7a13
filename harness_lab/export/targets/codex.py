"""Codex CLI: the ``[agents]`` table of ``.codex/config.toml``, and a file for each agent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tomli_w

from harness_lab.export.document import AgentLimits
from harness_lab.export.forms.data import Toml
from harness_lab.export.forms.text import quoted
from harness_lab.export.targets.amounts import INT32, Count, Seconds
from harness_lab.export.targets.base import Draft, Knob, Loss, Target, Values, agents_lost, no_children
from harness_lab.export.targets.modules import tree
from harness_lab.export.targets.names import slugs
from harness_lab.export.values import childless

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Files
    from harness_lab.policies import ModuleSpec

CHILDREN, DEPTH = "agents.max_concurrent_threads_per_session", "agents.max_depth"
RUNTIME, ENABLED = "agents.job_max_runtime_seconds", "agents.enabled"
KEYS = (ENABLED, CHILDREN, DEPTH, RUNTIME)
_ZERO = "no children at all are agents.enabled = false"

KNOBS = (
    Knob(
        key=CHILDREN, quantity="children", bounds=("tree",), unit="agent threads open at once, without the main one",
        scope="one session", amount=Count(least=1, most=INT32, why=_ZERO), default="a number of threads of its own",
        note="a start beyond it is refused, not queued; older versions call it max_threads; under "
        "[features.multi_agent_v2] a count of the same name includes the main one",
    ),
    Knob(
        key=DEPTH, quantity="depth", bounds=("tree",), unit="levels below the main agent", scope="one session",
        amount=Count(least=1, most=INT32, why=_ZERO), default="1",
        reported="a child starts children beyond it in 0.144 and 0.155 (openai/codex#32027, #46704), and multi-agent "
        "v2 ignores it (#20180)",
    ),
    Knob(
        key=RUNTIME, quantity="time", bounds=("child",), unit="seconds", scope="one worker of a batch job",
        amount=Seconds(least=1, why="a limit of nothing cannot be set"),
        note="times the workers of agent jobs only; other children are not timed",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigToml:
    """``.codex/config.toml``, and ``.codex/agents/NAME.toml`` for each agent."""

    main: Toml = field(default_factory=lambda: Toml(file=".codex/config.toml", keys=KEYS))

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the main file."""
        return self.main.keys

    @property
    def paths(self) -> tuple[str, ...]:
        """Where they lie."""
        return (self.main.file, ".codex/agents/*.toml")

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the files."""
        agents: list[dict[str, Any]] = values.get("agents", [])
        files = self.main.write({k: v for k, v in values.items() if k != "agents"}, header)
        for slug, agent in zip(slugs([agent["name"] for agent in agents]), agents, strict=True):
            files[f".codex/agents/{slug}.toml"] = f"# {quoted(agent['name'])}\n{tomli_w.dumps(agent)}"
        return files

    def read(self, files: Files) -> Values:
        """Return what they hold."""
        apart = {path: text for path, text in files.items() if path.startswith(".codex/agents/")}
        values = self.main.read({path: text for path, text in files.items() if path not in apart})
        keys = ("name", "description", "developer_instructions", "model")
        agents = [Toml(file=path, keys=keys).read({path: text}) for path, text in apart.items()]
        return values | ({"agents": agents} if agents else {})


def _extra(draft: Draft) -> None:
    if childless(draft.config.policy):
        no_children(draft, ENABLED, False, "agents on or off", instead_of=(CHILDREN, DEPTH))
    if RUNTIME in draft.values:
        means = "holds there for the workers of batch jobs only; other children are not timed"
        draft.losses.append(Loss("tree_limits.timeout_s", means))
    agents = []
    for agent in draft.config.agents:
        told = agent.description or agent.name
        entry = {"name": agent.name, "description": told, "developer_instructions": told}
        agents.append(entry | ({"model": agent.model} if agent.model is not None else {}))
    if agents:
        draft.values["agents"] = agents
    agents_lost(draft, "Codex has no such setting for an agent", keeps=("model",))


def _model(values: Values) -> tuple[ModuleSpec, ...]:
    if values.get(ENABLED) is False:
        return tree(max_depth=0)
    return tree(max_depth=values.get(DEPTH), max_concurrent=values.get(CHILDREN))


def _agents(values: Values) -> tuple[AgentLimits, ...]:
    told: list[dict[str, Any]] = values.get("agents", [])
    return tuple(AgentLimits(name=agent["name"], model=agent.get("model")) for agent in told)


def _unsimulated(values: Values) -> tuple[str, ...]:
    seconds = values.get(RUNTIME)
    why = "times workers of batch jobs alone, of which the simulator has none"
    return () if seconds is None else (f"{RUNTIME} = {seconds}: {why}",)


TARGET = Target(
    name="codex", title="Codex CLI", version="0.171", knobs=KNOBS, forms={"toml": ConfigToml()}, model=_model,
    rest=_extra, agents=_agents, unsimulated=_unsimulated,
)  # fmt: skip

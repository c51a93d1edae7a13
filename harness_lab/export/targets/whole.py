"""What targets of our own share: the whole policy, the mode and the agents, nothing lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness_lab.export.document import AgentLimits
from harness_lab.export.targets.base import Loss
from harness_lab.export.targets.own import as_own
from harness_lab.export.values import values_of
from harness_lab.policies import PolicySpec

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Draft, Values
    from harness_lab.policies import ModuleSpec

KEYS = ("policy", "mode", "agents")


def whole(draft: Draft) -> None:
    """Carry everything."""
    config = draft.config
    own, losses = as_own(config.policy)
    agents = [agent.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for agent in config.agents]
    draft.values = {"policy": plain(own)}
    draft.losses += [Loss(*loss) for loss in losses]
    if config.mode != "enforce":
        draft.values["mode"] = config.mode
    if agents:
        draft.values["agents"] = agents
    draft.done |= {value.name for value in values_of(config.policy)}


def plain(policy: PolicySpec) -> dict[str, Any]:
    """Return a policy as JSON holds it: lists, no tuples."""
    return dict(json.loads(json.dumps(policy.to_dict())))


def modules(values: Values) -> tuple[ModuleSpec, ...]:
    """Return the policy's modules."""
    return policy(values).modules


def agents(values: Values) -> tuple[AgentLimits, ...]:
    """Return what single agents are held to."""
    return tuple(AgentLimits(**agent) for agent in values.get("agents", ()))


def policy(values: dict[str, Any]) -> PolicySpec:
    """Return the policy itself."""
    return PolicySpec.from_dict(values["policy"])

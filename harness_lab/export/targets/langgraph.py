"""LangGraph: ``recursion_limit``, which counts super-steps of a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness_lab.export.forms.data import Json
from harness_lab.export.forms.python import Python
from harness_lab.export.steps import StepModel
from harness_lab.export.targets.amounts import INT32, Count, Unfit
from harness_lab.export.targets.base import Draft, Knob, Target, Values, agents_lost
from harness_lab.export.targets.modules import meter

if TYPE_CHECKING:
    from harness_lab.policies import ModuleSpec

AGENT_AND_TOOLS = StepModel(base=0, per_unit=2)
"""One node calls the model, one runs its tools, in turn. The last call asks for no tools, but a graph has to end one
step before its limit."""
KEYS = ("recursion_limit",)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuperSteps:
    """Model calls as super-steps of a graph."""

    steps: StepModel
    count: Count = field(default_factory=lambda: Count(least=1, most=INT32, why="a graph needs a step to start"))

    def write(self, value: float) -> tuple[int, str]:
        """Return the limit."""
        if value < 1:
            raise Unfit("cannot be less than the steps of one call")
        return self.count.write(self.steps.limit_for(int(value)))

    def read(self, written: float | str) -> int:
        """Return the model calls that it allows."""
        return self.steps.within(int(written))


def langgraph(steps: StepModel = AGENT_AND_TOOLS) -> Target:
    """Return the target for a graph that takes so many super-steps; fit them with :meth:`StepModel.fit`."""
    amount = SuperSteps(steps=steps)
    knob = Knob(
        key=KEYS[0], quantity="calls", bounds=("node",), amount=amount,
        unit=f"super-steps: {steps.base} + {steps.per_unit} k for k {steps.unit}",
        scope="one invocation of one graph; a subgraph run as a node has its own", default="25 in the documentation",
        note="beyond it GraphRecursionError is raised and the run's state since the last checkpoint is lost",
    )  # fmt: skip

    def model(values: Values) -> tuple[ModuleSpec, ...]:
        limit = values.get(KEYS[0])
        return () if limit is None else meter(calls=amount.read(limit), whose="node", counts="replies")

    return Target(
        name="langgraph", title="LangGraph", version="1.2.24", knobs=(knob,), model=model, rest=_extra,
        forms={
            "python": Python(file="graph_config.py", keys=KEYS, constant="CONFIG"),
            "json": Json(file="graph-config.json", keys=KEYS),
        },
    )  # fmt: skip


def _extra(draft: Draft) -> None:
    agents_lost(draft, "a graph's limit names no agent")


TARGET = langgraph()

"""TanStack AI: ``subagents.limits``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.export.forms.data import Json, TypeScript
from harness_lab.export.targets.amounts import Count, Seconds
from harness_lab.export.targets.base import Draft, Knob, Target, Values, agents_lost
from harness_lab.export.targets.modules import tree

if TYPE_CHECKING:
    from harness_lab.policies import ModuleSpec

KEYS = ("maxDepth", "maxConcurrent", "maxCalls", "timeoutMs")
_TREE = "one root run (one user turn) with its subagents"
_WHOLE = "given at all, the limits replace the harness's defaults (2, 3, 12) as a whole"

KNOBS = (
    Knob(
        key="maxDepth", quantity="depth", bounds=("tree",), unit="levels below the root", scope=_TREE, amount=Count(),
        note=_WHOLE,
    ),
    Knob(
        key="maxConcurrent", quantity="children", bounds=("parent",), unit="children that run at once",
        scope="one parent run", amount=Count(), note="a start beyond it is refused, not queued",
    ),
    Knob(
        key="maxCalls", quantity="starts", bounds=("tree",), unit="subagent starts", scope=_TREE, amount=Count(),
        note="starts by code, routers and a child's own chat() are not counted",
    ),
    Knob(
        key="timeoutMs", quantity="time", bounds=("child",), unit="milliseconds", scope="one child started by a tool",
        amount=Seconds(per_second=1000), note="a child resumed after an approval has its time anew",
    ),
)  # fmt: skip


def _extra(draft: Draft) -> None:
    agents_lost(draft, "limits are the tree's; set it where the agent is defined")


def _model(values: Values) -> tuple[ModuleSpec, ...]:
    depth, children, starts, milliseconds = (values.get(key) for key in KEYS)
    seconds = None if milliseconds is None else milliseconds / 1000
    return tree(
        max_depth=depth, max_concurrent=children, max_calls=starts, timeout_s=seconds, concurrency="parent",
        give_back=False,
    )  # fmt: skip


TARGET = Target(
    name="tanstack",
    title="TanStack AI",
    version="pull request 1520",
    knobs=KNOBS,
    forms={
        "typescript": TypeScript(
            file="subagent-limits.ts",
            keys=KEYS,
            constant="SUBAGENT_LIMITS",
            type="{ maxDepth?: number; maxConcurrent?: number; maxCalls?: number; timeoutMs?: number }",
        ),
        "json": Json(file="subagent-limits.json", keys=KEYS),
    },
    model=_model,
    rest=_extra,
)

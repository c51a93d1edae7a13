"""hermes-agent: keys of ``config.yaml``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.export.forms.data import Yaml
from harness_lab.export.targets.amounts import INT32, Count, Seconds
from harness_lab.export.targets.base import Draft, Knob, Target, Values, agents_lost
from harness_lab.export.targets.modules import meter, tree
from harness_lab.policies import AtLimit

if TYPE_CHECKING:
    from harness_lab.policies import ModuleSpec

KEYS = (
    "agent.max_turns",
    "delegation.max_iterations",
    "delegation.max_spawn_depth",
    "delegation.max_concurrent_children",
    "delegation.child_timeout_seconds",
)

KNOBS = (
    Knob(
        key=KEYS[0], quantity="calls", bounds=("root",), unit="iterations (model calls)",
        scope="the main agent in one user turn", amount=Count(least=1, most=INT32), default="90",
        note="each user turn begins anew; one call for a summary is made outside it; a turn of code alone is free",
    ),
    Knob(
        key=KEYS[1], quantity="calls", bounds=("child",), unit="iterations (model calls)", scope="one child",
        amount=Count(least=1, most=INT32), default="50",
    ),
    Knob(
        key=KEYS[2], quantity="depth", bounds=("tree",), unit="levels below the main agent", scope="one tree",
        amount=Count(least=1, most=INT32, why="less is taken as 1"), default="1",
        note="a child that may delegate needs the role orchestrator",
    ),
    Knob(
        key=KEYS[3], quantity="children", bounds=("parent",), unit="children of a batch", scope="one parent",
        amount=Count(least=1, most=INT32, why="less is taken as 1"), default="3",
        note="a larger batch is refused whole, not queued",
    ),
    Knob(
        key=KEYS[4], quantity="time", bounds=("child",), unit="seconds", scope="one child",
        amount=Seconds(whole=False, least=30, why="less is taken as 30, 0 as no limit"),
        note="the worker is left behind, not stopped; newer versions bound inactivity instead",
    ),
)  # fmt: skip


def _extra(draft: Draft) -> None:
    agents_lost(draft, "children share one delegation setting")


def _model(values: Values) -> tuple[ModuleSpec, ...]:
    turns, iterations, depth, children, seconds = (values.get(key) for key in KEYS)
    limits = tree(
        max_depth=depth,
        max_concurrent=children,
        timeout_s=seconds,
        concurrency="parent",
        on_timeout="detach",
        give_back=False,
    )
    return (*limits, *meter(calls=turns, whose="root"), *meter(calls=iterations, whose="child"))


TARGET = Target(
    name="hermes", title="hermes-agent", version="0.19.0", knobs=KNOBS,
    forms={"yaml": Yaml(file="config.yaml", keys=KEYS)}, model=_model, at_limit=AtLimit(then="wrap-up"), rest=_extra,
)  # fmt: skip

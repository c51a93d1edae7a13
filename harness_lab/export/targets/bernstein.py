"""Bernstein: keys of ``bernstein.yaml``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.export.forms.data import Yaml
from harness_lab.export.targets.amounts import INT32, Count, Dollars
from harness_lab.export.targets.base import Draft, Knob, Target, Values, agents_lost
from harness_lab.export.targets.modules import meter, tree

if TYPE_CHECKING:
    from harness_lab.policies import ModuleSpec

KEYS = ("budget", "max_cost_per_agent", "max_agents")
_ZERO = "0 is no limit there"

KNOBS = (
    Knob(
        key="budget", quantity="cost", bounds=("tree",), unit="USD", scope="one run (every task of a plan)",
        amount=Dollars(zero=_ZERO), note="checked when a task's cost is recorded, so what is in flight goes past it",
    ),
    Knob(
        key="max_cost_per_agent", quantity="cost", bounds=("child",), unit="USD", scope="one agent",
        amount=Dollars(zero=_ZERO),
    ),
    Knob(
        key="max_agents", quantity="children", bounds=("tree",), unit="agents at once", scope="one run",
        amount=Count(least=1, most=INT32), default="6", note="tasks beyond it wait in the queue",
    ),
)  # fmt: skip


def _extra(draft: Draft) -> None:
    agents_lost(draft, "roles are set in Bernstein's own files")


def _model(values: Values) -> tuple[ModuleSpec, ...]:
    run = meter(cost_usd=values.get("budget"))
    each = meter(cost_usd=values.get("max_cost_per_agent"), whose="child")
    return (*tree(max_concurrent=values.get("max_agents")), *run, *each)


TARGET = Target(
    name="bernstein", title="Bernstein", version="3.23.0", knobs=KNOBS,
    forms={"yaml": Yaml(file="bernstein.yaml", keys=KEYS)}, model=_model, rest=_extra,
)  # fmt: skip

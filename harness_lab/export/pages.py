"""What a target can be told, as tables for a person: the command `harness-lab targets`, and the pages in the docs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.export.targets import TARGETS
from harness_lab.export.values import SCOPES

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Knob, Target


def target_list() -> str:
    """Return the targets with their forms, a line each."""
    width = max(map(len, TARGETS))
    return "\n".join(f"{name:{width}}  {one.title} ({', '.join(one.forms)})" for name, one in TARGETS.items())


def knob_table(target: Target) -> str:
    """Return a target's knobs as a Markdown table: name, what it takes of ours, unit and scope, what to know."""
    rows = ["| setting | takes | unit | counted over | to know |", "| --- | --- | --- | --- | --- |"]
    rows += [_row(knob) for knob in target.knobs]
    return "\n".join(rows)


def _row(knob: Knob) -> str:
    ours = f"{knob.quantity}, {' or '.join(SCOPES[scope] for scope in knob.bounds)}"
    told = [knob.note, knob.default and f"left out: {knob.default}", knob.reported and f"**reported:** {knob.reported}"]
    cells = (f"`{knob.key}`", ours, knob.unit, knob.scope, "; ".join(text for text in told if text))
    return f"| {' | '.join(cells)} |"

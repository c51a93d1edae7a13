"""Where a conversation stands in its run tree, and what it runs on."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness_lab.agents.modes import AgentMode
    from harness_lab.agents.service import AgentRuntime
    from harness_lab.agents.tree import Tree
    from harness_lab.policies.protocol import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a conversation stands and what it runs on.

    Parameters
    ----------
    tree : Tree
        The run tree.
    service : AgentRuntime
        Client, tools, authorisation and events.
    path : Path
        Its name in the tree.
    run_id, parent_run_id : str or None
        Its run and its parent's; None: it has no parent.
    agent : str
        The subagent's name, or the mode's for a root.
    mode : AgentMode
        Its authority.
    provider, model, model_from : str
        What it calls, and who said so.
    """

    tree: Tree
    service: AgentRuntime
    path: Path
    run_id: str
    parent_run_id: str | None
    agent: str
    mode: AgentMode
    provider: str
    model: str
    model_from: str


def new_run_id() -> str:
    """Return a fresh run id."""
    return f"run_{secrets.token_hex(12)}"

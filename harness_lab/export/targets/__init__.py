"""One writer per target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.export.targets import (
    bernstein,
    claude_agent_sdk,
    claude_code,
    codex,
    crewai,
    env,
    hermes,
    langgraph,
    litellm,
    openai_agents,
    prism,
    pydantic_ai,
    tangle,
    tanstack,
    toml,
)

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Target

_WRITERS = (
    claude_code, codex, litellm, prism, pydantic_ai, openai_agents, claude_agent_sdk, tanstack, tangle, bernstein,
    hermes, langgraph, crewai, env, toml,
)  # fmt: skip

TARGETS: dict[str, Target] = {writer.TARGET.name: writer.TARGET for writer in _WRITERS}
"""Targets by name."""

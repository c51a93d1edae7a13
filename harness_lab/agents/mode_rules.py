"""What makes an entry of the mode config malformed: each rule one function, all of them asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.agents.subagents import SUBAGENT_KEYS, Subagent
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

MODE_KEYS = (
    "system_prompt",
    "tools",
    "skills",
    "max_steps",
    "requires_approval",
    "subagents",
    "provider_options",
    "model",
    "context",
)
"""What a mode may name."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One malformed entry.

    Parameters
    ----------
    mode : str or None
        The mode; None: the config as a whole.
    key : str
        The entry, such as ``max_steps`` or ``subagents.researcher``.
    text : str
        One line.
    """

    mode: str | None
    key: str
    text: str

    def __str__(self) -> str:
        return self.text


def problems_of(
    name: str, entry: object, modes: Mapping[str, Any], *, tools: frozenset[str] | None = None
) -> list[Problem]:
    """Return every problem of a mode, the ones upstream systems report first."""
    if not isinstance(entry, Mapping):
        return [Problem(name, "", f"Harness mode [{name}] is malformed: it is not a mapping.")]
    found = [
        *_scalars(name, entry),
        *_lists(name, entry),
        *_subagents(name, entry, modes),
        *_options(name, entry),
    ]
    found += [_malformed(name, str(key), f"unknown entry [{key}]") for key in entry if key not in MODE_KEYS]
    if not found and tools is not None:
        found += _unknown_tools(name, entry, tools)
    return found


def _malformed(name: str, key: str, detail: str) -> Problem:
    return Problem(name, key, f"Harness mode [{name}] is malformed: {detail}.")


def _scalars(name: str, entry: Mapping[str, Any]) -> Iterator[Problem]:
    detail = "system_prompt must be a string and max_steps a positive integer"
    steps = entry.get("max_steps", 1)
    if not isinstance(entry.get("system_prompt", ""), str):
        yield _malformed(name, "system_prompt", detail)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        yield _malformed(name, "max_steps", detail)
    for key in ("model", "context"):
        named = entry.get(key)
        if named is not None and not (isinstance(named, str) and named):
            yield _malformed(name, key, f"{key} must be a name")


def _lists(name: str, entry: Mapping[str, Any]) -> Iterator[Problem]:
    for key in ("tools", "skills", "requires_approval"):
        value = entry.get(key, [])
        if not isinstance(value, list | tuple):
            text = f"Harness mode [{name}] declares a malformed {key} list."
            yield Problem(name, key, text)
        elif not all(isinstance(item, str) and item for item in value):
            yield _malformed(name, key, f"{key} must be a list of names")


def _subagents(name: str, entry: Mapping[str, Any], modes: Mapping[str, Any]) -> Iterator[Problem]:
    declared = entry.get("subagents")
    if declared is None or declared == []:
        return
    if not isinstance(declared, Mapping):
        yield _malformed(name, "subagents", "its subagent list is not a mapping")
        return
    for sub, config in declared.items():
        if not isinstance(config, Mapping):
            yield _malformed(name, f"subagents.{sub}", f"subagent [{sub}] is not an object")
            continue
        yield from _subagent(name, sub, config, modes)


def _subagent(name: str, sub: str, config: Mapping[str, Any], modes: Mapping[str, Any]) -> Iterator[Problem]:
    key = f"subagents.{sub}"
    try:
        wanted = Subagent.from_config(sub, config).mode
    except InputError as error:
        yield _malformed(name, key, f"subagent [{sub}]: {error}")
        return
    if wanted not in modes:
        yield _malformed(name, key, f"it declares subagent [{sub}], whose mode [{wanted}] is not configured")
    for extra in config:
        if extra not in SUBAGENT_KEYS:
            yield _malformed(name, key, f"subagent [{sub}] has an unknown entry [{extra}]")


def _options(name: str, entry: Mapping[str, Any]) -> Iterator[Problem]:
    options = entry.get("provider_options", {})
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        yield _malformed(name, "provider_options", "provider_options must be a map of option names to values")


def _unknown_tools(name: str, entry: Mapping[str, Any], tools: frozenset[str]) -> Iterator[Problem]:
    there = tools | {"*"} | set(entry.get("subagents") or {})
    for tool in entry.get("tools", ()):
        if tool not in there:
            yield _malformed(name, "tools", f"tool [{tool}] is not registered")
    offered = set(entry.get("tools", ())) | set(entry.get("subagents") or {})
    for tool in entry.get("requires_approval", ()):
        if tool != "*" and "*" not in offered and tool not in offered:
            yield _malformed(name, "requires_approval", f"it gates tool [{tool}], which it never offers")

"""Modes: what an agent is told, which tools it has, how far it may go, whom it may start."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_lab.agents.errors import AgentError
from harness_lab.agents.mode_rules import MODE_KEYS, Problem, problems_above, problems_of, unreachable
from harness_lab.agents.subagents import Subagent
from harness_lab.budget.run import DEFAULT_STEPS
from harness_lab.errors import InputError, ReadError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness_lab.agents.offers import Offer

DEFAULT_MODE = "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMode:
    """One mode, resolved.

    Parameters
    ----------
    name, system_prompt : str
        Its name, and what the model is told first.
    tools, skills : tuple of str
        Tool names (``*`` is every tool there is) and skills.
    max_steps : int
        Model calls of a run without another budget.
    requires_approval : tuple of str
        Tools that a person has to approve (``*``: each).
    subagents : mapping of str to Subagent
        Whom it may start, by tool name. Empty: it cannot spawn.
    provider_options : mapping
        Handed to the client unchanged.
    model : str or None
        The model it runs on; None: the session's, or its parent's.
    context : str or None
        Name of its starting context: a version, or a digest of what is sent before the task. Floors of another context
        are stale for it, and it stands in the settlement rows. None: not named.
    """

    name: str
    system_prompt: str = ""
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    max_steps: int = DEFAULT_STEPS
    requires_approval: tuple[str, ...] = ()
    subagents: Mapping[str, Subagent] = field(default_factory=dict)
    provider_options: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    context: str | None = None

    def needs_approval(self, tool: str) -> bool:
        """Whether a person has to approve calls of a tool."""
        return "*" in self.requires_approval or tool in self.requires_approval

    def declares(self, subagent: Subagent) -> bool:
        """Whether it may start a subagent: declared by this name, with this mode's authority."""
        own = self.subagents.get(subagent.name)
        return own is not None and own.mode == subagent.mode


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeReport:
    """What :meth:`ModeRegistry.check` found.

    Parameters
    ----------
    problems : tuple of Problem
        Every malformed entry, in the order of the config.
    modes : tuple of str
        All configured modes.
    """

    problems: tuple[Problem, ...]
    modes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def failing(self) -> tuple[str, ...]:
        """Names of modes with a problem."""
        return tuple(dict.fromkeys(p.mode for p in self.problems if p.mode is not None))

    @property
    def passing(self) -> tuple[str, ...]:
        """Names of modes without one."""
        failing = set(self.failing)
        return tuple(name for name in self.modes if name not in failing)

    def summary(self) -> str:
        """Return one line for each problem."""
        if self.ok:
            return f"{len(self.modes)} mode(s), nothing malformed"
        return "\n".join(str(problem) for problem in self.problems)


class ModeRegistry:
    """The configured modes.

    Parameters
    ----------
    config : mapping
        ``{"default": name, "modes": {name: {...}}}``; a mode may name system_prompt, tools, skills, max_steps,
        requires_approval, subagents, provider_options, model and context. Read when asked for, so that one malformed
        mode does not take the others down; :meth:`check` looks at all.

    Raises
    ------
    InputError
        If the config is no mapping.

    Examples
    --------
    >>> modes = ModeRegistry({"modes": {"chat": {"tools": ["search"], "max_steps": 4}}})
    >>> modes.resolve().max_steps
    4
    >>> ModeRegistry({"modes": {"chat": {"max_steps": 0, "tools": "search"}}}).check().ok
    False
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        if not isinstance(config, Mapping):
            raise InputError("modes", expected="a mapping with default and modes", got=config)
        self._config = config

    @classmethod
    def from_toml(cls, text: str) -> ModeRegistry:
        """Read a config from TOML text.

        Raises
        ------
        ReadError
            If it is no TOML.
        """
        try:
            return cls(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise ReadError("modes", expected="TOML", got=str(error)) from error

    @classmethod
    def from_json(cls, text: str) -> ModeRegistry:
        """Read a config from JSON text.

        Raises
        ------
        ReadError
            If it is no JSON object, or one in it has a name twice.
        """
        try:
            data = json.loads(text, object_pairs_hook=_no_doubles)
        except json.JSONDecodeError as error:
            raise ReadError("modes", expected="JSON", got=str(error)) from error
        if not isinstance(data, dict):
            raise ReadError("modes", expected="a JSON object", got=data)
        return cls(data)

    @classmethod
    def from_file(cls, path: str | Path) -> ModeRegistry:
        """Read a config from a ``.toml`` or ``.json`` file.

        Raises
        ------
        ReadError
            If it is neither, or cannot be read as what it is named.
        """
        file = Path(path)
        readers = {".toml": cls.from_toml, ".json": cls.from_json}
        if file.suffix not in readers:
            raise ReadError(file.name, expected="a .toml or .json file", got=file.suffix)
        return readers[file.suffix](file.read_text(encoding="utf-8"))

    @property
    def default(self) -> str:
        """The mode of a session that names none."""
        name = self._config.get("default")
        return name if isinstance(name, str) and name else DEFAULT_MODE

    def names(self) -> list[str]:
        """Return all configured names."""
        return list(self._modes())

    def resolve(self, name: str | None = None) -> AgentMode:
        """Return a mode; the default one if None.

        Raises
        ------
        AgentError
            ``mode_not_configured`` or ``mode_malformed``, with the first problem of this mode.
        """
        wanted, modes = name if name is not None else self.default, self._config.get("modes")
        if not (modes is None or modes == [] or isinstance(modes, Mapping)):
            first = next(problems_above(self._config, wanted))
            raise AgentError("mode_malformed", first.text, detail=str(first))
        entry = self._modes().get(wanted)
        if entry is None:
            raise AgentError("mode_not_configured", f"Harness mode [{wanted}] is not configured.")
        for problem in problems_of(wanted, entry, self._modes()):
            raise AgentError("mode_malformed", problem.text, detail=str(problem))
        return _mode(wanted, entry)

    def all(self) -> dict[str, AgentMode]:
        """Return every mode; the first malformed one raises."""
        return {name: self.resolve(name) for name in self.names()}

    def check(self, *, tools: Iterable[str] | None = None, offer: Offer = "automatic") -> ModeReport:
        """Look at everything and list every malformed entry.

        Parameters
        ----------
        tools : iterable of str, optional
            Names of registered tools; a mode that lists a tool which is neither among them nor one of its subagents is
            then a problem too, and so is an approval gate on a tool that its mode never offers.
        offer : {"automatic", "by-hand"}
            How the runtime offers subagents. Automatically: a subagent that is named like a tool of its mode is a
            problem, since that tool could never be called; with `tools`, only where there is such a tool.

        Raises
        ------
        InputError
            If `tools` is one text instead of several, or `offer` is none of those named.
        """
        if isinstance(tools, str):
            raise InputError("tools", expected="names of registered tools", got=tools)
        if offer not in ("automatic", "by-hand"):
            raise InputError("offer", expected="automatic or by-hand", got=offer)
        modes, known = self._modes(), None if tools is None else frozenset(map(str, tools))
        found = list(problems_above(self._config, self.default))
        for name, entry in modes.items():
            found += problems_of(name, entry, modes)
            found += unreachable(name, entry, known, automatic=offer == "automatic")
        return ModeReport(problems=tuple(found), modes=tuple(modes))

    def _modes(self) -> Mapping[Any, Any]:
        modes = self._config.get("modes")
        return modes if isinstance(modes, Mapping) else {}


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Read a JSON object; of a name that stands there twice the second would win unseen."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ReadError("modes", expected="each name once in one object", got=name)
    return dict(pairs)


def _mode(name: str, entry: Mapping[str, Any]) -> AgentMode:
    values = {key: entry[key] for key in MODE_KEYS if key in entry}
    for key in ("tools", "skills", "requires_approval"):
        if key in values:
            values[key] = tuple(values[key])
    declared = values.get("subagents") or {}
    values["subagents"] = {sub: Subagent.from_config(sub, config or {}) for sub, config in declared.items()}
    return AgentMode(name=name, **values)

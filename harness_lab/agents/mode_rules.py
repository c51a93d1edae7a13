"""What makes an entry of the mode config malformed: each rule one function, all of them asked.

The sentences (:attr:`Problem.text`) are those of prism-harness where it has one; place, expectation and what came are
ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness_lab.agents.subagents import SUBAGENT_KEYS, is_name, mistakes_in
from harness_lab.errors import InputError
from harness_lab.usage import MAX_COUNT

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
_NAME = "a name: printable text without blanks at its ends"
_OTHER = "a name that none of the mode's tools has, since subagents are offered by themselves"
_TOOL = "a tool's name: printable text without blanks"


@dataclass(frozen=True, slots=True)
class Problem:
    """One malformed entry; as text one line: its place, what was expected, what came.

    Parameters
    ----------
    mode : object
        The mode's name; None: the config as a whole.
    key : str
        The entry, such as ``max_steps``, ``tools[0]`` or ``subagents.researcher.mode``; empty: the mode itself.
    text : str
        What is wrong, as a sentence.
    expected : str
        What would have been accepted.
    got : object
        What came.
    """

    mode: Any
    key: str
    text: str
    expected: str
    got: object = field(compare=False)

    @property
    def place(self) -> str:
        """Where it stands in the config, such as ``modes.lead.max_steps``."""
        mode = () if self.mode is None else ("modes", self.mode)
        return joined(*mode, rest=self.key)

    def __str__(self) -> str:
        return str(InputError(self.place, expected=self.expected, got=self.got))


def joined(*parts: object, rest: str = "") -> str:
    """Return a place in the config; what is no plain name stands in brackets."""
    found = "".join(f".{part}" if is_name(part, blanks=False) else f"[{part!r}]" for part in parts)
    return (found + (f".{rest}" if rest and rest[0] != "[" else rest)).removeprefix(".")


def problems_of(name: Any, entry: object, modes: Mapping[Any, Any]) -> list[Problem]:
    """Return every problem of a mode, the ones upstream systems report first."""
    if not isinstance(entry, Mapping):
        text = f"Harness mode [{name}] is malformed: it is not a mapping."
        return [*_unnamed(name), Problem(name, "", text, "a mapping of settings", entry)]
    return [
        *_unnamed(name),
        *_scalars(name, entry),
        *_lists(name, entry),
        *_subagents(name, entry, modes),
        *_options(name, entry),
        *(
            _malformed(name, joined(key), f"unknown entry [{key}]", f"one of {', '.join(MODE_KEYS)}", key)
            for key in entry
            if key not in MODE_KEYS
        ),
    ]


def unreachable(name: Any, entry: object, tools: frozenset[str] | None, *, automatic: bool) -> Iterator[Problem]:
    """Yield what a mode names and cannot get, and what two of its entries claim.

    Parameters
    ----------
    name, entry : object
        The mode.
    tools : frozenset of str or None
        The registered tools; None: not known, so none is missing.
    automatic : bool
        Whether subagents are offered by themselves, so that a tool of the same name could never be called.
    """
    if not isinstance(entry, Mapping):
        return
    listed, subagents = _named(entry, "tools"), entry.get("subagents")
    children = set(subagents) if isinstance(subagents, Mapping) else set()
    if tools is not None:
        for i, tool in listed:
            if tool != "*" and tool not in tools and tool not in children:
                expected = f"a registered tool or a subagent of the mode ({', '.join(sorted(tools | children))})"
                yield _malformed(name, f"tools[{i}]", f"tool [{tool}] is not registered", expected, tool)
        offered = {tool for _, tool in listed} | children
        for i, tool in _named(entry, "requires_approval"):
            if tool != "*" and "*" not in offered and tool not in offered:
                text = f"it gates tool [{tool}], which it never offers"
                yield _malformed(name, f"requires_approval[{i}]", text, "a tool that the mode offers, or *", tool)
    taken: Set[str] = {tool for _, tool in listed}
    if tools is not None:  # who lists a subagent that no tool is named like has only said twice what is offered
        taken = tools & (tools if "*" in taken else taken)
    for child in sorted(children & taken) if automatic else ():
        text = f"subagent [{child}] is named like a tool of the mode, which could never be called"
        yield _malformed(name, joined("subagents", child), text, _OTHER, child)


def _named(entry: Mapping[Any, Any], key: str) -> list[tuple[int, str]]:
    """Return the names in a list, with their places; what is no list names nothing."""
    found = entry.get(key, ())
    return [(i, item) for i, item in enumerate(found) if is_name(item)] if isinstance(found, list | tuple) else []


def _malformed(name: Any, key: str, detail: str, expected: str, got: object) -> Problem:
    return Problem(name, key, f"Harness mode [{name}] is malformed: {detail}.", expected, got)


def _unnamed(name: Any) -> Iterator[Problem]:
    if not is_name(name):
        yield _malformed(name, "", "its name is none", _NAME, name)


def _scalars(name: Any, entry: Mapping[Any, Any]) -> Iterator[Problem]:
    detail = "system_prompt must be a string and max_steps a positive integer"
    prompt, steps = entry.get("system_prompt", ""), entry.get("max_steps", 1)
    if not isinstance(prompt, str):
        yield _malformed(name, "system_prompt", detail, "text", prompt)
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_COUNT:
        yield _malformed(name, "max_steps", detail, "a whole number of at least 1, written as one", steps)
    for key in ("model", "context"):
        named = entry.get(key)
        if named is not None and not is_name(named):
            yield _malformed(name, key, f"{key} must be a name", _NAME, named)


def _lists(name: Any, entry: Mapping[Any, Any]) -> Iterator[Problem]:
    for key in ("tools", "skills", "requires_approval"):
        value = entry.get(key, [])
        if not isinstance(value, list | tuple):
            text = f"Harness mode [{name}] declares a malformed {key} list."
            yield Problem(name, key, text, "a list of names", value)
            continue
        skills = key == "skills"
        for i, item in enumerate(value):
            if not is_name(item, blanks=skills):
                expected = _NAME if skills else _TOOL
                yield _malformed(name, f"{key}[{i}]", f"{key} must be a list of names", expected, item)


def _subagents(name: Any, entry: Mapping[Any, Any], modes: Mapping[Any, Any]) -> Iterator[Problem]:
    declared = entry.get("subagents")
    if declared is None or declared == []:
        return
    if not isinstance(declared, Mapping):
        text = "its subagent list is not a mapping"
        yield _malformed(name, "subagents", text, "a mapping of names to subagents", declared)
        return
    for sub, config in declared.items():
        yield from _subagent(name, sub, config, modes)


def _subagent(name: Any, sub: Any, config: object, modes: Mapping[Any, Any]) -> Iterator[Problem]:
    key = joined("subagents", sub)
    if not is_name(sub, blanks=False):
        yield _malformed(name, key, f"subagent [{sub}] has no name that a model could call", _TOOL, sub)
    if not isinstance(config, Mapping):
        yield _malformed(name, key, f"subagent [{sub}] is not an object", "a mapping of settings", config)
        return
    for below, mistake in mistakes_in(config):
        text = f"subagent [{sub}]: {mistake}"
        yield _malformed(name, f"{key}.{below}", text, mistake.expected, mistake.got)
    wanted = config.get("mode") or sub
    if isinstance(wanted, str) and wanted not in modes:
        text = f"it declares subagent [{sub}], whose mode [{wanted}] is not configured"
        yield _malformed(name, f"{key}.mode", text, _one_of(modes, "a configured mode"), wanted)
    for extra in config:
        if extra not in SUBAGENT_KEYS:
            text = f"subagent [{sub}] has an unknown entry [{extra}]"
            yield _malformed(name, joined("subagents", sub, extra), text, f"one of {', '.join(SUBAGENT_KEYS)}", extra)


def _one_of(modes: Mapping[Any, Any], what: str) -> str:
    return f"{what} ({', '.join(map(str, modes))})"


def _options(name: Any, entry: Mapping[Any, Any]) -> Iterator[Problem]:
    options = entry.get("provider_options", {})
    text, expected = "provider_options must be a map of option names to values", "a mapping of option names to values"
    if not isinstance(options, Mapping):
        yield _malformed(name, "provider_options", text, expected, options)
        return
    for key in options:
        if not isinstance(key, str):
            yield _malformed(name, f"provider_options{joined(key)}", text, "an option's name as text", key)


def problems_above(config: Mapping[Any, Any], default: str) -> Iterator[Problem]:
    """Yield what is wrong with the config as a whole, its modes apart; `default` is the mode in force."""
    modes, named = config.get("modes"), config.get("default")
    if isinstance(modes, Mapping) or modes is None or modes == []:
        if not modes:
            yield Problem(None, "modes", "Harness has no modes configured.", "at least one mode", modes)
    else:
        text = f"Harness modes are malformed: expected a mapping of names to modes, got {type(modes).__name__}."
        yield Problem(None, "modes", text, "a mapping of names to modes", modes)
    there = modes if isinstance(modes, Mapping) else {}
    if named is not None and not (isinstance(named, str) and named):
        yield Problem(None, "default", "Harness default is malformed.", "the name of a configured mode", named)
    elif there and default not in there:
        expected = _one_of(there, "the name of a configured mode")
        hint = "" if named is not None else f", or a mode [{default}] where none is named"
        yield Problem(None, "default", f"Harness mode [{default}] is not configured.", expected + hint, named)
    for key in config:
        if key not in ("default", "modes"):
            text = f"Harness config is malformed: unknown entry [{key}]."
            yield Problem(None, joined(key), text, "default or modes", key)

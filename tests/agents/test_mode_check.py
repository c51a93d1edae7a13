"""Every mistake in a mode config is one line of its check: its place, what was expected, what came."""

from __future__ import annotations

import copy
import datetime
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lab.agents import AgentError, ModeRegistry
from harness_lab.errors import InputError, ReadError

if TYPE_CHECKING:
    from collections.abc import Callable

TOOLS = ["search", "read", "delete"]
VALID: dict[str, Any] = {
    "default": "lead",
    "modes": {
        "lead": {
            "system_prompt": "Plan.",
            "tools": ["search", "read"],
            "skills": ["contract law"],
            "max_steps": 6,
            "requires_approval": ["read"],
            "provider_options": {"effort": "high"},
            "model": "large",
            "context": "v3",
            "subagents": {
                "verify": {"mode": "checker", "max_steps": 2, "max_cost_usd": 0.5, "ask": {"input": 900}},
                "checker": {},
            },
        },
        "checker": {"tools": ["*"], "requires_approval": ["*"]},
    },
}
NAME = "a name: printable text without blanks at its ends"
TOOL = "a tool's name: printable text without blanks"
Path = tuple[str, ...]
MODE_KEYS = "system_prompt, tools, skills, max_steps, requires_approval, subagents, provider_options, model, context"
SUB_KEYS = "description, mode, max_steps, max_cost_usd, max_seconds, scope, ask"
LEAD, VERIFY = ("modes", "lead"), ("modes", "lead", "subagents", "verify")
MISTAKES: list[tuple[Path, Any, str]] = [
    # where, what is planted there, its line
    (("default",), "ghost", "default: expected the name of a configured mode (lead, checker), got 'ghost'"),
    (("limits",), 5, "limits: expected default or modes, got 'limits'"),
    (("m\node",), {}, "['m\\node']: expected default or modes, got 'm\\node'"),
    (("modes", "five"), 5, "modes.five: expected a mapping of settings, got 5"),
    (("modes", ""), {}, f"modes['']: expected {NAME}, got ''"),
    (("modes", " lead"), {}, f"modes[' lead']: expected {NAME}, got ' lead'"),
    (("modes", "a\nb"), {}, f"modes['a\\nb']: expected {NAME}, got 'a\\nb'"),
    ((*LEAD, "system_prompt"), 7, "modes.lead.system_prompt: expected text, got 7"),
    ((*LEAD, "max_steps"), 2.5, "modes.lead.max_steps: expected a whole number of at least 1, written as one, got 2.5"),
    ((*LEAD, "model"), "", f"modes.lead.model: expected {NAME}, got ''"),
    ((*LEAD, "context"), ["v3"], f"modes.lead.context: expected {NAME}, got ['v3']"),
    ((*LEAD, "tools"), ["search", "read", ""], f"modes.lead.tools[2]: expected {TOOL}, got ''"),
    ((*LEAD, "skills"), "law", "modes.lead.skills: expected a list of names, got 'law'"),
    ((*LEAD, "requires_approval"), ["read", 3], f"modes.lead.requires_approval[1]: expected {TOOL}, got 3"),
    ((*LEAD, "provider_options"), [1],
     "modes.lead.provider_options: expected a mapping of option names to values, got [1]"),
    ((*LEAD, "max_step"), 3, f"modes.lead.max_step: expected one of {MODE_KEYS}, got 'max_step'"),
    (("modes", "checker", "subagents"), ["x"],
     "modes.checker.subagents: expected a mapping of names to subagents, got ['x']"),
    (("modes", "checker", "tools"), ["*", "gone"],
     "modes.checker.tools[1]: expected a registered tool or a subagent of the mode (delete, read, search), got 'gone'"),
    ((*LEAD, "subagents", "list"), [], "modes.lead.subagents.list: expected a mapping of settings, got []"),
    ((*LEAD, "subagents", "a b"), {"mode": "checker"}, f"modes.lead.subagents['a b']: expected {TOOL}, got 'a b'"),
    ((*LEAD, "subagents", ""), {"mode": "checker"}, f"modes.lead.subagents['']: expected {TOOL}, got ''"),
    ((*LEAD, "subagents", "search"), {"mode": "checker"},
     "modes.lead.subagents.search: expected a name that none of the mode's tools has, since subagents are "
     "offered by themselves, got 'search'"),
    ((*LEAD, "subagents", "ghost"), {},
     "modes.lead.subagents.ghost.mode: expected a configured mode (MODES), got 'ghost'"),
    ((*VERIFY, "mode"), 5, "modes.lead.subagents.verify.mode: expected text or nothing, got 5"),
    ((*VERIFY, "description"), ["x"], "modes.lead.subagents.verify.description: expected text or nothing, got ['x']"),
    ((*VERIFY, "scope"), 1, "modes.lead.subagents.verify.scope: expected text or nothing, got 1"),
    ((*VERIFY, "max_steps"), -1,
     "modes.lead.subagents.verify.max_steps: expected a whole number from 0 to 4,611,686,018,427,387,904, got -1"),
    ((*VERIFY, "max_seconds"), -2, "modes.lead.subagents.verify.max_seconds: expected seconds >= 0 or None, got -2"),
    ((*VERIFY, "ask", "input"), "many",
     "modes.lead.subagents.verify.ask.input: expected a whole number from 0 to 4,611,686,018,427,387,904, got 'many'"),
    ((*VERIFY, "ask", "inptu"), 5,
     "modes.lead.subagents.verify.ask: expected tokens by some of input, tokens, fresh, got 'inptu'"),
    ((*VERIFY, "steps"), 5, f"modes.lead.subagents.verify.steps: expected one of {SUB_KEYS}, got 'steps'"),
]  # fmt: skip


def planted(mistakes: list[tuple[Path, Any, str]]) -> dict[str, Any]:
    """Return the valid config with mistakes in it."""
    config = copy.deepcopy(VALID)
    for path, value, _ in mistakes:
        at = config
        for part in path[:-1]:
            at = at[part]
        at[path[-1]] = copy.deepcopy(value)
    return config


def lines_of(registry: ModeRegistry) -> list[str]:
    """Return the lines of a check; the modes that are there stand for themselves."""
    report = registry.check(tools=TOOLS)
    return sorted(str(problem) for problem in report.problems)


def expected_lines(mistakes: list[tuple[Path, Any, str]]) -> list[str]:
    modes = ", ".join(planted(mistakes)["modes"])
    return sorted(line.replace("MODES", modes).replace("(lead, checker)", f"({modes})") for *_, line in mistakes)


def test_a_valid_config_has_nothing_to_list() -> None:
    assert ModeRegistry(VALID).check(tools=TOOLS).summary() == "2 mode(s), nothing malformed"


@pytest.mark.parametrize(
    "mistake", MISTAKES, ids=lambda mistake: ".".join(mistake[0]).encode("unicode_escape").decode()
)
def test_each_mistake_is_its_own_line(mistake: tuple[Path, Any, str]) -> None:
    assert lines_of(ModeRegistry(planted([mistake]))) == expected_lines([mistake])


def test_all_mistakes_together_are_all_listed() -> None:
    assert lines_of(ModeRegistry(planted(MISTAKES))) == expected_lines(MISTAKES)


@given(st.sets(st.sampled_from(range(len(MISTAKES)))))
def test_any_mistakes_are_all_listed_and_none_else_from_a_mapping_and_json_alike(chosen: set[int]) -> None:
    mistakes = [MISTAKES[i] for i in sorted(chosen)]
    config, expected = planted(mistakes), expected_lines(mistakes)
    assert lines_of(ModeRegistry(config)) == expected
    assert lines_of(ModeRegistry.from_json(json.dumps(config))) == expected
    assert lines_of(ModeRegistry.from_toml(toml_of(config))) == expected


def toml_of(config: dict[str, Any]) -> str:
    """Write a config as TOML: every mapping inline, every name quoted."""
    return "\n".join(f"{json.dumps(key)} = {_toml(value)}" for key, value in config.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(below)}' for key, below in value.items())} }}"
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else json.dumps(value)


IN_A_MAPPING: list[tuple[Callable[[dict[Any, Any]], None], str]] = [
    (lambda c: c.update({7: 1}), "[7]: expected default or modes, got 7"),
    (lambda c: c["modes"].update({5: {}}), f"modes[5]: expected {NAME}, got 5"),
    (lambda c: c["modes"]["lead"].update({None: 1}), f"modes.lead[None]: expected one of {MODE_KEYS}, got None"),
    (lambda c: c["modes"]["lead"]["provider_options"].update({3: 1}),
     "modes.lead.provider_options[3]: expected an option's name as text, got 3"),
    (lambda c: c["modes"]["lead"]["subagents"].update({8: {"mode": "checker"}}),
     f"modes.lead.subagents[8]: expected {TOOL}, got 8"),
    (lambda c: c["modes"]["lead"].update(model=datetime.date(2026, 1, 1)),
     f"modes.lead.model: expected {NAME}, got datetime.date(2026, 1, 1)"),
    (lambda c: c["modes"]["lead"]["subagents"]["verify"].update(max_cost_usd=float("nan")),
     "modes.lead.subagents.verify.max_cost_usd: expected a finite number of dollars from 0 to 9,000,000,000, got nan"),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "line"), IN_A_MAPPING)
def test_what_only_a_mapping_can_hold_is_listed_too(plant: Callable[[dict[Any, Any]], None], line: str) -> None:
    config = copy.deepcopy(VALID)
    plant(config)
    assert lines_of(ModeRegistry(config)) == [line]


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({}, "modes: expected at least one mode, got None"),
        ({"modes": {}}, "modes: expected at least one mode, got {}"),
        ({"modes": {"a": {}}}, "default: expected the name of a configured mode (a), or a mode [chat] where none is "
         "named, got None"),
        ({"modes": {"chat": {}}, "default": 5}, "default: expected the name of a configured mode, got 5"),
        ({"modes": {"chat": {}}, "default": ""}, "default: expected the name of a configured mode, got ''"),
    ],
)  # fmt: skip
def test_a_config_as_a_whole_is_looked_at_too(config: dict[str, Any], line: str) -> None:
    assert ModeRegistry(config).check().summary() == line


def test_where_subagents_are_offered_by_hand_they_are_listed_as_tools() -> None:
    modes = {"a": {"tools": ["verify"], "subagents": {"verify": {"mode": "a"}}}}
    registry = ModeRegistry({"default": "a", "modes": modes})
    assert registry.check(tools=["verify"], offer="by-hand").ok
    assert not registry.check(tools=["verify"]).ok
    assert not registry.check().ok
    assert registry.check(tools=["search"]).ok  # listed twice, and no tool hides behind it


def test_a_tool_that_a_star_lets_in_hides_behind_no_subagent() -> None:
    modes = {"a": {"tools": ["*"], "subagents": {"read": {"mode": "a"}}}}
    problems = ModeRegistry({"default": "a", "modes": modes}).check(tools=["read"]).problems
    assert [problem.place for problem in problems] == ["modes.a.subagents.read"]


def test_the_error_of_a_mode_says_where_what_was_expected_and_what_came() -> None:
    with pytest.raises(AgentError) as error:
        ModeRegistry({"modes": {"chat": {"max_steps": 2.5}}}).resolve()
    line = "modes.chat.max_steps: expected a whole number of at least 1, written as one, got 2.5"
    assert (error.value.code, error.value.detail) == ("mode_malformed", line)
    assert str(error.value).endswith(line)


def test_a_name_that_stands_twice_in_one_json_object_is_refused() -> None:
    with pytest.raises(ReadError, match=r"^modes: expected each name once in one object, got 'a'$"):
        ModeRegistry.from_json('{"modes": {"a": {"requires_approval": ["*"]}, "a": {}}}')


def test_tools_that_are_one_text_are_not_taken_for_many() -> None:
    with pytest.raises(InputError, match=r"^tools: expected names of registered tools, got 'search'$"):
        ModeRegistry(VALID).check(tools="search")

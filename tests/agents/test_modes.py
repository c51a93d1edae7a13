"""Mode configs: what they may say, and how every mistake in one is found at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_lab.agents import AgentError, ModeRegistry, Participant, Session, Sessions, Subagent
from harness_lab.errors import InputError, ReadError

CONFIG: dict[str, Any] = {
    "default": "lead",
    "modes": {
        "lead": {
            "system_prompt": "Plan.",
            "tools": ["search"],
            "max_steps": 6,
            "subagents": {"verify": {"mode": "checker", "max_steps": 2, "max_cost_usd": 0.5}},
        },
        "checker": {"tools": ["read"], "requires_approval": ["*"], "model": "small", "skills": ["law"]},
    },
}
TOML = """
default = "lead"
[modes.lead]
system_prompt = "Plan."
tools = ["search"]
max_steps = 6
subagents.verify = { mode = "checker", max_steps = 2, max_cost_usd = 0.5 }
[modes.checker]
tools = ["read"]
requires_approval = ["*"]
model = "small"
skills = ["law"]
"""


def test_a_mapping_toml_and_json_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "modes.toml"
    file.write_text(TOML, encoding="utf-8")
    expected = ModeRegistry(CONFIG).all()
    assert ModeRegistry.from_toml(TOML).all() == expected
    assert ModeRegistry.from_json(json.dumps(CONFIG)).all() == expected
    assert ModeRegistry.from_file(file).all() == expected


def test_a_config_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"^modes: expected TOML, got"):
        ModeRegistry.from_toml("modes = [")
    with pytest.raises(ReadError, match=r"^modes: expected a JSON object, got \[\]"):
        ModeRegistry.from_json("[]")
    with pytest.raises(ReadError, match=r"expected a \.toml or \.json file, got '\.yaml'"):
        ModeRegistry.from_file(tmp_path / "modes.yaml")


def test_one_check_lists_every_malformed_entry() -> None:
    modes = {
        "a": {"max_steps": 0, "tools": "search", "model": 7},
        "b": {"subagents": {"x": {"mode": "ghost", "max_steps": -1}, "y": [], "z": {"mode": "ghost"}}},
        "c": {"requires_approval": "x", "provider_options": [1], "max_step": 3},
        "d": 5,
        "fine": {},
    }
    report = ModeRegistry({"default": "nobody", "modes": modes}).check()
    found = [(p.mode, p.key) for p in report.problems]
    assert found == [
        (None, "default"),
        *(("a", key) for key in ("max_steps", "model", "tools")),
        *(("b", f"subagents.{key}") for key in ("x.max_steps", "x.mode", "y", "z.mode")),
        *(("c", key) for key in ("requires_approval", "provider_options", "max_step")),
        ("d", ""),
    ]
    assert report.passing == ("fine",)
    assert len(report.summary().splitlines()) == 12


def test_a_check_with_the_registered_tools_finds_what_is_not_there_and_gates_that_gate_nothing() -> None:
    modes = {"a": {"tools": ["search", "gone"], "requires_approval": ["delete"]}, "b": {"tools": ["*"]}}
    report = ModeRegistry({"default": "a", "modes": modes}).check(tools=["search"])
    assert [str(p) for p in report.problems] == [
        "modes.a.tools[1]: expected a registered tool or a subagent of the mode (search), got 'gone'",
        "modes.a.requires_approval[0]: expected a tool that the mode offers, or *, got 'delete'",
    ]


def test_a_malformed_mode_does_not_take_the_others_down() -> None:
    modes = ModeRegistry({"modes": {"good": {}, "bad": {"max_steps": True}}})
    assert modes.resolve("good").max_steps == 8
    with pytest.raises(AgentError, match="max_steps a positive integer") as error:
        modes.resolve("bad")
    assert error.value.code == "mode_malformed"


def test_a_subagent_whose_mode_does_not_exist_is_named() -> None:
    modes = ModeRegistry({"modes": {"lead": {"subagents": {"verify": {"mode": "checker"}}}}})
    with pytest.raises(AgentError, match=r"declares subagent \[verify\], whose mode \[checker\] is not configured"):
        modes.resolve("lead")


def test_an_approval_list_with_a_star_gates_every_tool() -> None:
    assert ModeRegistry(CONFIG).resolve("checker").needs_approval("anything")


@pytest.mark.parametrize("config", [[], ["chat"], None, 5, "chat"])
def test_a_config_that_is_no_mapping_is_one_line(config: Any) -> None:
    with pytest.raises(InputError, match=r"^modes: expected a mapping with default and modes, got "):
        ModeRegistry(config)


def test_modes_that_are_a_list_are_malformed_and_not_missing() -> None:
    modes = ModeRegistry({"modes": ["chat"]})
    assert modes.check().summary() == "modes: expected a mapping of names to modes, got ['chat']"
    with pytest.raises(AgentError, match="Harness modes are malformed") as error:
        modes.resolve("chat")
    assert error.value.code == "mode_malformed"


def test_a_subagent_whose_mode_is_a_number_is_one_line() -> None:
    with pytest.raises(InputError, match=r"^mode of subagent \[r\]: expected text or nothing, got 5$"):
        Subagent.from_config("r", {"mode": 5})
    report = ModeRegistry({"default": "m", "modes": {"m": {"subagents": {"r": {"mode": 5}}}}}).check()
    assert report.summary() == "modes.m.subagents.r.mode: expected text or nothing, got 5"


@pytest.mark.parametrize(("kind", "whose"), [(None, 1), ("", 1), ("User", None), ("User", True), ("User", 1.5)])
def test_a_participant_without_a_kind_or_an_id_is_one_line(kind: Any, whose: Any) -> None:
    with pytest.raises(InputError, match=r"^participant's (type|id): expected "):
        Participant(kind, whose)


def test_no_participant_where_one_is_named_is_one_line() -> None:
    nobody: Any = None
    with pytest.raises(InputError, match=r"^participant: expected a Participant, or none named, got None$"):
        Sessions().session("support", participant=nobody)
    with pytest.raises(InputError, match=r"^scope: expected text, got None$"):
        Session(Participant("User", 1), nobody)

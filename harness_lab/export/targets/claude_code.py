"""Claude Code: flags of a headless call, ``.claude/settings.json``, and a file for each agent."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError
from harness_lab.export.forms import yaml
from harness_lab.export.forms.text import mapping, parsed, quoted
from harness_lab.export.targets.amounts import INT32, Count, Dollars
from harness_lab.export.targets.base import Draft, Knob, Target, Values
from harness_lab.export.targets.claude import KEY_AGENTS, KEY_DENY, claude_agents, claude_extra, claude_model
from harness_lab.export.targets.names import slugs

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Files

TURNS, DOLLARS = "--max-turns", "--max-budget-usd"
CHILDREN, DEPTH = "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH"
FLAGS, SETTINGS, AGENTS = "claude-flags.txt", ".claude/settings.json", ".claude/agents/"
_NAMED = "# the agent's own name: "
_ZERO = "no children at all are a denied Agent tool"

KNOBS = (
    Knob(
        key=TURNS, quantity="calls", bounds=("root",), unit="agent turns (model calls)",
        scope="the main agent of one headless call (claude -p)",
        amount=Count(least=1, most=INT32, why="0 is taken as no limit"),
        note="in print mode only; subagents have maxTurns of their own",
    ),
    Knob(
        key=DOLLARS, quantity="cost", bounds=("tree",), unit="USD at list prices",
        scope="one headless call with its subagents", amount=Dollars(zero="must be greater than 0 there"),
        note="counted by the client from its own price list, checked after each call, so the call that crosses it is "
        "paid in full",
        reported="when a subagent crosses it the call gives no result "
        "(anthropics/claude-agent-sdk-python#1273, CLI 2.1.226 and 2.1.259)",
    ),
    Knob(
        key=CHILDREN, quantity="children", bounds=("tree",), unit="subagents that run at once", scope="one session",
        amount=Count(least=1, most=INT32, why=_ZERO), default="20 at once, or what the service says",
        note="a start beyond it is refused, not queued",
    ),
    Knob(
        key=DEPTH, quantity="depth", bounds=("tree",), unit="levels below the main agent", scope="one session",
        amount=Count(least=1, most=INT32, why=_ZERO), default="1, or what the service says",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """Flags for the command line, settings and agent files, as a project keeps them."""

    keys: tuple[str, ...] = (TURNS, DOLLARS, CHILDREN, DEPTH, KEY_DENY)

    @property
    def paths(self) -> tuple[str, ...]:
        """Where they lie."""
        return (FLAGS, SETTINGS, f"{AGENTS}*.md")

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the files."""
        flags = [f"{key} {_number(values[key])}" for key in (TURNS, DOLLARS) if key in values]
        files = {FLAGS: " ".join(flags) + "\n"} if flags else {}
        settings: dict[str, Any] = {}
        env = {key: str(values[key]) for key in (CHILDREN, DEPTH) if key in values}
        settings |= {"env": env} if env else {}
        settings |= {"permissions": {"deny": values[KEY_DENY]}} if KEY_DENY in values else {}
        if settings or not files:
            files[SETTINGS] = json.dumps(settings, indent=2) + "\n"
        agents: list[dict[str, Any]] = values.get(KEY_AGENTS, [])
        for name, agent in zip(slugs([agent["name"] for agent in agents]), agents, strict=True):
            files[f"{AGENTS}{name}.md"] = _agent_file(name, agent)
        return files

    def read(self, files: Files) -> Values:
        """Return what they hold."""
        values: Values = {}
        words = shlex.split(files.get(FLAGS, ""))
        for key, read in ((TURNS, int), (DOLLARS, float)):
            if key in words[:-1]:
                values[key] = _read(read, words[words.index(key) + 1], key)
        if SETTINGS in files:
            values |= _settings(mapping(parsed(files[SETTINGS], what=SETTINGS), what=SETTINGS))
        agents = [_agent(text, path) for path, text in files.items() if path.startswith(AGENTS)]
        return values | ({KEY_AGENTS: agents} if agents else {})


def _number(value: float) -> str:
    """Write a number without an exponent, which the command line may not read."""
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) else str(value)


def _settings(data: dict[str, Any]) -> Values:
    env, deny = data.get("env", {}), data.get("permissions", {}).get("deny", [])
    values: Values = {key: _read(int, env[key], key) for key in (CHILDREN, DEPTH) if key in env}
    return values | ({KEY_DENY: deny} if deny else {})


def _read(kind: Any, text: str, key: str) -> Any:
    try:
        return kind(text)
    except (TypeError, ValueError):
        raise InputError(key, expected="a number", got=text) from None


def _agent_file(name: str, agent: dict[str, Any]) -> str:
    front: dict[str, Any] = {"name": name, "description": agent["description"]}
    front |= {key: agent[key] for key in ("maxTurns", "model") if key in agent}
    front |= {"disallowedTools": agent["disallowedTools"]} if "disallowedTools" in agent else {}
    kept = f"{_NAMED}{quoted(agent['name'])}\n" if agent["name"] != name else ""
    return f"---\n{kept}{yaml.block(front)}---\n\n{agent['prompt']}\n"


def _agent(text: str, path: str) -> dict[str, Any]:
    match = re.fullmatch(r"---\n(.*?\n)---\n\n(.*)\n", text, re.DOTALL)
    if match is None:
        raise InputError(path, expected="front matter between --- and ---, and a prompt", got=text[:80])
    front = mapping(yaml.read(match[1], what=path), what=path)
    if match[1].startswith(_NAMED):
        front["name"] = parsed(match[1].partition("\n")[0].removeprefix(_NAMED), what=path)
    return front | {"prompt": match[2]}


def _extra(draft: Draft) -> None:
    claude_extra(draft, turns=TURNS, bounds=(CHILDREN, DEPTH))


def _model(values: Values) -> Any:
    return claude_model(
        turns=values.get(TURNS), dollars=values.get(DOLLARS), children=values.get(CHILDREN), depth=values.get(DEPTH),
        denied=values.get(KEY_DENY, []),
    )  # fmt: skip


TARGET = Target(
    name="claude-code", title="Claude Code", version="2.1.332", knobs=KNOBS, forms={"files": Folder()}, model=_model,
    rest=_extra, agents=lambda values: claude_agents(values.get(KEY_AGENTS, [])),
)  # fmt: skip

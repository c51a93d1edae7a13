"""Environment variables: every parameter of every module, as ``HARNESS_LAB_<MODULE>_<PARAMETER>``.

Text stands as it is, so that a shell script can use it; numbers, truth values, lists and null are JSON. A text that
would read as JSON of another kind is written as a JSON string. A second module of a kind has its number in its name.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError
from harness_lab.export.forms.text import comments, only_file
from harness_lab.export.targets.base import Target
from harness_lab.export.targets.whole import agents, modules, whole
from harness_lab.policies.spec import MODULES

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Files, Values

PREFIX = "HARNESS_LAB_"
_LISTS = ("MODULES", "AGENTS", "AT_LIMIT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Assignments, one a line, quoted for a POSIX shell."""

    file: str = "harness-lab.env"

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it lies."""
        return (self.file,)

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file."""
        stored = values["policy"]
        found: dict[str, Any] = {"POLICY": stored["name"], "MODULES": [m["kind"] for m in stored["modules"]]}
        found |= {name: values[name.lower()] for name in ("MODE", "AGENTS") if name.lower() in values}
        found |= {name.upper(): stored[name] for name in ("max_wait_s", "at_limit") if name in stored}
        for prefix, module in _numbered(stored["modules"]):
            found |= {f"{prefix}{name.upper()}": value for name, value in module.items() if name != "kind"}
        lines = [f"{PREFIX}{name}={shlex.quote(_text(value))}\n" for name, value in found.items()]
        return {self.file: comments(header, "#") + "".join(lines)}

    def read(self, files: Files) -> Values:
        """Return what it holds.

        Raises
        ------
        InputError
            If a line is no assignment of ours.
        """
        lines = only_file(files, self.file).split("\n")
        text = "\n".join(lines[next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines)) :])
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise InputError("environment", expected="assignments, quoted for a shell", got=str(error)) from None
        return _values(dict(_assignment(word) for word in words))


def _values(found: dict[str, Any]) -> Values:
    policy: dict[str, Any] = {"name": found.pop("POLICY", ""), "modules": []}
    kinds = found.pop("MODULES", [])
    policy |= {name.lower(): found.pop(name) for name in ("MAX_WAIT_S", "AT_LIMIT") if name in found}
    values: Values = {"policy": policy}
    values |= {name.lower(): found.pop(name) for name in ("MODE", "AGENTS") if name in found}
    if not isinstance(kinds, list) or not all(kind in MODULES for kind in kinds):
        raise InputError(f"{PREFIX}MODULES", expected=f"a list of {', '.join(MODULES)}", got=kinds)
    for prefix, module in _numbered([{"kind": kind} for kind in kinds]):
        mine = sorted(name for name in found if _owner(name, kinds) == prefix)
        policy["modules"].append(module | {name.removeprefix(prefix).lower(): found.pop(name) for name in mine})
    if found:
        raise InputError("environment", expected=f"parameters of {', '.join(MODULES)}", got=sorted(found))
    return values


def _numbered(stored: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return each module with the prefix of its variables: its kind, and from the second of a kind on its number."""
    seen: dict[str, int] = {}
    found = []
    for module in stored:
        number = seen[module["kind"]] = seen.get(module["kind"], 0) + 1
        found.append((f"{module['kind']}_{number}_" if number > 1 else f"{module['kind']}_", module))
    return [(prefix.upper(), module) for prefix, module in found]


def _owner(name: str, kinds: list[str]) -> str:
    """Return the longest prefix of a module that a variable begins with."""
    fitting = [prefix for prefix, _ in _numbered([{"kind": kind} for kind in kinds]) if name.startswith(prefix)]
    return max(fitting, key=len, default="")


def _text(value: Any) -> str:
    if isinstance(value, str) and value == _read(value):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _read(text: str) -> Any:
    """Return what a text says: JSON where it is any, else itself."""
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def _assignment(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not name.startswith(PREFIX) or not equals:
        raise InputError("environment", expected=f"assignments of {PREFIX}...", got=word)
    return name.removeprefix(PREFIX), _read(value)


TARGET = Target(
    name="env", title="environment variables", forms={"shell": Shell()}, knobs=(), model=modules, holds=True,
    modes=("enforce", "warn", "shadow"), rest=whole, agents=agents,
)  # fmt: skip

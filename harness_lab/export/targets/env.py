"""Environment variables: every parameter of every module, as ``HARNESS_LAB_<MODULE>_<PARAMETER>``, values as JSON."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError
from harness_lab.policies import PolicySpec
from harness_lab.policies.spec import MODULES

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Loss

FORMS: tuple[str, ...] = ("shell",)
FILE: dict[str, str] = {"shell": "harness-lab.env"}
_PREFIX = "HARNESS_LAB_"


def write(policy: PolicySpec, form: str) -> tuple[str, tuple[Loss, ...]]:
    """Write one assignment a line, quoted for a POSIX shell; nothing is lost."""
    stored = policy.to_dict()
    values: dict[str, Any] = {"POLICY": policy.name, "MODULES": [module["kind"] for module in stored["modules"]]}
    if policy.max_wait_s is not None:
        values["MAX_WAIT_S"] = policy.max_wait_s
    for module in stored["modules"]:
        for name, value in module.items():
            if name != "kind":
                values[f"{module['kind']}_{name}".upper()] = value
    lines = [f"{_PREFIX}{name}={shlex.quote(_json(value))}" for name, value in values.items()]
    return "\n".join(lines) + "\n", ()


def read(text: str, form: str) -> PolicySpec:
    """Read the assignments back.

    Raises
    ------
    InputError
        If a line is no assignment of ours.
    """
    values = dict(_assignment(line) for line in shlex.split(text, comments=True))
    policy: dict[str, Any] = {"name": values.pop("POLICY", ""), "modules": []}
    kinds = values.pop("MODULES", [])
    if "MAX_WAIT_S" in values:
        policy["max_wait_s"] = values.pop("MAX_WAIT_S")
    for kind in kinds:
        prefix = f"{kind}_".upper()
        mine = {name for name in values if name.startswith(prefix)}
        module = {name.removeprefix(prefix).lower(): values.pop(name) for name in sorted(mine)}
        policy["modules"].append({"kind": kind, **module})
    if values:
        raise InputError("environment", expected=f"parameters of {', '.join(MODULES)}", got=sorted(values))
    return PolicySpec.from_dict(policy)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _assignment(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not name.startswith(_PREFIX) or not equals:
        raise InputError("environment", expected=f"assignments of {_PREFIX}...", got=word)
    try:
        return name.removeprefix(_PREFIX), json.loads(value)
    except json.JSONDecodeError:
        raise InputError(name, expected="a JSON value", got=value) from None

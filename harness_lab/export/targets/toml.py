"""TOML: a ``[[policies]]`` table, as it stands in an experiment file."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import tomli_w

from harness_lab.errors import InputError
from harness_lab.simulate.config import read_policy

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Loss
    from harness_lab.policies import PolicySpec

FORMS: tuple[str, ...] = ("toml",)
FILE: dict[str, str] = {"toml": "policy.toml"}


def write(policy: PolicySpec, form: str) -> tuple[str, tuple[Loss, ...]]:
    """Write the policy; nothing is lost."""
    return tomli_w.dumps({"policies": [policy_table(policy)]}), ()


def read(text: str, form: str) -> PolicySpec:
    """Read the policy back.

    Raises
    ------
    InputError
        If the text is no TOML or does not hold one policy.
    """
    try:
        policies = tomllib.loads(text).get("policies", [])
    except tomllib.TOMLDecodeError as error:
        raise InputError("policy.toml", expected="TOML", got=str(error)) from None
    if len(policies) != 1:
        raise InputError("policy.toml", expected="one [[policies]] table", got=len(policies))
    return read_policy(policies[0])


def policy_table(policy: PolicySpec) -> dict[str, object]:
    """Return a policy as its table in an experiment file."""
    stored = policy.to_dict()
    modules = {module["kind"]: {k: v for k, v in module.items() if k != "kind"} for module in stored["modules"]}
    return {key: value for key, value in stored.items() if key != "modules"} | _without_none(modules)


def _without_none(modules: dict[str, dict[str, object]]) -> dict[str, object]:
    """Drop unknown fields of floor rows: TOML has no null, and a missing field is read as None."""
    for module in modules.values():
        rows = module.get("table")
        if isinstance(rows, list):
            module["table"] = [{k: v for k, v in row.items() if v is not None} for row in rows]
    return dict(modules)

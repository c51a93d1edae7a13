"""TOML: a ``[[policies]]`` table, as it stands in an experiment file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import tomli_w

from harness_lab.errors import InputError
from harness_lab.export.forms.text import comments, only_file
from harness_lab.export.targets.base import Draft, Loss, Target
from harness_lab.export.targets.whole import agents, modules, plain, whole
from harness_lab.policies import PolicySpec
from harness_lab.simulate.config import read_policy

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Files, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """The table of a policy; mode and agents stand above it."""

    file: str = "policy.toml"

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it lies."""
        return (self.file,)

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file."""
        above: dict[str, object] = {name: values[name] for name in ("mode", "agents") if name in values}
        table = policy_table(PolicySpec.from_dict(values["policy"]))
        return {self.file: comments(header, "#") + tomli_w.dumps({**above, "policies": [table]})}

    def read(self, files: Files) -> Values:
        """Return what it holds.

        Raises
        ------
        InputError
            If the text is no TOML or does not hold one policy.
        """
        try:
            data = tomllib.loads(only_file(files, self.file))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(self.file, expected="TOML", got=str(error)) from None
        policies = data.get("policies", [])
        if not isinstance(policies, list) or len(policies) != 1:
            raise InputError(self.file, expected="one [[policies]] table", got=policies)
        above = {name: data[name] for name in ("mode", "agents") if name in data}
        return {"policy": plain(read_policy(policies[0]))} | above


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


def _one_of_a_kind(draft: Draft) -> None:
    """Carry everything that a table in an experiment file can hold: one module of a kind."""
    whole(draft)
    stored = draft.values["policy"]
    kinds: set[str] = set()
    for module in tuple(stored["modules"]):
        if module["kind"] in kinds:
            stored["modules"].remove(module)
            draft.losses.append(Loss(f"a second {module['kind']}", "a table has one module of a kind"))
        kinds.add(module["kind"])


TARGET = Target(
    name="toml", title="an experiment file", forms={"toml": Experiment()}, knobs=(), model=modules, holds=True,
    modes=("enforce", "warn", "shadow"), rest=_one_of_a_kind, agents=agents,
)  # fmt: skip

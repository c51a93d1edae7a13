"""Experiment files: the TOML form of an experiment, validated when it is read."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from harness_lab.errors import InputError, ReadError
from harness_lab.policies import PolicySpec
from harness_lab.policies.presets import from_preset
from harness_lab.policies.spec import module_kinds
from harness_lab.pricing import PriceTable
from harness_lab.providers import MockProvider
from harness_lab.settlements import read
from harness_lab.simulate.config_errors import at, did_you_mean, input_error
from harness_lab.simulate.config_world import ProviderTable, Table, WorkloadTable
from harness_lab.simulate.experiment import Experiment
from harness_lab.simulate.fit import fit_world
from harness_lab.simulate.gallery import from_gallery
from harness_lab.simulate.scenario import Scenario
from harness_lab.simulate.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Mapping


class ExperimentTable(Table):
    """A whole experiment file."""

    name: str = "experiment"
    runs: int = 2000
    seed: int = 0
    workload: WorkloadTable
    provider: ProviderTable = Field(default_factory=ProviderTable)
    policies: list[dict[str, Any]]
    scenarios: list[dict[str, Any]] = Field(default_factory=list)


def load_experiment(path: str | Path) -> Experiment:
    """Read an experiment file.

    Parameters
    ----------
    path : path
        A TOML file; paths inside it are relative to its folder.

    Raises
    ------
    ReadError
        If the file does not exist or is no TOML.
    InputError
        If a table, key or value is not what it should be; the message names it.
    """
    place = Path(path)
    try:
        data = tomllib.loads(place.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ReadError(str(place), expected="an experiment file (TOML)", got="no such file") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ReadError(str(place), expected="an experiment file (TOML)", got=str(error)) from error
    return build_experiment(data, folder=place.parent)


def build_experiment(data: Mapping[str, Any], *, folder: Path | None = None) -> Experiment:
    """Build an experiment from the content of an experiment file.

    Parameters
    ----------
    data : mapping
        What the TOML file holds.
    folder : Path, optional
        Where relative paths begin; the working directory if None.
    """
    place = folder if folder is not None else Path()
    table = _checked(data)
    workload, provider = _world(table, place)
    policies = tuple(at(f"policies.{i}", partial(read_policy, policy)) for i, policy in enumerate(table.policies))
    scenarios = tuple(
        at(f"scenarios.{i}", partial(_scenario, one, data, place)) for i, one in enumerate(table.scenarios)
    )
    return Experiment(
        workload=workload, provider=provider, policies=policies, runs=table.runs, seed=table.seed, name=table.name,
        scenarios=scenarios,
    )  # fmt: skip


def _checked(data: Mapping[str, Any]) -> ExperimentTable:
    try:
        return ExperimentTable.model_validate(data)
    except ValidationError as error:
        raise input_error(error, ExperimentTable) from None


def _scenario(one: Mapping[str, Any], data: Mapping[str, Any], folder: Path) -> Scenario:
    """Read one ``[[scenarios]]`` table: a name, and what of the file's workload and provider is otherwise there."""
    unknown = sorted(set(one) - {"name", "workload", "provider"})
    if unknown or "name" not in one:
        got = unknown or sorted(one)
        raise InputError("scenario", expected="name, and maybe tables workload and provider", got=got)
    changed = {key: value for key, value in one.items() if key != "name"}
    merged = _merged({key: value for key, value in data.items() if key != "scenarios"}, changed)
    workload, provider = _world(_checked(merged), folder)
    return Scenario(name=one["name"], workload=workload, provider=provider)


def _merged(base: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the values of `changed` in their places; a distribution or a list is replaced as a whole."""
    made = dict(base)
    for key, value in changed.items():
        before = made.get(key)
        tables = isinstance(before, dict) and isinstance(value, dict) and "dist" not in value and "dist" not in before
        made[key] = _merged(before, value) if tables else value  # type: ignore[arg-type]
    return made


def read_policy(table: Mapping[str, Any]) -> PolicySpec:
    """Read one ``[[policies]]`` table: a name, maybe `max_wait_s`, a table `at_limit`, and one per module, in order.

    With ``preset`` it begins from one of :data:`harness_lab.policies.PRESETS`, and a module's table changes it.
    """
    if "preset" in table:
        return from_preset(table)
    tables = {key: value for key, value in table.items() if isinstance(value, dict) and key != "at_limit"}
    rest = {key: value for key, value in table.items() if key not in tables}
    keys = ("name", "max_wait_s", "at_limit", "preset")
    kinds = tuple(module_kinds(tables))
    for key in (*tables, *rest):
        if key not in (*(kinds if key in tables else keys), "at_limit"):
            hint = did_you_mean(key, (*kinds, *keys))
            raise InputError(key, expected=f"one of {', '.join((*keys, *kinds))}", got=key, hint=hint)
    if "name" not in rest:
        raise InputError("name", expected="this key, which has no default", got=sorted(table))
    modules = [{"kind": kind, **values} for kind, values in tables.items()]
    return PolicySpec.from_dict({**rest, "modules": modules})


def _world(table: ExperimentTable, folder: Path) -> tuple[Workload, MockProvider]:
    """Return the workload and provider of a file: fitted, from the gallery, or written out."""
    given = table.workload
    ways = [name for name in ("fit", "gallery", "agents") if getattr(given, name)]
    if len(ways) != 1:
        expected = "one of fit = FILE, gallery = NAME, or root and agents"
        raise InputError("workload", expected=expected, got=ways or sorted(given.model_fields_set))
    if given.fit is None and given.asks:
        expected = "no asks without fit: write ask = { ... } inside [[workload.agents.NAME.spawns]]"
        raise InputError("workload.asks", expected=expected, got=sorted(given.asks))
    if given.fit is None and "method" in given.model_fields_set:
        raise InputError("workload.method", expected="no method without fit", got=given.method)
    make = {"fit": _fitted, "gallery": _from_gallery, "agents": _written}[ways[0]]
    workload, provider = make(table, folder)
    happenings = given.happenings()
    return (replace(workload, **happenings) if happenings else workload), provider


def _written(table: ExperimentTable, _folder: Path) -> tuple[Workload, MockProvider]:
    given, answers = table.workload, table.provider
    if given.root is None:
        raise InputError("workload.root", expected="the agent that starts a run", got=sorted(given.agents))
    built = {name: at(f"workload.agents.{name}", partial(one.build, name)) for name, one in given.agents.items()}
    workload = Workload(agents=built, root=given.root)
    prices = answers.table(workload.models())
    return workload, MockProvider(models=answers.profiles(), prices=prices, billing=answers.bills(prices))


def _from_gallery(table: ExperimentTable, _folder: Path) -> tuple[Workload, MockProvider]:
    """Return a named workload; models and prices of the file stand in place of those of the gallery."""
    scene = at("workload.gallery", partial(from_gallery, table.workload.gallery or ""))
    answers, own = table.provider, scene.provider
    models = {**own.models, **answers.profiles()}
    priced = answers.table([]).models
    prices = PriceTable({**own.prices.models, **priced}, source="by hand") if priced else own.prices
    workload = scene.workload if table.workload.root is None else replace(scene.workload, root=table.workload.root)
    return workload, MockProvider(models=models, prices=prices, billing=answers.bills(prices))


def _fitted(table: ExperimentTable, folder: Path) -> tuple[Workload, MockProvider]:
    given, answers = table.workload, table.provider
    if answers.models:
        raise InputError("workload", expected="either fit, or agents and provider.models", got="both")
    if answers.billing:
        raise InputError("provider.billing", expected="none with fit", got=f"{len(answers.billing)} tables")
    records = read(folder / str(given.fit), ids="kept")  # nothing of an id gets into a fitted world
    prices = answers.table([str(model) for model in records.nodes["model"].dropna().unique()])
    asks = {agent: at(f"workload.asks.{agent}", ask.amounts) for agent, ask in given.asks.items()}
    world = at(
        "workload", lambda: fit_world(records, root=given.root, prices=prices, asks=asks, method=given.method)
    )  # fmt: skip
    return world.workload, world.provider

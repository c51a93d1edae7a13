"""Experiment files: the TOML form of an experiment, validated when it is read."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from harness_lab.errors import InputError, ReadError
from harness_lab.floors import FloorKey
from harness_lab.policies import PolicySpec
from harness_lab.policies.presets import from_preset
from harness_lab.policies.spec import MODULES
from harness_lab.pricing import Price, PriceTable, from_genai_prices
from harness_lab.providers import MockProvider, ModelProfile
from harness_lab.settlements import read
from harness_lab.simulate.config_errors import at, input_error
from harness_lab.simulate.experiment import Experiment
from harness_lab.simulate.fit import fit_world
from harness_lab.simulate.workload import AgentProfile, Spawn, Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import Amounts, amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

EXAMPLE = '{ dist = "lognorm", s = 0.5, loc = 0, scale = 400 }'
"""A distribution as it is written in a file."""
_PRICE = "input and output in dollars per million tokens, maybe cache_read, cache_write"


def _drawn(value: Any) -> Distribution:
    if isinstance(value, dict) and "dist" not in value:
        raise InputError("dist", expected=f"the name of a distribution, for example {EXAMPLE}", got=sorted(value))
    if not isinstance(value, dict) and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise InputError("", expected=f"a number or a distribution, for example {EXAMPLE}", got=value)
    return Distribution.from_dict(value)


def _counted(value: Any) -> int | Distribution:
    return value if isinstance(value, int) and not isinstance(value, bool) else _drawn(value)


def _tiers(value: Any) -> list[dict[str, Any]]:
    tiers = value if isinstance(value, list) else [value]
    if not all(isinstance(tier, dict) for tier in tiers):
        raise InputError("", expected=_PRICE, got=value)
    return tiers


Drawn = Annotated[Distribution, PlainValidator(_drawn)]
_ZERO = Distribution.constant(0)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class AskTable(_Table):
    """What a parent declares for a child, by channel."""

    calls: int | None = None
    input: int | None = None
    tokens: int | None = None
    fresh: int | None = None
    cost_usd: float | None = None

    def amounts(self) -> Amounts:
        """Return the ask."""
        return amounts(calls=self.calls, input=self.input, tokens=self.tokens, fresh=self.fresh, cost_usd=self.cost_usd)


class SpawnTable(_Table):
    """``[[workload.agents.NAME.spawns]]``: :class:`~harness_lab.simulate.Spawn`."""

    agent: str
    count: Annotated[int | Distribution, PlainValidator(_counted)] = 1
    after: list[int] | None = None
    chance: float = 1.0
    ask: AskTable = Field(default_factory=AskTable)

    def build(self) -> Spawn:
        """Return the rule."""
        after = None if self.after is None else tuple(self.after)
        return Spawn(agent=self.agent, count=self.count, after=after, chance=self.chance, budget=self.ask.amounts())


class AgentTable(_Table):
    """``[workload.agents.NAME]``: :class:`~harness_lab.simulate.AgentProfile`."""

    model: str
    calls: Drawn
    startup_tokens: Drawn
    growth_tokens: Drawn = _ZERO
    tool_s: Drawn = _ZERO
    shared_tokens: int = 0
    failure_rate: float = 0.0
    max_attempts: int = 3
    backoff_s: float = 1.0
    backend: str | None = None
    context: str | None = None
    spawns: list[SpawnTable] = Field(default_factory=list)

    def build(self, name: str) -> AgentProfile:
        """Return the profile."""
        key = None
        if self.backend is not None:
            key = FloorKey(agent=name, backend=self.backend, model=self.model, context=self.context)
        return AgentProfile(
            model=self.model,
            calls=self.calls,
            startup_tokens=self.startup_tokens,
            growth_tokens=self.growth_tokens,
            tool_s=self.tool_s,
            shared_tokens=self.shared_tokens,
            failure_rate=self.failure_rate,
            max_attempts=self.max_attempts,
            backoff_s=self.backoff_s,
            spawns=tuple(at(f"spawns.{i}", spawn.build) for i, spawn in enumerate(self.spawns)),
            floor_key=key,
        )


class WorkloadTable(_Table):
    """``[workload]``: either `fit` (records to fit, beside the file) with `asks`, or `root` and `agents`."""

    fit: str | None = None
    root: str | None = None
    asks: dict[str, AskTable] = Field(default_factory=dict)
    agents: dict[str, AgentTable] = Field(default_factory=dict)


class ModelTable(_Table):
    """``[provider.models.NAME]``: :class:`~harness_lab.providers.ModelProfile`."""

    output_tokens: Drawn
    latency_s: Drawn
    seconds_per_output_token: float = 0.0
    error_rate: float = 0.0
    unreported_rate: float = 0.0
    cache_share: float = 0.0
    cache_write_share: float = 0.0
    max_output_tokens: int = 32_000

    def build(self) -> ModelProfile:
        """Return the profile."""
        values = self.model_dump(exclude={"output_tokens", "latency_s"})
        return ModelProfile(output_tokens=self.output_tokens, latency_s=self.latency_s, **values)


class ProviderTable(_Table):
    """``[provider]``: models, and prices in dollars per million tokens (list prices where none is given)."""

    models: dict[str, ModelTable] = Field(default_factory=dict)
    prices: dict[str, Annotated[list[dict[str, Any]], PlainValidator(_tiers)]] = Field(default_factory=dict)

    def table(self, models: list[str]) -> PriceTable:
        """Return the prices by hand, and list prices of the bundled data for models without one."""
        by_hand = {name: tuple(_price(name, tier) for tier in given) for name, given in self.prices.items()}
        rest = from_genai_prices(model for model in models if model not in by_hand)
        if not by_hand:
            return rest
        source = "by hand" if not rest.models else f"by hand and {rest.source}"
        return PriceTable({**rest.models, **by_hand}, source=source, date=rest.date if rest.models else None)


class ExperimentTable(_Table):
    """A whole experiment file."""

    name: str = "experiment"
    runs: int = 2000
    seed: int = 0
    workload: WorkloadTable
    provider: ProviderTable = Field(default_factory=ProviderTable)
    policies: list[dict[str, Any]]


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
    try:
        table = ExperimentTable.model_validate(data)
    except ValidationError as error:
        raise input_error(error, ExperimentTable) from None
    workload, provider = _world(table, folder if folder is not None else Path())
    policies = tuple(at(f"policies.{i}", partial(read_policy, policy)) for i, policy in enumerate(table.policies))
    return Experiment(
        workload=workload, provider=provider, policies=policies, runs=table.runs, seed=table.seed, name=table.name
    )


def read_policy(table: Mapping[str, Any]) -> PolicySpec:
    """Read one ``[[policies]]`` table: a name, maybe `max_wait_s`, a table `at_limit`, and one per module, in order.

    With ``preset`` it begins from one of :data:`harness_lab.policies.PRESETS`, and a module's table changes it.
    """
    if "preset" in table:
        return from_preset(table)
    tables = {key: value for key, value in table.items() if isinstance(value, dict) and key != "at_limit"}
    modules = [{"kind": kind, **values} for kind, values in tables.items()]
    rest = {key: value for key, value in table.items() if key not in tables}
    unknown = sorted(set(rest) - {"name", "max_wait_s", "at_limit"})
    if unknown or "name" not in rest:
        expected = f"name, maybe max_wait_s, and tables of at_limit, {', '.join(MODULES)}"
        raise InputError("policy", expected=expected, got=unknown or sorted(table))
    return PolicySpec.from_dict({**rest, "modules": modules})


def _world(table: ExperimentTable, folder: Path) -> tuple[Workload, MockProvider]:
    given = table.workload
    if given.fit is None:
        if given.root is None or not given.agents:
            raise InputError("workload", expected="fit = FILE, or root and agents", got=sorted(given.model_fields_set))
        if given.asks:
            expected = "no asks without fit: write ask = { ... } inside [[workload.agents.NAME.spawns]]"
            raise InputError("workload.asks", expected=expected, got=sorted(given.asks))
        built = {name: at(f"workload.agents.{name}", partial(one.build, name)) for name, one in given.agents.items()}
        workload = Workload(agents=built, root=given.root)
        models = {name: at(f"provider.models.{name}", one.build) for name, one in table.provider.models.items()}
        return workload, MockProvider(models=models, prices=table.provider.table(workload.models()))
    if given.agents or table.provider.models:
        raise InputError("workload", expected="either fit, or agents and provider.models", got="both")
    records = read(folder / given.fit, ids="kept")  # nothing of an id gets into a fitted world
    prices = table.provider.table([str(model) for model in records.nodes["model"].dropna().unique()])
    asks = {agent: ask.amounts() for agent, ask in given.asks.items()}
    world = fit_world(records, root=given.root, prices=prices, asks=asks)
    return world.workload, world.provider


def _price(model: str, values: Mapping[str, Any]) -> Price:
    try:
        return Price.usd_per_million(**values)
    except TypeError:
        raise InputError(f"provider.prices.{model}", expected=_PRICE, got=dict(values)) from None

"""Tables of an experiment file that describe a world: agents, workload, arrivals, faults, models and prices."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from harness_lab.errors import InputError
from harness_lab.floors import FloorKey
from harness_lab.pricing import Price, PriceTable, from_genai_prices
from harness_lab.providers import ModelProfile, RateLimits
from harness_lab.simulate.arrivals import Arrivals
from harness_lab.simulate.config_errors import at, did_you_mean
from harness_lab.simulate.faults import ClockJumps, Fault, ParentCancelled, SlowStore, WorkerDies
from harness_lab.simulate.profile import AgentProfile, Reaction, Retry, Spawn
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import Amounts, amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

EXAMPLE = '{ dist = "lognorm", s = 0.5, loc = 0, scale = 400 }'
"""A distribution as it is written in a file."""
PRICE_KEYS = ("input", "output", "cache_read", "cache_write", "cache_write_1h", "above_input_tokens")
FAULTS: dict[str, type[Fault]] = {
    "worker_dies": WorkerDies,
    "parent_cancelled": ParentCancelled,
    "clock_jumps": ClockJumps,
    "slow_store": SlowStore,
}
"""Faults by the name that a file gives them."""


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
        raise InputError("", expected=f"a price: {', '.join(PRICE_KEYS)} in dollars per million tokens", got=value)
    return tiers


def _points(value: Any) -> tuple[tuple[float, float], ...]:
    if not isinstance(value, list) or not all(isinstance(point, list) and len(point) == 2 for point in value):
        raise InputError("", expected="points as [share, chance], for example [[0.5, 0.0], [1.0, 0.8]]", got=value)
    return tuple((float(share), float(chance)) for share, chance in value)


Drawn = Annotated[Distribution, PlainValidator(_drawn)]
ZERO = Distribution.constant(0)


class Table(BaseModel):
    """A table of an experiment file: unknown keys and values of another kind are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class AskTable(Table):
    """What a parent declares for a child, by channel."""

    calls: int | None = None
    input: int | None = None
    tokens: int | None = None
    fresh: int | None = None
    cost_usd: float | None = None

    def amounts(self) -> Amounts:
        """Return the ask."""
        return amounts(calls=self.calls, input=self.input, tokens=self.tokens, fresh=self.fresh, cost_usd=self.cost_usd)


class SpawnTable(Table):
    """``[[workload.agents.NAME.spawns]]``: :class:`~harness_lab.simulate.Spawn`."""

    agent: str
    count: Annotated[int | Distribution, PlainValidator(_counted)] = 1
    after: list[int] | None = None
    chance: float = 1.0
    ask: AskTable = Field(default_factory=AskTable)
    max_attempts: int = 1
    on_refusal: Literal["give-up", "shrink", "raise", "other-path"] = "give-up"
    factor: float = 0.5
    tries: int = 1
    other: str | None = None

    def build(self) -> Spawn:
        """Return the rule."""
        after = None if self.after is None else tuple(self.after)
        same = {name: getattr(self, name) for name in _SPAWN}
        return Spawn(after=after, budget=self.ask.amounts(), **same)


_SPAWN = ("agent", "count", "chance", "max_attempts", "on_refusal", "factor", "tries", "other")


class RetryTable(Table):
    """``[workload.agents.NAME.retry]``: :class:`~harness_lab.simulate.Retry`."""

    layers: list[int] = Field(default_factory=lambda: [3])
    base_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 60.0
    jitter: Literal["none", "full", "equal"] = "none"
    max_attempts: int | None = None

    def build(self) -> Retry:
        """Return the value."""
        return Retry(layers=tuple(self.layers), **self.model_dump(exclude={"layers"}))


class ReactionTable(Table):
    """``[workload.agents.NAME.reaction]``: :class:`~harness_lab.simulate.Reaction`."""

    kind: Literal["wind-down", "spend-to-fill"]
    at: float = 0.8
    told: AskTable | None = None

    def build(self) -> Reaction:
        """Return the value."""
        return Reaction(kind=self.kind, at=self.at, told=None if self.told is None else self.told.amounts())


class AgentTable(Table):
    """``[workload.agents.NAME]``: :class:`~harness_lab.simulate.AgentProfile`."""

    model: str
    calls: Drawn
    startup_tokens: Drawn
    growth_tokens: Drawn = ZERO
    tool_s: Drawn = ZERO
    shared_tokens: int = 0
    failure_rate: float = 0.0
    max_attempts: int = 3
    backoff_s: float = 1.0
    backend: str | None = None
    context: str | None = None
    spawns: list[SpawnTable] = Field(default_factory=list)
    retry: RetryTable | None = None
    think_s: Drawn | None = None
    think_chance: float = 1.0
    context_limit_tokens: int | None = None
    compact_to_tokens: int = 0
    delivery: Annotated[tuple[tuple[float, float], ...], PlainValidator(_points)] = ()
    reaction: ReactionTable | None = None

    def build(self, name: str) -> AgentProfile:
        """Return the profile."""
        key = None
        if self.backend is not None:
            key = FloorKey(agent=name, backend=self.backend, model=self.model, context=self.context)
        return AgentProfile(
            spawns=tuple(at(f"spawns.{i}", spawn.build) for i, spawn in enumerate(self.spawns)),
            floor_key=key,
            retry=None if self.retry is None else at("retry", self.retry.build),
            reaction=None if self.reaction is None else at("reaction", self.reaction.build),
            **{field: getattr(self, field) for field in type(self).model_fields if field not in _BUILT},
        )


_BUILT = frozenset({"spawns", "backend", "context", "retry", "reaction"})


class ArrivalsTable(Table):
    """``[workload.arrivals]``: :class:`~harness_lab.simulate.Arrivals`."""

    period_s: float
    per_day: float | None = None
    gap_s: Drawn | None = None
    at_s: list[float] = Field(default_factory=list)
    weekdays: list[float] = Field(default_factory=lambda: [1.0] * 7)
    hours: list[float] = Field(default_factory=lambda: [1.0] * 24)
    growth_per_week: float = 0.0
    users: int = 1
    start: str = "2026-01-05T00:00:00+00:00"
    shared: bool = True

    def build(self) -> Arrivals:
        """Return the value."""
        return Arrivals(
            gap_s=self.gap_s,
            at_s=tuple(self.at_s),
            weekdays=tuple(self.weekdays),
            hours=tuple(self.hours),
            **self.model_dump(exclude={"gap_s", "at_s", "weekdays", "hours"}),
        )


class WorkloadTable(Table):
    """``[workload]``: `fit` (records, beside the file) with `asks`, or `gallery`, or `root` and `agents`."""

    fit: str | None = None
    method: Literal["auto", "empirical", "family"] = "auto"
    gallery: str | None = None
    root: str | None = None
    asks: dict[str, AskTable] = Field(default_factory=dict)
    agents: dict[str, AgentTable] = Field(default_factory=dict)
    arrivals: ArrivalsTable | None = None
    faults: list[dict[str, Any]] = Field(default_factory=list)

    def happenings(self) -> dict[str, Any]:
        """Return what happens around the agents, as parameters of a workload; only what the file says."""
        found: dict[str, Any] = {}
        if self.arrivals is not None:
            found["arrivals"] = at("workload.arrivals", self.arrivals.build)
        if self.faults:
            found["faults"] = tuple(
                at(f"workload.faults.{i}", partial(fault, one)) for i, one in enumerate(self.faults)
            )
        return found


class LimitsTable(Table):
    """``[provider.models.NAME.limits]``: :class:`~harness_lab.providers.RateLimits`."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    input_tokens_per_minute: int | None = None
    concurrent: int | None = None
    burst_s: float = 60.0
    retry_after_s: float | None = None


class ModelTable(Table):
    """``[provider.models.NAME]``: :class:`~harness_lab.providers.ModelProfile`."""

    output_tokens: Drawn
    latency_s: Drawn
    seconds_per_output_token: float = 0.0
    output_token_s: Drawn | None = None
    error_rate: float = 0.0
    unreported_rate: float = 0.0
    cache_share: float = 0.0
    cache_write_share: float = 0.0
    max_output_tokens: int = 32_000
    cache_ttl_s: float | None = None
    timeout_rate: float = 0.0
    timeout_s: float = 600.0
    cutoff_rate: float = 0.0
    failed_attempts: Literal["free", "billed"] = "free"
    late_rate: float = 0.0
    late_s: float = 30.0
    partial_rate: float = 0.0
    twice_rate: float = 0.0
    limits: LimitsTable | None = None

    def build(self) -> ModelProfile:
        """Return the profile."""
        given = self.limits
        limits = None if given is None else at("limits", lambda: RateLimits(**given.model_dump()))
        values = {name: getattr(self, name) for name in type(self).model_fields if name != "limits"}
        return ModelProfile(limits=limits, **values)


Prices = dict[str, Annotated[list[dict[str, Any]], PlainValidator(_tiers)]]


class BillingTable(Table):
    """``[[provider.billing]]``: prices that are really billed from a time on."""

    from_s: float
    prices: Prices


class ProviderTable(Table):
    """``[provider]``: models, and prices in dollars per million tokens (list prices where none is given)."""

    models: dict[str, ModelTable] = Field(default_factory=dict)
    prices: Prices = Field(default_factory=dict)
    billing: list[BillingTable] = Field(default_factory=list)

    def profiles(self) -> dict[str, ModelProfile]:
        """Return the models that the file writes out."""
        return {name: at(f"provider.models.{name}", one.build) for name, one in self.models.items()}

    def table(self, models: list[str]) -> PriceTable:
        """Return the prices by hand, and list prices of the bundled data for models without one."""
        by_hand = _priced("provider.prices", self.prices)
        rest = from_genai_prices(model for model in models if model not in by_hand)
        if not by_hand:
            return rest
        source = "by hand" if not rest.models else f"by hand and {rest.source}"
        return PriceTable({**rest.models, **by_hand}, source=source, date=rest.date if rest.models else None)

    def bills(self, prices: PriceTable) -> tuple[tuple[float, PriceTable], ...]:
        """Return what is billed from when on: the given prices, and `prices` for models that are not named."""
        return tuple(
            (one.from_s, PriceTable({**prices.models, **_priced(f"provider.billing.{i}.prices", one.prices)}))
            for i, one in enumerate(self.billing)
        )


def fault(table: Mapping[str, Any]) -> Fault:
    """Read one ``[[workload.faults]]`` table: its `kind` and the parameters of that fault."""
    values = dict(table)
    kind = values.pop("kind", None)
    if kind not in FAULTS:
        near = did_you_mean(str(kind), FAULTS)
        raise InputError("kind", expected=f"one of {', '.join(FAULTS)}", got=kind, hint=near)
    known = list(FAULTS[kind].__dataclass_fields__)
    unknown = sorted(set(values) - set(known))
    if unknown:
        hint = did_you_mean(unknown[0], known)
        raise InputError(unknown[0], expected=f"a parameter of {kind}: {', '.join(known)}", got=unknown, hint=hint)
    for name in ("after_s", "delay_s"):
        if name in values:
            values[name] = at(name, partial(_drawn, values[name]))
    if "agents" in values:
        values["agents"] = tuple(values["agents"])
    try:
        return FAULTS[kind](**values)
    except TypeError as error:
        raise InputError(kind, expected=f"values of {', '.join(known)}", got=values, hint=str(error)) from None


def _priced(where: str, prices: Mapping[str, list[dict[str, Any]]]) -> dict[str, tuple[Price, ...]]:
    found = {}
    for model, tiers in prices.items():
        many = len(tiers) > 1
        places = [f"{where}.{model}.{i}" if many else f"{where}.{model}" for i in range(len(tiers))]
        found[model] = tuple(at(place, partial(_price, one)) for place, one in zip(places, tiers, strict=True))
        at(f"{where}.{model}", partial(PriceTable, {model: found[model]}))
    return found


def _price(values: Mapping[str, Any]) -> Price:
    for key in values:
        if key not in PRICE_KEYS:
            hint = did_you_mean(key, PRICE_KEYS)
            expected = f"a key of a price, dollars per million tokens: {', '.join(PRICE_KEYS)}"
            raise InputError(key, expected=expected, got=key, hint=hint)
    for key in PRICE_KEYS[:2]:
        if key not in values:
            raise InputError(key, expected="both input and output, dollars per million tokens", got=sorted(values))
    return Price.usd_per_million(**values)

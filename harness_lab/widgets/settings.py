"""The settings of the explorer as one value: what is simulated, and the same as code, as TOML and as a config."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import tomli_w

from harness_lab.errors import InputError
from harness_lab.export import TunedConfig
from harness_lab.export.document import Provenance
from harness_lab.export.targets.toml import policy_table
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.outcome import CHANNELS, UNITS
from harness_lab.policies import PolicySpec, compose, runtime_floors, shared_ledger, tree_limits, unlimited
from harness_lab.simulate import Experiment, from_gallery

if TYPE_CHECKING:
    from harness_lab.pricing import Price
    from harness_lab.providers import MockProvider
    from harness_lab.simulate import Workload

NAME: Final = "explored"
ENDLESS: Final = 10**9
"""Calls of a ledger that limits other things only."""
OWN: Final = "your own"
PROVIDERS: Final[dict[str, dict[str, Any]]] = {
    "as given": {},
    "cold caches": {"cache_share": 0.0},
    "one call in ten fails": {"error_rate": 0.1},
}
"""Providers by name: what differs in every model."""
_KINDS: Final = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
_FRESH: Final = timedelta(days=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the explorer's controls say. None: no such limit.

    Parameters
    ----------
    workload : str
        A name from the gallery, or ``"your own"``.
    provider : str
        One of :data:`PROVIDERS`.
    price : float
        Factor on all prices.
    cost_usd, calls, time_s : float, int, float or None
        Limits of the shared ledger of a run: dollars, model calls, seconds.
    floor : int or None
        Tokens that a child must ask for at least.
    depth, starts, concurrency : int or None
        Limits of the tree: levels below the root, children started, children at once.
    """

    workload: str = "coding-agent"
    provider: str = "as given"
    price: float = 1.0
    cost_usd: float | None = None
    calls: int | None = None
    time_s: float | None = None
    floor: int | None = None
    depth: int | None = None
    starts: int | None = None
    concurrency: int | None = None

    def experiment(self, base: Experiment | None = None, *, runs: int, seed: int) -> Experiment:
        """Return the experiment of these settings.

        Parameters
        ----------
        base : Experiment, optional
            What ``"your own"`` stands for.
        runs, seed : int
            As for :class:`harness_lab.simulate.Experiment`.

        Raises
        ------
        InputError
            If there is no such workload or provider.
        """
        workload, provider = _world(self.workload, base)
        if self.provider not in PROVIDERS:
            raise InputError("provider", expected=f"one of {', '.join(PROVIDERS)}", got=self.provider)
        if self.floor is not None:
            agents = {name: replace(one, floor_key=_key(one.model, workload)) for name, one in workload.agents.items()}
            workload = replace(workload, agents=agents)
        provider = _priced(_changed(provider, PROVIDERS[self.provider]), self.price)
        return Experiment(
            workload=workload, provider=provider, policies=(self.policy(workload),), runs=runs, seed=seed, name=NAME
        )

    def policy(self, workload: Workload) -> PolicySpec:
        """Return the limits alone; floors hold for the models of the workload."""
        parts: list[PolicySpec] = []
        if (self.depth, self.starts, self.concurrency) != (None, None, None):
            parts.append(tree_limits(self.depth, self.concurrency, self.starts))
        if self.floor is not None:
            keys = [_key(model, workload) for model in workload.models()]
            rows = tuple(FloorRow(key=key, floor=self.floor, note="set by hand") for key in keys)
            parts.append(runtime_floors(FloorTable(rows)))
        if (self.calls, self.cost_usd, self.time_s) != (None, None, None):
            parts.append(shared_ledger(ENDLESS if self.calls is None else self.calls, self.cost_usd, self.time_s))
        return compose(*parts, name=NAME) if parts else unlimited(name=NAME)

    def to_python(self, *, runs: int, seed: int) -> str:
        """Return code that makes and runs the experiment."""
        given = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if self._differs(one.name))
        return (
            "from harness_lab.widgets import Settings\n\n"
            f"settings = Settings({given})\n"
            f"experiment = settings.experiment({'base, ' if self.workload == OWN else ''}runs={runs}, seed={seed})\n"
            "result = experiment.run()\n"
        )

    def to_toml(self, base: Experiment | None = None, *, runs: int, seed: int) -> str:
        """Return the limits, and the workload if it is of the gallery, as an experiment file."""
        made = self.experiment(base, runs=runs, seed=seed)
        data: dict[str, Any] = {"name": NAME, "runs": runs, "seed": seed}
        if self.workload != OWN:
            data["workload"] = {"gallery": self.workload}
            if self.price != 1.0:
                tables = made.provider.prices.models
                data["provider"] = {"prices": {model: _in_dollars(price[0]) for model, price in tables.items()}}
        return tomli_w.dumps({**data, "policies": [policy_table(made.policies[0])]})

    def to_config(self, base: Experiment | None = None, *, runs: int, seed: int, today: date) -> TunedConfig:
        """Return the limits as a config to export; it holds no evidence, since they were set by hand."""
        made = self.experiment(base, runs=runs, seed=seed)
        provenance = Provenance(
            date=today.isoformat(), harness_lab=version("harness-lab"), seed=seed, experiment_sha256=made.digest(),
            stale_after=(today + _FRESH).isoformat(),
        )  # fmt: skip
        return TunedConfig(made.policies[0], provenance=provenance, prices=made.provider.prices)

    def _differs(self, name: str) -> bool:
        return name == "workload" or getattr(self, name) != getattr(Settings(), name)


def _world(name: str, base: Experiment | None) -> tuple[Workload, MockProvider]:
    if name != OWN:
        scene = from_gallery(name)
        return scene.workload, scene.provider
    if base is None:
        raise InputError("experiment", expected=f"one, for the workload {OWN!r}", got=None)
    return base.workload, base.provider


def _key(model: str, workload: Workload) -> FloorKey:
    """Return the path of a model, in the unit in which children ask."""
    asks = [rule.budget for agent in workload.agents.values() for rule in agent.spawns]
    asked = [unit for unit, channel in UNITS.items() if any(ask[CHANNELS.index(channel)] is not None for ask in asks)]
    return FloorKey(backend="mock", model=model, unit=asked[0] if asked else "total")


def _changed(provider: MockProvider, changes: dict[str, Any]) -> MockProvider:
    models = {name: replace(one, **changes) for name, one in provider.models.items()} if changes else None
    return provider if models is None else replace(provider, models=models)


def _priced(provider: MockProvider, factor: float) -> MockProvider:
    if factor == 1.0:
        return provider
    models = {name: tuple(_times(one, factor) for one in prices) for name, prices in provider.prices.models.items()}
    return replace(provider, prices=replace(provider.prices, models=models))


def _times(price: Price, factor: float) -> Price:
    given = {kind: getattr(price, kind) for kind in _KINDS}
    return replace(price, **{kind: round(value * factor) for kind, value in given.items() if value is not None})


def _in_dollars(price: Price) -> dict[str, float]:
    given = {kind: getattr(price, kind) for kind in _KINDS}
    return {kind: value / 1e6 for kind, value in given.items() if value is not None}

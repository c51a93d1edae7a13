"""Every value of one ceiling: from one run each without it where that is exact, by simulation where it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from harness_lab.clock import Time, ns
from harness_lab.errors import InputError
from harness_lab.outcome import Refusal
from harness_lab.policies import PolicySpec, SpawnAsk, reservation_pool, shared_ledger
from harness_lab.policies.spec import compose
from harness_lab.simulate.engine import World
from harness_lab.simulate.explain import named_policy
from harness_lab.simulate.progress import Progress, Reporter
from harness_lab.simulate.questions import CHANNEL_OF, Questions
from harness_lab.simulate.sweep_result import Sweep
from harness_lab.simulate.sweep_table import CODES, Run
from harness_lab.simulate.worlds import BusyWorld, DeliveringWorld
from harness_lab.stats.estimates import check_confidence
from harness_lab.usage import count, nusd

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from harness_lab.simulate.experiment import Experiment
    from harness_lab.stats.arrays import Ints

Ceiling = Literal["calls", "tokens", "input", "fresh", "cost", "time"]
ENDLESS: Final = 10**9
"""Calls that a shared ledger without a ceiling on calls allows."""
_LEDGER: Final = {"calls": "max_steps", "cost": "max_cost_usd", "time": "max_seconds"}
_POOL: Final = {"calls": "calls", "tokens": "tokens", "input": "input", "fresh": "fresh", "cost": "cost_usd"}
_LIMITS: Final = {
    "calls": "calls", "tokens": "tokens", "input": "input", "fresh": "fresh", "cost": "cost_usd", "time": "seconds"
}  # fmt: skip
"""The same in somebody else's limiter."""
_REMEMBERS: Final = ("limits", "cache_ttl_s", "late_rate", "twice_rate")
"""What makes the answer to a call depend on other calls, or its settlement come later."""
BLOCK: Final = 250
MOST: Final = 200
"""Values that are shown where none are named."""
MOST_SIMULATED: Final = 30
"""The same where each has to be simulated."""


def sweep(
    experiment: Experiment,
    ceiling: Ceiling,
    values: npt.ArrayLike | None = None,
    *,
    policy: str | None = None,
    scenario: str | None = None,
    confidence: float = 0.95,
    progress: Progress = None,
) -> Sweep:
    """Say what every value of one ceiling of a policy would do.

    Parameters
    ----------
    experiment : Experiment
        The world, its runs and their luck.
    ceiling : {"calls", "tokens", "input", "fresh", "cost", "time"}
        Which. Calls, cost and time are those of the shared ledger; tokens (all, prompt, newly presented) those of the
        reservation pool, and so are calls and cost of a policy that has a pool and no ledger. Where somebody else's
        limiter (:mod:`harness_lab.adapters`) has such a limit, it is that one. A policy without the module gets one.
    values : array_like, optional
        Ceilings: calls, tokens, dollars or seconds. Default: up to 200 at which outcomes change.
    policy : str, optional
        Name of the policy whose ceiling it is; may be left out where there is one.
    scenario : str, optional
        Name of the scenario, one at a time; the first if None, and :meth:`Sweep.summary` says which it was.
    confidence : float, default 0.95
        Of the intervals.
    progress : bool, None or callable
        As for :meth:`Experiment.run`.

    Returns
    -------
    Sweep
        Exact: each run equals the run simulated under that value. It is read off one run without the ceiling where that
        is possible (:mod:`harness_lab.simulate.cuts`), else simulated; :attr:`Sweep.reasons` says why.

    Raises
    ------
    InputError
        If a choice does not exist, or a value is negative or not finite.
    KeyboardInterrupt
        If it is interrupted before the first block of runs is done; later it stops, keeps those that are and says so.
    """
    check_confidence(confidence)
    spec, experiment = named_policy(experiment.policies, policy), experiment.in_scenario(scenario)
    given = None if values is None else _units(ceiling, values)
    base, reasons = with_ceiling(spec, ceiling, None), reasons_against(experiment, spec, ceiling)
    reporter = Reporter(progress, experiment.runs)
    try:
        if reasons:
            runs: list[Run] = [Run(number, None) for number in range(experiment.runs)]
        else:
            runs = _recorded(experiment, base, ceiling, reporter)
    finally:
        reporter.close()
    return Sweep.of(
        experiment=experiment, spec=spec, ceiling=ceiling, runs=runs, reasons=reasons, confidence=confidence,
        values=_default(experiment, spec, ceiling, runs) if given is None else given,
    )  # fmt: skip


def with_ceiling(spec: PolicySpec, ceiling: Ceiling, value: int | None) -> PolicySpec:
    """Return a policy with one ceiling at a value (calls, tokens, nano-dollars, nanoseconds), or without."""
    foreign = _foreign(spec, ceiling)
    if foreign is not None:
        changed = foreign.with_limit(_LIMITS[ceiling], _plain(ceiling, value))
        return replace(spec, modules=tuple(changed if module is foreign else module for module in spec.modules))
    module = _module(spec, ceiling)
    name, plain = (_LEDGER if module == "shared_ledger" else _POOL)[ceiling], _plain(ceiling, value)
    if module == "shared_ledger" and ceiling == "calls" and value is None:
        plain = ENDLESS
    if spec.module(module) is not None:
        return spec.with_module(module, **{name: plain})
    if module == "shared_ledger":
        options = {"max_steps": ENDLESS} | {name: plain}
        added = shared_ledger(options.pop("max_steps"), **options)
    else:
        added = reservation_pool(**{name: plain})
    return compose(spec, added, name=spec.name)


def reasons_against(experiment: Experiment, spec: PolicySpec, ceiling: Ceiling) -> tuple[str, ...]:
    """Return why the outcomes under a ceiling cannot be read off runs without it; empty where they can."""
    found = []
    if any(getattr(module, "foreign", False) for module in spec.modules):
        found.append("a limiter of somebody else's is in it: what it answers after a refusal is its own affair")
    workload, provider = experiment._in(experiment.scene()[0])
    if spec.at_limit is not None:
        found.append("what happens at a limit (a wrap-up, a pause, a warning, another model) changes what comes after")
    if spec.scope != "run":
        found.append("runs share its budget: what one leaves, another uses")
    if (
        type(experiment.world()) not in (World, DeliveringWorld, BusyWorld)
        or workload.arrivals is not None
        or workload.faults
    ):
        found.append("many runs at once, faults, or a plan: a call that is not made changes others")
    if any(getattr(profile, name) for profile in provider.models.values() for name in _REMEMBERS):
        found.append("the provider remembers, limits rates or reports late: a call that is not made changes others")
    if not all(rule.plain for profile in workload.agents.values() for rule in profile.spawns):
        found.append("agents react to children that were refused or failed")
    pool = spec.module("reservation_pool")
    if _module(spec, ceiling) == "reservation_pool":
        asks = [rule.budget for profile in workload.agents.values() for rule in profile.spawns] + [workload.budget]
        channel = CHANNEL_OF[ceiling]
        if channel is not None and any(ask[channel] is not None for ask in asks):
            found.append("children hold what they ask for: a smaller pool refuses other children")
        if pool is not None and (pool.grants != "as-asked" or pool.inside != "stop"):
            found.append("the pool grants less than asked, or only records")
    return tuple(found)


def _foreign(spec: PolicySpec, ceiling: Ceiling) -> Any:
    """Return the module of somebody else's limiter that has such a limit, None without one."""
    limit = _LIMITS.get(ceiling, "")
    return next((module for module in spec.modules if getattr(module, "foreign", False) and module.takes(limit)), None)  # type: ignore[attr-defined]


def _module(spec: PolicySpec, ceiling: Ceiling) -> str:
    if ceiling not in CHANNEL_OF:
        raise InputError("ceiling", expected=f"one of {', '.join(CHANNEL_OF)}", got=ceiling)
    if ceiling not in _LEDGER:
        return "reservation_pool"
    only_pool = spec.module("shared_ledger") is None and spec.module("reservation_pool") is not None
    return "reservation_pool" if only_pool and ceiling in _POOL else "shared_ledger"


def _plain(ceiling: Ceiling, value: int | None) -> Any:
    """Return a value in the unit of the module's parameter."""
    if value is None or ceiling not in ("cost", "time"):
        return value
    return value / 10**9


def _units(ceiling: Ceiling, values: npt.ArrayLike) -> Ints:
    """Return ceilings in whole units, sorted and each once."""
    given = np.atleast_1d(np.asarray(values, dtype=object)).tolist()
    if ceiling == "cost":
        whole = [nusd(value, what="values") for value in given]
    elif ceiling == "time":
        whole = [ns(float(value), what="values") for value in given]
    else:
        whole = [count("values", value) for value in given]
    if not whole or min(whole) < 0:
        raise InputError("values", expected="at least one, none below 0", got=values)
    return np.unique(np.asarray(whole, dtype=np.int64))


class Asking:
    """Starts policies whose questions are written down.

    Parameters
    ----------
    spec : PolicySpec
        The policy, with or without the ceiling.
    ceiling : str
        Which ceiling.
    """

    def __init__(self, spec: PolicySpec, ceiling: Ceiling) -> None:
        self.name = spec.name
        self.scope = "run"
        self.started: list[Questions] = []
        self._start = spec.start
        self._options: dict[str, Any] = {
            "channel": CHANNEL_OF[ceiling],
            "charge_hold": spec.module(_module(spec, ceiling)).unknown_usage == "charge-hold",
            "spawns": _refuses_spawns(spec, ceiling),
            "codes": CODES[ceiling],
        }

    def start(self, run: str) -> Questions:
        """Start the policy of a run."""
        self.started.append(Questions(self._start(run), **self._options))
        return self.started[-1]


def _recorded(experiment: Experiment, base: PolicySpec, ceiling: Ceiling, reporter: Reporter) -> list[Run]:
    """Simulate every run once without the ceiling, and read its outcomes off; interrupted, keep the blocks done."""
    world, runs = experiment.world(), list[Run]()
    for first in range(0, experiment.runs, BLOCK):
        numbers = range(first, min(first + BLOCK, experiment.runs))
        asking: Any = Asking(base, ceiling)
        try:
            world.block(asking, numbers, engine="kernel", keep_calls=False, keep_decisions=False)
            runs += [Run(number, asked.outcomes()) for number, asked in zip(numbers, asking.started, strict=True)]
            reporter.advance(len(numbers))
        except KeyboardInterrupt:
            if not runs:
                raise
            break
    return runs


def _refuses_spawns(base: PolicySpec, ceiling: Ceiling) -> bool:
    """Return whether a ceiling that is reached refuses children too: asked of the module itself."""
    nothing, now = (None,) * 5, Time(0)
    policy = with_ceiling(base, ceiling, 0).start("")
    root = policy.spawn(SpawnAsk(None, (), nothing), now)
    child = SpawnAsk(root.ticket, ((0, 0, 0),), nothing)  # type: ignore[union-attr]
    return isinstance(policy.spawn(child, now), Refusal)


def _default(experiment: Experiment, spec: PolicySpec, ceiling: Ceiling, runs: Iterable[Run]) -> Ints:
    """Return the values at which outcomes change, spread over the runs' needs where there are too many."""
    known = [run.outcomes for run in runs if run.outcomes is not None]
    most = MOST if known else MOST_SIMULATED
    used = np.concatenate([one.used for one in known]) if known else _needs(experiment, spec, ceiling)
    found = np.unique(used) + 1
    if found.size > most:
        found = np.unique(np.quantile(found, np.linspace(0, 1, most), method="inverted_cdf").astype(np.int64))
    return found


def _needs(experiment: Experiment, spec: PolicySpec, ceiling: Ceiling) -> Ints:
    """Return what runs use without the ceiling."""
    nodes = experiment.with_policies(with_ceiling(spec, ceiling, None)).run(progress=False).settlements.nodes
    columns = {"calls": "calls", "input": "input_total", "cost": "cost_nusd", "time": "duration_ns"}
    if ceiling == "time":
        nodes = nodes[nodes["parent"].isna()]
    amounts = nodes["input_total"] + nodes["output"] if ceiling not in columns else nodes[columns[ceiling]]
    return amounts.fillna(0).groupby(nodes["run"]).sum().to_numpy(dtype=np.int64)

"""From a chosen ceiling to a tuned config: the figure itself, its evidence, and where it came from."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from harness_lab.analyze.overlap import digest_of as digest_of
from harness_lab.analyze.tree_shape import SHAPES
from harness_lab.errors import InputError
from harness_lab.export.config import TunedConfig
from harness_lab.export.document import Evidence, Provenance
from harness_lab.export.targets.amounts import SAFE_INTEGER
from harness_lab.policies import PolicySpec, reservation_pool, shared_ledger, tree_limits
from harness_lab.stats.estimates import percent

if TYPE_CHECKING:
    from harness_lab.analyze.ceilings import CeilingChoice
    from harness_lab.analyze.frames import Data
    from harness_lab.simulate import Experiment

FRESH: Final = timedelta(days=90)
"""How long evidence counts as fresh if nobody says otherwise."""
FACTORS: Final[dict[str, float]] = {
    "cost": 1e9, "calls": 1, "input": 1, "tokens": 1, "time": 1e9, "depth": 1, "starts": 1, "concurrency": 1,
}  # fmt: skip
"""From a policy's unit (dollars, seconds) to the table's (nano-dollars, nanoseconds)."""
UNITS: Final[dict[str, str]] = {
    "cost": "USD", "calls": "model calls", "input": "prompt tokens", "tokens": "tokens", "time": "seconds",
    "depth": "levels below the root", "starts": "starts below the root", "concurrency": "nodes below the root at once",
}  # fmt: skip
_PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "cost": ("reservation_pool.cost_usd", "call_holds.cost_usd", "shared_ledger.max_cost_usd"),
    "calls": ("reservation_pool.calls", "call_holds.calls", "shared_ledger.max_steps"),
    "input": ("reservation_pool.input", "call_holds.input"),
    "tokens": ("reservation_pool.tokens", "call_holds.tokens"),
    "time": ("shared_ledger.max_seconds",),
    "depth": ("tree_limits.max_depth",),
    "starts": ("tree_limits.max_calls",),
    "concurrency": ("tree_limits.max_concurrent",),
}
STALE_WHEN: Final = (
    "another model behind the same name, another prompt or tool set, new prices, or another mix of tasks; "
    "`harness-lab check` holds it against newer records"
)


def config_of(
    choice: CeilingChoice,
    records: Data,
    *,
    policy: PolicySpec | None = None,
    experiment: Experiment | None = None,
    seed: int | None = None,
    today: date | None = None,
    fresh: timedelta = FRESH,
) -> TunedConfig:
    """Put a chosen ceiling into a policy, with its evidence and provenance.

    Parameters
    ----------
    choice : CeilingChoice
        What :func:`harness_lab.analyze.ceiling` chose.
    records : Settlements or DataFrame
        The records that it was chosen from; their digest goes into the file.
    policy : PolicySpec, optional
        Where the ceiling goes: into the first of its modules that has the channel for a whole run. If None, a policy of
        its own: a reservation pool; a shared ledger without a limit of steps for time; tree limits for depth, starts
        and concurrency.
    experiment : Experiment, optional
        The simulation behind it, if there was one: its digest, seed and prices go into the file.
    seed : int, optional
        Where there was luck without an experiment.
    today : date, optional
        Date of the file; the day in UTC if None.
    fresh : timedelta
        From `today` on: how long the evidence counts as fresh.

    Raises
    ------
    InputError
        If the choice was declined, was made by groups, or the policy has no place for it.

    Notes
    -----
    The ceiling is written exactly (to the nano-dollar or token), so that the figure in the file, in the report and in
    every export is one figure.
    """
    if choice.ceiling is None:
        raise InputError("choice", expected="a ceiling", got=f"declined: {choice.declined}")
    if choice.parts:
        raise InputError("choice", expected="one ceiling", got=f"one for each of {len(choice.parts)} groups")
    base = policy if policy is not None else _alone(choice.channel)
    name = _place(base, choice.channel)
    kind, _, parameter = name.partition(".")
    factor = FACTORS[choice.channel]
    changed = base.with_module(kind, **{parameter: choice.ceiling if factor == 1 else choice.ceiling / factor})
    day = today if today is not None else datetime.now(UTC).date()
    provenance = Provenance(
        date=day.isoformat(),
        harness_lab=version("harness-lab"),
        seed=experiment.seed if experiment is not None else seed,
        experiment_sha256=None if experiment is None else experiment.digest(),
        data_sha256=digest_of(records),
        stale_after=(day + fresh).isoformat(),
    )
    evidence = evidence_of_choice(choice, name, what="run (the whole tree)")
    prices = None if experiment is None else experiment.provider.prices
    return TunedConfig(changed, provenance=provenance, evidence=(evidence,), prices=prices)


def evidence_of_choice(choice: CeilingChoice, value: str, *, what: str, of: str = "runs") -> Evidence:
    """Return what stands behind a ceiling: n, interval, target, method.

    Parameters
    ----------
    choice : CeilingChoice
        A ceiling that was not declined.
    value : str
        The parameter that it goes into, ``module.parameter``.
    what : str
        What a unit is counted per.
    of : str
        What n counts.
    """
    bound, factor = choice.bound, FACTORS[choice.channel]
    low = None if bound.value is None else bound.value / factor
    high = (choice.ceiling or 0) / factor
    touched = "; a run that wants more is refused a child or waits, and may still complete" * (choice.channel in SHAPES)
    return Evidence(
        value=value,
        chosen=high,
        unit=f"{UNITS[choice.channel]} per {what}",
        target=f"at least {percent(choice.target)} of {of} complete",
        target_share=choice.target,
        method=f"smallest ceiling whose lower confidence bound of completion reaches the target; {bound.method}",
        n=bound.n,
        clusters=bound.clusters,
        confidence=choice.confidence,
        interval=None if low is None else (min(low, high), high),
        note=f"interval: from the quantile of the sample to its upper confidence bound, which is the ceiling{touched}",
        stale_when=STALE_WHEN,
    )


def _alone(channel: str) -> PolicySpec:
    """Return a policy that has the channel and limits nothing yet."""
    name = f"{channel} ceiling"
    if channel in SHAPES:
        return tree_limits(name=name)
    return shared_ledger(SAFE_INTEGER, name=name) if channel == "time" else reservation_pool(name=name)


def _place(policy: PolicySpec, channel: str) -> str:
    names = _PARAMETERS[channel]
    found = next((name for name in names if policy.module(name.partition(".")[0]) is not None), None)
    if found is None:
        expected = f"a module with one of {', '.join(names)}"
        raise InputError("policy", expected=expected, got=[module.kind for module in policy.modules])
    tree = policy.module("tree_limits")
    if channel == "concurrency" and tree.concurrency != "tree":
        expected = 'tree_limits.concurrency = "tree", over which the ceiling was chosen'
        raise InputError("policy", expected=expected, got=tree.concurrency)
    return found

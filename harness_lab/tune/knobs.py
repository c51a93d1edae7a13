"""What a search may turn, what it shall reach, and what must hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness_lab.analyze.figures import METRICS
from harness_lab.analyze.wide import LARGER
from harness_lab.errors import InputError
from harness_lab.tune.parameters import with_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness_lab.policies import PolicySpec

_NEEDED: Final = "optuna is not installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One number of the policy and the range it is searched in.

    Parameters
    ----------
    name : str
        ``module.parameter``, as :func:`harness_lab.tune.parameters` lists them.
    low, high : int or float
        Ends of the range, included; whole numbers stay whole.
    log : bool, default False
        Whether values are spread evenly by ratio.
    """

    name: str
    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InputError(f"range of {self.name}", expected="low below high", got=(self.low, self.high))
        if self.log and self.low <= 0:
            raise InputError(f"range of {self.name}", expected="low above 0 for log", got=self.low)

    def suggest(self, trial: Any) -> float:
        """Ask an optuna trial for a value."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return int(trial.suggest_int(self.name, self.low, self.high, log=self.log))
        return float(trial.suggest_float(self.name, self.low, self.high, log=self.log))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A metric that has to stay on one side of a value.

    Parameters
    ----------
    metric : str
        The metric.
    value : float
        The value, in the display unit (share, dollars, seconds).
    least : bool
        True: the metric is at least this; False: at most.
    """

    metric: str
    value: float
    least: bool

    def excess(self, figure: float) -> float:
        """Return how far a figure is on the wrong side; at most 0 where it holds."""
        return self.value - figure if self.least else figure - self.value

    def __str__(self) -> str:
        return f"{METRICS[self.metric][0]} {'>=' if self.least else '<='} {self.value:g}"


def bounds(at_least: Mapping[str, float] | None, at_most: Mapping[str, float] | None) -> tuple[Bound, ...]:
    """Read the constraints."""
    found = [Bound(metric=name, value=value, least=True) for name, value in (at_least or {}).items()]
    found += [Bound(metric=name, value=value, least=False) for name, value in (at_most or {}).items()]
    check_metrics([one.metric for one in found], what="constraints")
    for one in found:
        top = 1.0 if one.metric == "completed" else math.inf
        if not 0 <= one.value <= top:
            share = "a share in [0, 1]" if one.metric == "completed" else "a number of at least 0"
            raise InputError("constraints", expected=f"{share} for {one.metric}", got=one.value)
    return tuple(found)


def check_metrics(names: Sequence[str], *, what: str) -> None:
    """Raise if one is no metric."""
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise InputError(what, expected=f"some of {', '.join(METRICS)}", got=unknown)


def variant(base: PolicySpec, values: Mapping[str, float], name: str) -> PolicySpec:
    """Return the base policy with other numbers and another name."""
    policy = base
    for parameter, value in values.items():
        policy = with_parameter(policy, parameter, value, rename=name)
    return policy


def direction(metric: str) -> str:
    """Return optuna's word for what is better."""
    return "maximize" if metric in LARGER else "minimize"


def optuna() -> Any:
    """Import optuna, or say how to get it.

    Raises
    ------
    InputError
        If it is not installed.
    """
    try:
        import optuna as found
    except ImportError:
        raise InputError("tune", expected="optuna", got=_NEEDED, hint="pip install 'harness-lab[tune]'") from None
    return found

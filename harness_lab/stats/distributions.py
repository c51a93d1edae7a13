"""A distribution as a value: a name and its parameters, as they stand in a scenario file.

A :class:`Distribution` is frozen, hashable and serialisable. It holds no random state: whoever wants draws asks for
quantiles (:meth:`Distribution.ppf`) of his own uniform numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.stats

from harness_lab.errors import InputError

Floats = npt.NDArray[np.float64]

_HINT = (
    'use a scipy.stats name such as "lognorm", "gamma", "weibull_min", "uniform", "poisson", or "constant", "empirical"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A named distribution with its parameters.

    Use the constructors :meth:`of`, :meth:`constant`, :meth:`empirical` or :meth:`from_dict`.

    Parameters
    ----------
    dist : str
        Name of a distribution of ``scipy.stats``, or ``"constant"``, or ``"empirical"``.
    params : tuple of (str, float)
        Shape parameters under their scipy names, then ``loc``, and ``scale`` where it is continuous. Empty for the
        other two.
    values : tuple of float
        The value of a constant, or the sorted sample of an empirical distribution. Empty otherwise.
    low, high : float or None
        Values outside are moved to the nearest end (clipped, not truncated). None: no clip at that side.

    Raises
    ------
    InputError
        If the name, a parameter or the clip is not valid.

    Examples
    --------
    >>> calls = Distribution.of("lognorm", s=0.8, scale=1500, high=4000)
    >>> calls.ppf([0.5, 0.999]).tolist()
    [1500.0, 4000.0]
    >>> Distribution.from_dict(calls.to_dict()) == calls
    True
    """

    dist: str
    params: tuple[tuple[str, float], ...] = ()
    values: tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else _number(name, value))
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InputError("low", expected=f"at most high = {self.high:g}", got=self.low)
        if self.dist in ("constant", "empirical"):
            _check_values(self.dist, self.params, self.values)
        else:
            object.__setattr__(self, "params", _check_params(self.dist, self.params))

    @classmethod
    def of(cls, dist: str, *, low: float | None = None, high: float | None = None, **params: float) -> Self:
        """Make a distribution from a ``scipy.stats`` name and its parameters; ``loc`` is 0 and ``scale`` 1 by default.

        Discrete ones (``poisson``, ``nbinom`` ...) have no ``scale``.

        Raises
        ------
        InputError
            If the name or a parameter is not valid; the message lists the parameters the family takes.
        """
        return cls(dist=dist, params=tuple(params.items()), low=low, high=high)

    @classmethod
    def constant(cls, value: float, *, low: float | None = None, high: float | None = None) -> Self:
        """Make a distribution that always gives `value`."""
        return cls(dist="constant", values=(_number("value", value),), low=low, high=high)

    @classmethod
    def empirical(
        cls, values: Sequence[float] | npt.NDArray[Any], *, low: float | None = None, high: float | None = None
    ) -> Self:
        """Make a distribution that gives the recorded `values` again, each with the same probability."""
        checked = sorted(_number("values", value) for value in np.asarray(values).tolist())
        return cls(dist="empirical", values=tuple(checked), low=low, high=high)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | float) -> Self:
        """Read the form that stands in a scenario file; a plain number is a constant.

        Parameters
        ----------
        data : mapping or number
            ``{dist = "lognorm", s = 0.8, scale = 1500, low = 100}``, ``{dist = "constant", value = 5}``,
            ``{dist = "empirical", values = [...]}`` or ``5``.

        Raises
        ------
        InputError
            If the form is not one of these.
        """
        if not isinstance(data, Mapping):
            return cls.constant(data)
        rest = dict(data)
        name = rest.pop("dist", None)
        if not isinstance(name, str):
            raise InputError("dist", expected="the name of a distribution", got=name, hint=_HINT)
        if name == "constant":
            return cls.constant(**_only(rest, name, ("value",), ("low", "high")))
        if name == "empirical":
            return cls.empirical(**_only(rest, name, ("values",), ("low", "high")))
        return cls.of(name, **{str(key): value for key, value in rest.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return the form that :meth:`from_dict` reads."""
        clip = {name: value for name in ("low", "high") if (value := getattr(self, name)) is not None}
        if self.dist == "constant":
            return {"dist": "constant", "value": self.values[0], **clip}
        if self.dist == "empirical":
            return {"dist": "empirical", "values": list(self.values), **clip}
        return {"dist": self.dist, **dict(self.params), **clip}

    def ppf(self, q: npt.ArrayLike) -> Floats:
        """Return quantiles (the inverse of the distribution function).

        Parameters
        ----------
        q : array_like of float
            Probabilities in [0, 1], any shape.

        Returns
        -------
        ndarray of float64, same shape
            For an empirical distribution the smallest recorded value below or at which lies at least a share `q`
            (no interpolation). Infinite where the family has no bound and `q` is 0 or 1, unless clipped.
        """
        q = np.asarray(q, dtype=np.float64)
        if q.size and not (np.nanmin(q) >= 0 and np.nanmax(q) <= 1 and not np.isnan(q).any()):
            raise InputError("q", expected="probabilities in [0, 1]", got=q.ravel()[:3].tolist())
        if self.values:
            sample = np.asarray(self.values)
            at = np.clip(np.ceil(q * sample.size - 1e-9).astype(np.int64) - 1, 0, sample.size - 1)
            raw = sample[at]
        else:
            raw = np.asarray(self.frozen().ppf(q), dtype=np.float64)
        return np.asarray(np.clip(raw, self.low, self.high), dtype=np.float64)

    def mean(self) -> float:
        """Return the mean, the clip included; ``inf`` where the family has none that is finite.

        Raises
        ------
        InputError
            If the mean does not exist (a Cauchy distribution).
        """
        if self.values:
            return float(np.clip(np.asarray(self.values), self.low, self.high).mean())
        frozen = self.frozen()
        if self.low is None and self.high is None:
            mean = float(frozen.mean())
            if math.isnan(mean):
                raise InputError("dist", expected="a distribution that has a mean", got=self.dist)
            return mean
        return self._clipped_mean(frozen)

    def _clipped_mean(self, frozen: Any) -> float:
        bottom, top = (float(end) for end in frozen.support())
        low = bottom if self.low is None else self.low
        high = top if self.high is None else self.high
        inner = (
            float(frozen.expect(lambda x: x, lb=max(low, bottom), ub=min(high, top)))
            if max(low, bottom) < min(high, top)
            else 0.0
        )
        below = 0.0 if self.low is None else self.low * float(frozen.cdf(self.low))
        above = 0.0 if self.high is None else self.high * float(frozen.sf(self.high))
        return inner + below + above

    def frozen(self) -> Any:
        """Return the frozen ``scipy.stats`` distribution, without the clip.

        Raises
        ------
        InputError
            If the distribution is constant or empirical.
        """
        if self.values:
            raise InputError("dist", expected="a scipy.stats family", got=self.dist)
        return getattr(scipy.stats, self.dist)(**dict(self.params))

    def __str__(self) -> str:
        if self.dist == "constant":
            return f"constant {self.values[0]:g}"
        if self.dist == "empirical":
            return f"empirical (n = {len(self.values)})"
        inner = ", ".join(f"{name}={value:.4g}" for name, value in self.params)
        clip = [f"{sign} {value:g}" for sign, value in ((">=", self.low), ("<=", self.high)) if value is not None]
        return f"{self.dist}({inner}){' clipped ' + ' '.join(clip) if clip else ''}"


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not math.isfinite(value):
        raise InputError(name, expected="a finite number", got=value)
    return float(value)


def _only(rest: dict[str, Any], dist: str, needed: tuple[str, ...], allowed: tuple[str, ...]) -> dict[str, Any]:
    if not set(needed) <= set(rest) <= {*needed, *allowed}:
        raise InputError(f"dist={dist}", expected=f"the keys {', '.join((*needed, *allowed))}", got=sorted(rest))
    return rest


def _check_values(dist: str, params: tuple[tuple[str, float], ...], values: tuple[float, ...]) -> None:
    if params or not values or (dist == "constant" and len(values) != 1):
        expected = "one value" if dist == "constant" else "at least one value"
        raise InputError(f"dist={dist}", expected=f"{expected} and no other parameter", got=(params, values[:3]))
    for value in values:
        _number("values", value)
    if list(values) != sorted(values):
        raise InputError("values", expected="sorted values (use Distribution.empirical)", got=values[:3])


def _check_params(dist: str, params: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
    family = getattr(scipy.stats, dist, None)
    if not isinstance(family, (scipy.stats.rv_continuous, scipy.stats.rv_discrete)):
        raise InputError("dist", expected="the name of a distribution", got=dist, hint=_HINT)
    shapes = tuple(name.strip() for name in family.shapes.split(",")) if family.shapes else ()
    given = {name: _number(name, value) for name, value in params}
    placed = {"loc": 0.0, "scale": 1.0} if isinstance(family, scipy.stats.rv_continuous) else {"loc": 0.0}
    takes = f"the parameters {', '.join((*shapes, *placed))}"
    if not set(shapes) <= set(given) <= {*shapes, *placed}:
        raise InputError(f"dist={dist}", expected=takes, got=sorted(given))
    full = {name: given[name] for name in shapes} | {name: given.get(name, value) for name, value in placed.items()}
    if full.get("scale", 1.0) <= 0 or math.isnan(float(family(**full).support()[0])):
        raise InputError(f"dist={dist}", expected=f"valid values of {takes}, scale > 0", got=full)
    return tuple(full.items())

"""Lower tolerance bounds that rest on a model: how far apart they lie says how much the model decides, not the data.

References
----------
.. [1] Hanson, D. L., Koopmans, L. H. (1964). Tolerance limits for the class of distributions with increasing hazard
   rates. Annals of Mathematical Statistics 35(4), 1561-1570. https://doi.org/10.1214/aoms/1177700380
.. [2] Vangel, M. G. (1994). One-sided nonparametric tolerance limits. Communications in Statistics - Simulation and
   Computation 23(4), 1137-1154. https://doi.org/10.1080/03610919408813222
.. [3] Owen, D. B. (1968). A survey of properties and applications of the noncentral t-distribution. Technometrics
   10(3), 445-478. https://doi.org/10.1080/00401706.1968.10490590
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import beta, nct

from harness_lab.errors import InputError
from harness_lab.stats.arrays import sample
from harness_lab.stats.estimates import check_confidence

if TYPE_CHECKING:
    import numpy.typing as npt

LOGNORMAL = "lognormal"
LOG_CONCAVE = "log-concave (Hanson-Koopmans)"
LOG_CONCAVE_OF_LOGS = "log-concave in logarithms (Hanson-Koopmans)"


def lower_bounds_by_model(
    values: npt.ArrayLike, *, coverage: float = 0.95, confidence: float = 0.95
) -> dict[str, float]:
    """Return what several models say that a share of the future lies above.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        Independent values, at least 2, above 0.
    coverage : float, default 0.95
        Share of the future that shall lie above the bound.
    confidence : float, default 0.95
        Confidence of that, if the model is right.

    Returns
    -------
    dict of str to float
        In the values' unit, by model: lognormal [3]_; any log-concave distribution [1]_, and the same of the logarithms
        [2]_. May be negative. Of equal values each is that value.

    Raises
    ------
    InputError
        If there are fewer than two values, or one is not above 0.

    Examples
    --------
    >>> found = lower_bounds_by_model([31_211, 32_296, 47_365, 47_965, 48_253, 62_616])
    >>> [round(bound) for bound in found.values()]
    [16162, -49225, 5246]
    """
    x = np.sort(sample(values, what="values"))
    check_confidence(coverage, what="coverage")
    check_confidence(confidence)
    if x.size < 2 or x[0] <= 0:
        raise InputError("values", expected="at least two, all above 0", got=x[:5].tolist())
    logs, n = np.log(x), x.size
    normal = float(nct.ppf(confidence, n - 1, float(ndtri(coverage)) * math.sqrt(n))) / math.sqrt(n)
    reach = hanson_koopmans_factor(n, coverage=coverage, confidence=confidence)
    return {
        LOGNORMAL: math.exp(float(logs.mean()) - normal * float(logs.std(ddof=1))),
        LOG_CONCAVE: float(x[-1] - reach * (x[-1] - x[0])),
        LOG_CONCAVE_OF_LOGS: math.exp(float(logs[-1] - reach * (logs[-1] - logs[0]))),
    }


@cache
def hanson_koopmans_factor(n: int, *, coverage: float = 0.95, confidence: float = 0.95) -> float:
    """Return b of the bound ``largest - b * (largest - smallest)``, at least 1.

    For the worst log-concave distribution, whose logarithm is a line, the bound lies below the share ``1 - coverage``
    where ``v * w ** b`` does: `v` is the largest of n uniform values, and `w` the smallest of n - 1 others.

    Examples
    --------
    >>> round(hanson_koopmans_factor(6), 3), hanson_koopmans_factor(59)
    (3.561, 1.0)
    """
    rest = 1 - coverage

    def held(reach: float) -> float:
        """Return the confidence that a factor gives."""

        def below(v: float) -> float:
            return float(beta.pdf(v, n, 1) * (1 - (1 - (rest / v) ** (1 / reach)) ** (n - 1)))

        return rest**n + float(quad(below, rest, 1, epsabs=1e-10)[0])

    if held(1.0) >= confidence:
        return 1.0  # the smallest value itself is bound enough
    high = 2.0
    while held(high) < confidence:
        high *= 2
    return float(brentq(lambda reach: held(reach) - confidence, 1.0, high, xtol=1e-10))

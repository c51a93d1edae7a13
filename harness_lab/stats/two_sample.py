"""Whether a model's draws could be new records: two-sample tests against runs that the model has not seen.

The distance between held-out records and draws is held against the distances that the records show among themselves:
they are split anew, whole clusters at a time, the first part is drawn from as often as the model was, and its distance
to the second is taken. So a clustered sample is not taken for an independent one, and the noise of a finite fit counts.

References
----------
.. [1] Szekely, G. J., Rizzo, M. L. (2013). Energy statistics: a class of statistics based on distances. Journal of
   Statistical Planning and Inference 143(8), 1249-1272. https://doi.org/10.1016/j.jspi.2013.03.018
.. [2] Phipson, B., Smyth, G. K. (2010). Permutation p-values should never be zero. Statistical Applications in Genetics
   and Molecular Biology 9(1), 39. https://doi.org/10.2202/1544-6115.1585
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import cdist

from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from harness_lab.stats.arrays import Floats

    Distance = Callable[[Floats, Floats], float]

MAX_POINTS = 700
"""Points of a sample that the energy distance looks at."""


def ks_distance(a: Floats, b: Floats) -> float:
    """Return the largest distance between two samples' distribution functions, shape (n, 1) and (m, 1)."""
    x, y = np.sort(a.ravel()), np.sort(b.ravel())
    at = np.concatenate([x, y])
    return float(np.abs(np.searchsorted(x, at, "right") / x.size - np.searchsorted(y, at, "right") / y.size).max())


def energy_distance(a: Floats, b: Floats) -> float:
    """Return the energy distance of two samples in several dimensions [1]_, shape (n, d) and (m, d)."""
    a, b = _evenly(a), _evenly(b)
    return float(2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean())


def new_records_p(
    train: Floats,
    held_out: Floats,
    drawn: Floats,
    *,
    clusters: npt.NDArray[np.int64],
    distance: Distance,
    resamples: int = 199,
    seed: int = 0,
) -> tuple[float, float]:
    """Test whether draws of a model fitted to `train` could be records like `held_out`.

    Parameters
    ----------
    train, held_out, drawn : ndarray, shape (n, d)
        What the model was fitted to, records it has not seen, and its draws.
    clusters : ndarray of int, shape (len(train) + len(held_out),)
        Cluster of each record; records of one cluster are split together.
    distance : callable
        Of two samples, larger the further apart.
    resamples : int
        New splits.
    seed : int
        Of the splits.

    Returns
    -------
    distance, p_value : float
        Of held-out records and draws; share of splits (the observed one among them, [2]_) at least as far apart.

    Raises
    ------
    InputError
        If a sample is empty, or there are fewer than two clusters.
    """
    if min(len(train), len(held_out), len(drawn)) == 0:
        raise InputError("samples", expected="at least one value each", got=[len(train), len(held_out), len(drawn)])
    names = np.unique(clusters)
    if names.size < 2:
        raise InputError("clusters", expected="at least two", got=names.size)
    rng = np.random.default_rng(seed)
    records = np.concatenate([train, held_out])
    observed = distance(held_out, drawn)
    further = 1
    for _ in range(resamples):
        first = _split(clusters, names, len(train), rng)
        part = records[first]
        again = part[rng.integers(0, len(part), len(drawn))]
        further += distance(records[~first], again) >= observed
    return observed, further / (resamples + 1)


def _split(
    clusters: npt.NDArray[np.int64], names: npt.NDArray[np.int64], wanted: int, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Return which records are in the first part: whole clusters, as many as wanted, neither part empty."""
    order = rng.permutation(names)
    counts = np.unique(clusters, return_counts=True)[1]
    sizes = counts[np.searchsorted(names, order)]
    taken = int(np.clip(np.searchsorted(np.cumsum(sizes), wanted) + 1, 1, names.size - 1))
    return np.isin(clusters, order[:taken])


def _evenly(points: Floats) -> Floats:
    if len(points) <= MAX_POINTS:
        return points
    kept: Floats = points[np.linspace(0, len(points) - 1, MAX_POINTS).astype(int)]
    return kept

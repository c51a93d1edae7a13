"""Checks of the arrays that come in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from harness_lab.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def sample(values: npt.ArrayLike, *, what: str = "sample", infinite: bool = False) -> Floats:
    """Return `values` as a one-dimensional float64 array without unknowns.

    Parameters
    ----------
    values : array_like of float
        Shape (n,). Unknown values must have been set apart (and counted) before.
    what : str
        Name for the error message.
    infinite : bool
        Whether infinite values are accepted.

    Raises
    ------
    InputError
        If the shape is another, or a value is unknown or not finite.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(what, expected="numbers without unknown values", got=values) from None
    if array.ndim != 1:
        raise InputError(what, expected="a one-dimensional array", got=f"shape {array.shape}")
    wrong = np.isnan(array) if infinite else ~np.isfinite(array)
    if wrong.any():
        raise InputError(
            what, expected="known, finite numbers", got=f"{int(wrong.sum())} unknown of {array.size}",
            hint="Set unknown values apart and count them",
        )  # fmt: skip
    return array


def codes(groups: npt.ArrayLike, *, n: int, what: str = "clusters") -> Ints:
    """Return the group of each value as an integer from 0.

    Parameters
    ----------
    groups : array_like
        Shape (n,): a label for each value, of any type that can be told apart.
    n : int
        Number of values.
    what : str
        Name for the error message.

    Raises
    ------
    InputError
        If there is not one label for each value.
    """
    labels: npt.NDArray[Any] = np.asarray(groups)
    if labels.shape != (n,):
        raise InputError(what, expected=f"one label for each of {n} values", got=f"shape {labels.shape}")
    if labels.dtype == np.int64 and n and labels.min() >= 0 and labels.max() < n and np.bincount(labels).all():
        return labels  # codes already
    if labels.dtype == object:
        labels = labels.astype(str)
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64).reshape(n)


def flags(values: npt.ArrayLike, *, n: int, what: str) -> Bools:
    """Return `values` as booleans, one for each of `n`.

    Raises
    ------
    InputError
        If there is not one boolean for each value.
    """
    array = np.asarray(values)
    if array.shape != (n,) or array.dtype != np.bool_:
        raise InputError(what, expected=f"one boolean for each of {n} values", got=f"{array.dtype} {array.shape}")
    return array


def dot(left: Floats, right: Floats) -> float:
    """Return the sum of the products of two arrays, shape (n,) each, without BLAS.

    BLAS hands long ones to threads of its own; where other work holds the cores, the call waits for them, which was
    seen to take a hundred times as long as the sum itself.

    Examples
    --------
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.einsum("i,i->", left, right))

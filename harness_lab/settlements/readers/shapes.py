"""Where a source counts its cached tokens: its own total tells, row by row."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Parts(NamedTuple):
    """Prompt tokens, disjoint, and their sum. All None: the source contradicts itself."""

    fresh: int | None
    read: int | None
    write: int | None
    total: int | None


CONTRADICTION = Parts(None, None, None, None)


def disjoint(
    *,
    given: int | None,
    read: int | None,
    write: int | None,
    output: int | None,
    total: int | None,
    usual: Literal["inside", "beside"],
) -> Parts:
    """Return disjoint prompt counts, whatever the source's convention.

    Parameters
    ----------
    given, read, write : int or None
        The source's input count, and its cache reads and writes.
    output : int or None
        All that was generated.
    total : int or None
        The source's own sum of all, which tells where the cached tokens are counted; None: it has none.
    usual : {"inside", "beside"}
        Where the format counts cached tokens as documented: used where the total does not tell.

    Returns
    -------
    Parts
        ``CONTRADICTION`` where the total fits neither way: flagged, not guessed.

    Examples
    --------
    >>> disjoint(given=1_000, read=500, write=0, output=200, total=1_200, usual="beside")
    Parts(fresh=500, read=500, write=0, total=1000)
    >>> disjoint(given=1_000, read=500, write=0, output=200, total=1_700, usual="inside")
    Parts(fresh=1000, read=500, write=0, total=1500)
    >>> disjoint(given=1_000, read=500, write=0, output=200, total=1_450, usual="inside") == CONTRADICTION
    True
    """
    if given is None:
        return CONTRADICTION
    cached = (read or 0) + (write or 0)
    inside = usual == "inside"
    if total is not None and output is not None:
        fits_inside, fits_beside = total == given + output, total == given + cached + output
        if not (fits_inside or fits_beside):
            return CONTRADICTION
        inside = fits_inside if fits_inside != fits_beside else inside
    if inside and cached > given:
        return CONTRADICTION
    whole = given if inside else given + cached
    if read is None:
        return Parts(None, None, None, whole)
    return Parts(whole - cached, read, write or 0, whole)

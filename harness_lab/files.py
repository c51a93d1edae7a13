"""Files that are written whole or not at all, and never in the place of something that is no file."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)

_NUMBERS = count()
"""Names of unfinished files: two that are written at once, in one folder, must not meet."""


def target(path: str | os.PathLike[str]) -> Path:
    """Return the place where a file named `path` is to be written: links are followed, and stay.

    Parameters
    ----------
    path : str or os.PathLike
        A file that exists, and will be replaced, or one that does not yet.

    Returns
    -------
    Path
        The place itself, with no link left in it.

    Raises
    ------
    InputError
        If a folder, a device, a pipe or a socket is there (moving a finished file into its place would
        destroy it), if the links lead round in a circle, or if the place cannot be looked at.
    """
    try:
        place = Path(os.path.realpath(path))
        mode = place.stat().st_mode
    except FileNotFoundError:
        return place
    except (OSError, ValueError, RuntimeError) as error:
        raise _unwritable(path, error) from None
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
        raise InputError(str(path), expected="a file, new or to be replaced", got=kind)
    return place


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a place beside `path` to write to, and move it to `path` when the block ends well.

    Whoever reads `path` meanwhile sees the old file or the new one, never a part; after an exception the old
    one is as it was and nothing is left beside it.

    Raises
    ------
    InputError
        See :func:`target`; also if the folder does not exist, is not writable or is full.
    """
    place = target(path)
    beside = place.with_name(f".{os.getpid()}-{next(_NUMBERS)}.part")
    try:
        yield beside
        beside.replace(place)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write `text` as UTF-8, whole or not at all, and return `path`; errors as in :func:`replacing`."""
    with replacing(path) as beside:
        beside.write_bytes(text.encode())
    return Path(path)


def remove(path: str | os.PathLike[str]) -> None:
    """Remove the file `path` if it is there; errors as in :func:`target`."""
    try:
        target(path).unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str | os.PathLike[str], error: Exception) -> InputError:
    number = getattr(error, "errno", None)
    reason = os.strerror(number) if number else str(error)
    return InputError(str(path), expected="a place that can be written to", got=reason)

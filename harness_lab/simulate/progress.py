"""How far a simulation is: a bar with the time that is left, or somebody who is told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

Progress = bool | None | Callable[[int, int], None]
"""True: a bar; False: none; None: a bar where somebody may be looking; a callable is told (trees done, in all)."""
_AFTER_S = 1.0
"""A bar is drawn once a simulation has taken that long."""


class Reporter:
    """Tells how many trees are done.

    Parameters
    ----------
    progress : bool, None or callable
        See :data:`Progress`. The bar goes to standard error.
    trees : int
        Trees in all, at most.
    """

    __slots__ = ("_bar", "_done", "_tell", "_trees")

    def __init__(self, progress: Progress, trees: int) -> None:
        self._tell = progress if callable(progress) else None
        self._trees = trees
        self._done = 0
        self._bar: tqdm[Any] | None = None
        if progress is True or (progress is None and somebody_looks()):
            from tqdm.auto import tqdm

            delay = 0.0 if progress else _AFTER_S
            self._bar = tqdm(total=trees, unit="run", file=sys.stderr, leave=False, delay=delay)

    def advance(self, trees: int) -> None:
        """Take note that some more are done."""
        self._done += trees
        if self._bar is not None:
            self._bar.update(trees)
        if self._tell is not None:
            self._tell(self._done, self._trees)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


def somebody_looks() -> bool:
    """Whether standard error is a terminal, or this is a notebook."""
    if "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
        if shell is not None and type(shell).__name__ == "ZMQInteractiveShell":
            return True
    return bool(getattr(sys.stderr, "isatty", lambda: False)())

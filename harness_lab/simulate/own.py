"""What an agent knows of its own use, and how far it is told to go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.agents.loop import amounts_of
from harness_lab.outcome import CHANNELS

if TYPE_CHECKING:
    from harness_lab.agents.ports import Reply
    from harness_lab.usage import Amounts


class Own:
    """What one node used itself, against what it was told.

    Parameters
    ----------
    told : Amounts or None
        The budget that it is told; None: it knows of none.
    at : float
        The share at which it winds down; above 1: never.

    Attributes
    ----------
    winding_down : bool
        It has reached the share: no more children, one more call.
    """

    __slots__ = ("_at", "_told", "_used", "winding_down")

    def __init__(self, told: Amounts | None, at: float) -> None:
        self._told = told or ()
        self._at = at
        self._used = [0] * len(CHANNELS)
        self.winding_down = False

    def take(self, reply: Reply) -> None:
        """Count what a call used."""
        for i, amount in enumerate(amounts_of(reply)):
            self._used[i] += amount or 0

    def reaches(self, share: float) -> bool:
        """Whether it used that share of what it was told, in any channel."""
        pairs = zip(self._told, self._used, strict=False)
        return any(most is not None and used >= share * most for most, used in pairs)

    @property
    def knows(self) -> bool:
        """Whether it was told a limit in any channel."""
        return any(most is not None for most in self._told)

    def is_done(self, reply: Reply) -> bool:
        """Count a call; return whether it was the last one of an agent that winds down."""
        self.take(reply)
        was = self.winding_down
        self.winding_down = self.winding_down or self.reaches(self._at)
        return was

"""Real problems that users of public projects reported, retold as small cases of our own for what bounds a tree.

Of the collection of 64 these are the ones about enforcement and trees; those about records, statistics and simulation
are tests (``tests/cases``). A case that has several halves is several cases here: ``A-07`` and ``A-07-queue``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness_lab.conformance.areas import public_book, public_money, public_trees, public_worlds
from harness_lab.conformance.shapes import Area, differences, dispatched, ours_only

if TYPE_CHECKING:
    from harness_lab.conformance.shapes import Answer, Case

BY_OPERATION: Final = {
    "build with each value": public_book.built,
    **public_money.OPERATIONS,
    **public_trees.OPERATIONS,
    **public_worlds.OPERATIONS,
}


def _answer(case: Case, _preset: str | None) -> Answer:
    return dispatched(case, {"steps": public_book.story}, BY_OPERATION)


AREA: Final = Area(
    name="public-cases",
    parts=frozenset({"public-cases"}),
    answer=_answer,
    presets=ours_only,
    compare=differences,
)
"""Public cases of enforcement and trees."""

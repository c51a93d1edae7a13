"""The ruler: what a limit means, asked of any limiter in the same words.

A case says the limit by name (``limits``), for whatever limiter it is put to, and which of our modules is meant by it
(``modules``). Its answers can be seen from outside: what was let through, and what was billed for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness_lab.conformance.areas import public_book
from harness_lab.conformance.shapes import Area, differences, dispatched, ours_only

if TYPE_CHECKING:
    from harness_lab.conformance.shapes import Answer, Case


def _answer(case: Case, _preset: str | None) -> Answer:
    return dispatched(case, {"steps": public_book.story}, {})


AREA: Final = Area(
    name="ruler",
    parts=frozenset({"ruler"}),
    answer=_answer,
    presets=ours_only,
    compare=differences,
)
"""Cases for any limiter."""

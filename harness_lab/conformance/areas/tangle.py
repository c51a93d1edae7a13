"""Cases of tangle's conserved pool and token floors.

Cases about what the library has no part for are answered by nobody, and so fail: they are not called inapplicable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.conformance.areas import tangle_floors, tangle_limits, tangle_money, tangle_pool
from harness_lab.conformance.areas.tangle_words import agreement
from harness_lab.conformance.shapes import Area, UnknownShape, ours_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.conformance.shapes import Answer, Case

PARTS: Final = (
    "admission", "concurrency", "cost", "deadline", "driver", "failure-class", "floor", "keys", "never-settled",
    "per-worker", "pool", "refusal-text", "resume", "settlement", "supervisor",
)  # fmt: skip
ANSWERS: Final[dict[str, Callable[[Case], Answer]]] = {
    "pool": tangle_pool.pool,
    "floor": tangle_floors.floor,
    "deadline": tangle_limits.deadline,
    "admission": tangle_limits.admission,
    "concurrency": tangle_limits.concurrency,
    "settlement": tangle_limits.settlement,
    "failure-class": tangle_money.failure_class,
    "cost": tangle_money.cost,
}


def _answer(case: Case, _preset: str | None) -> Answer:
    part = case["area"]
    if part in ANSWERS:
        return ANSWERS[part](case)
    names = sorted({str(op["op"]) for op in case["when"]})
    raise UnknownShape(f"nothing answers {part} / {', '.join(names)} yet")


AREA: Final[Area] = Area(
    name="tangle-pool-and-floors",
    parts=frozenset(PARTS),
    answer=_answer,
    presets=ours_only,
    compare=agreement,
)
__all__: list[Any] = ["AREA"]

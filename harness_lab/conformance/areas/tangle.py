"""Cases of tangle's conserved pool and token floors.

Each is tried as our defaults are, and then under the preset of its era.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.conformance.areas import (
    tangle_driver,
    tangle_floors,
    tangle_limits,
    tangle_money,
    tangle_pool,
    tangle_settle,
    tangle_texts,
    tangle_tree,
)
from harness_lab.conformance.areas.tangle_values import era_of
from harness_lab.conformance.areas.tangle_words import agreement
from harness_lab.conformance.shapes import Area

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.conformance.shapes import Answer, Case

ANSWERS: Final[dict[str, Callable[[Case, str | None], Answer]]] = {
    "admission": tangle_limits.admission,
    "concurrency": tangle_limits.concurrency,
    "cost": tangle_money.cost,
    "deadline": tangle_limits.deadline,
    "driver": tangle_driver.driver,
    "failure-class": tangle_money.failure_class,
    "floor": tangle_floors.floor,
    "keys": tangle_tree.keys,
    "never-settled": tangle_tree.never_settled,
    "per-worker": tangle_driver.per_worker,
    "pool": tangle_pool.pool,
    "refusal-text": tangle_texts.refusal_text,
    "resume": tangle_tree.resume,
    "settlement": tangle_settle.settlement,
    "supervisor": tangle_driver.supervisor,
}


def _presets(case: Case) -> tuple[str | None, ...]:
    return (None, f"tangle-{era_of(case).lower()}")


def _answer(case: Case, preset: str | None) -> Answer:
    return ANSWERS[case["area"]](case, preset)


AREA: Final[Area] = Area(
    name="tangle-pool-and-floors",
    parts=frozenset(ANSWERS),
    answer=_answer,
    presets=_presets,
    compare=agreement,
)
__all__: list[Any] = ["AREA"]

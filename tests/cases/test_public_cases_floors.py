"""Public case of floors: an ask below what a path was measured to need is refused before it costs anything."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from harness_lab.analyze import floors
from harness_lab.clock import Time
from harness_lab.floors import FloorKey, preflight
from harness_lab.outcome import INPUT, Code, Refusal
from harness_lab.policies import Grant, SpawnAsk, reservation_pool
from harness_lab.usage import amounts

SETTLED = [10_819, 12_400, 15_000]
RECORDS = pd.DataFrame(
    {"run": list("abc"), "outcome": "completed", "input_total": SETTLED, "backend": "X", "model": "M", "context": "K"}
)
TABLE = floors(RECORDS).to_table()
MEASURED = FloorKey(backend="X", model="M", context="K")
UNKNOWN = FloorKey(backend="X", model="N", context="K")
NOW = Time(0)


def asked(policy: Any, key: FloorKey, tokens: int) -> Any:
    root = policy.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    return policy.spawn(SpawnAsk(root, ((0, 0, 0),), amounts(input=tokens), key), NOW)


@pytest.mark.parametrize(("tokens", "missing"), [(4_000, 6_819), (10_818, 1), (10_819, 0)])
def test_a59_below_the_floor_is_refused_with_what_is_missing_and_at_it_admitted(tokens: int, missing: int) -> None:
    answer = preflight(TABLE, MEASURED, tokens)
    assert (answer.floor, answer.shortfall, answer.admitted) == (10_819, missing, missing == 0)


def test_a59_without_records_there_is_no_floor_and_that_is_not_zero() -> None:
    answer = preflight(TABLE, UNKNOWN, 4_000)
    assert (answer.admitted, answer.floor, answer.row) == (True, None, None)


def test_a59_a_refused_child_holds_nothing_and_its_reason_is_not_that_of_an_empty_pool() -> None:
    policy: Any = reservation_pool(input=20_000, floors=TABLE).start("run")
    answer = asked(policy, MEASURED, 4_000)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.shortfalls[0].helps) == (Code.BELOW_RUNTIME_FLOOR, "larger")
    assert policy.modules[1].pool.held()[INPUT] == 0
    assert isinstance(asked(policy, MEASURED, 10_819), Grant)
    assert isinstance(asked(policy, UNKNOWN, 4_000), Grant)
    assert asked(policy, MEASURED, 15_000).code is Code.BUDGET_EXHAUSTED


def test_a59_below_the_floor_and_above_the_pool_says_both_so_no_hint_is_wrong() -> None:
    answer = asked(reservation_pool(input=3_000, floors=TABLE).start("run"), MEASURED, 4_000)
    assert [short.code for short in answer.shortfalls] == [Code.BELOW_RUNTIME_FLOOR, Code.BUDGET_EXHAUSTED]

"""The behaviour cases of tangle's floor table, through the public API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_lab.clock import Time
from harness_lab.floors import FloorKey, FloorRow, FloorTable, preflight
from harness_lab.outcome import INPUT
from harness_lab.policies import Grant, SpawnAsk, Ticket, reservation_pool
from harness_lab.usage import amounts

CASES = Path(__file__).parents[2] / ".." / "shared" / "vectors" / "tangle-pool-and-floors.json"
BOTH = "both answers are given, the floor's first: a pool that is short asks for less, which never helps here"
DEVIATIONS = {"floor-checked-after-pool": BOTH}
NOW = Time(0)


def _cases() -> list[Any]:
    if not CASES.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="the folder with the cases is absent"))]
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    ours = [c for c in cases if c["area"] == "floor" and c["when"][0]["op"] in ("lookup", "spawn")]
    return [pytest.param(case, id=case["id"]) for case in ours if "factory" not in case["when"][0]]


def _table(floor: int) -> FloorTable:
    return FloorTable((FloorRow(key=_path("pi"), floor=floor, n=6),))


def _path(backend: str | None) -> FloorKey:
    return FloorKey(backend=backend or "inline", model="glm-5.2")


def _spawned(given: dict[str, Any], ask: int) -> dict[str, Any]:
    root = given.get("root", {"maxTokens": 1_000_000})
    policy = reservation_pool(input=root["maxTokens"], floors=_table(given["floor"])).start()
    first = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    assert isinstance(first, Grant)
    parent: Ticket = first.ticket
    answer = policy.spawn(SpawnAsk(parent, ((0, 0, 0),), amounts(input=ask), _path(given["backend"])), NOW)
    pool = policy.modules[1].pool  # type: ignore[attr-defined]
    readout = {"tokensLeft": pool.free()[INPUT], "reservedTokens": pool.held()[INPUT]}
    if isinstance(answer, Grant):
        return {"ok": True}
    deficit = preflight(_table(given["floor"]), _path(given["backend"]), ask).shortfall
    return {"ok": False, "reason": str(answer.code), "deficit": deficit, "readout": readout}


@pytest.mark.parametrize("case", _cases())
def test_a_case_of_tangles_floors_is_answered_as_there_unless_the_table_says_why_not(case: dict[str, Any]) -> None:
    given, when, then = case["given"], case["when"][0], case["then"]
    if when["op"] == "lookup":
        row = _table(given["table"]["pi"]).lookup(_path(when["backend"]))
        answer: dict[str, Any] = {"floor": None if row is None else row.floor}
    else:
        answer = _spawned(given, when["budget"]["maxTokens"])
    shared = [key for key in then if key in answer]
    assert shared
    assert ({key: answer[key] for key in shared} == {key: then[key] for key in shared}) == (
        case["id"] not in DEVIATIONS
    )

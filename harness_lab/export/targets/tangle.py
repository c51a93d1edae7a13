"""Tangle agent-runtime: the budget of a root or a child, and the floor table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.export.forms.data import Json, TypeScript
from harness_lab.export.forms.text import quoted
from harness_lab.export.targets.amounts import SAFE_INTEGER, Count, Dollars, Seconds
from harness_lab.export.targets.base import Carried, Draft, Knob, Loss, Target, Values, agents_lost
from harness_lab.export.targets.tangle_floors import backend_floors
from harness_lab.policies import ReservationPoolSpec, SharedLedgerSpec

if TYPE_CHECKING:
    from harness_lab.floors import FloorRow
    from harness_lab.policies import ModuleSpec

NONE = SAFE_INTEGER
"""maxIterations and maxTokens are required; no limit is written as a number that no run reaches."""
FLOORS = "runtimeFloors"
KEYS = ("budget.maxIterations", "budget.maxTokens", "budget.maxUsd", "budget.deadlineMs", FLOORS)
_POOL = "the pool of one root, from which children's budgets are reserved"

KNOBS = (
    Knob(
        key=KEYS[0], quantity="calls", bounds=("tree",), unit="iterations (model calls)", scope=_POOL,
        amount=Count(most=NONE),
    ),
    Knob(
        key=KEYS[1], quantity="fresh", bounds=("tree",), unit="newly presented tokens (input - cache reads + output)",
        scope=_POOL, amount=Count(most=NONE), note="since 0.134; before, input and output in full",
    ),
    Knob(
        key=KEYS[2], quantity="cost", bounds=("tree",), unit="USD", scope=_POOL, amount=Dollars(),
        note="an unknown cost under it closes admission",
    ),
    Knob(
        key=KEYS[3], quantity="time", bounds=("tree",), unit="milliseconds from the start", scope=_POOL,
        amount=Seconds(per_second=1000),
    ),
)  # fmt: skip


def _extra(draft: Draft) -> None:
    for key in KEYS[:2]:
        draft.values.setdefault(key, NONE)
    draft.values = {key: draft.values[key] for key in KEYS if key in draft.values}
    agents_lost(draft, "a budget names no agent")
    pool = draft.config.policy.module("reservation_pool")
    if pool is not None:
        draft.done |= {"reservation_pool.unknown_usage"} if pool.unknown_usage == "charge-hold" else set()
    if pool is not None and pool.unknown_usage == "charge-hold":
        means = "unknown tokens are flagged and charge nothing there, unknown dollars under a cap close admission"
        draft.losses.append(Loss("reservation_pool.unknown_usage = charge-hold", means))
    floors = draft.config.policy.module("runtime_floors")
    if floors is not None:
        _floors(draft, floors.table.rows)


def _floors(draft: Draft, rows: tuple[FloorRow, ...]) -> None:
    """Write the lowest floor of each backend: the table has no other key."""
    draft.done.add("runtime_floors.table")
    told: dict[str, int | None] = {}
    for row in rows:
        if row.key.unit != "input-total":
            means = f"the table's unit is input tokens, all of them; this floor counts {row.key.unit}"
            draft.losses.append(Loss(f"floor of {row.key}", means))
            continue
        before = told.get(row.key.backend)
        lowest = [floor for floor in (before, row.floor) if floor is not None]
        told[row.key.backend] = min(lowest) if lowest else None
    draft.values[FLOORS] = told
    draft.losses += [loss for row in rows if (loss := _narrowed(row, told)) is not None]
    draft.carried += [
        Carried(
            value="runtime_floors.table", key=f"{FLOORS}[{quoted(backend)}]", written=floor,
            unit="input tokens, all of them", scope="every child on that backend",
            note="null is unmeasured and not enforced",
        )
        for backend, floor in told.items()
    ]  # fmt: skip


def _narrowed(row: FloorRow, told: dict[str, int | None]) -> Loss | None:
    """Say what a row loses by a table that knows only backends."""
    if row.key.unit != "input-total" or row.floor is None:
        return None
    lowest = told[row.key.backend]
    if lowest is not None and lowest < row.floor:
        means = f"the table has one floor a backend, so the lowest, {lowest}, applies to it"
        return Loss(f"floor {row.floor} of {row.key}", means)
    means = "the table is keyed by backend alone, so it applies to every model, agent and context there"
    return Loss(f"floor {row.floor} of {row.key}", means)


def _model(values: Values) -> tuple[ModuleSpec, ...]:
    calls, fresh, cost = (values.get(key) for key in KEYS[:3])
    calls, fresh = (None if amount == NONE else amount for amount in (calls, fresh))
    pool = ReservationPoolSpec(calls=calls, fresh=fresh, cost_usd=cost, inside="record")
    limited = (calls, fresh, cost) != (None, None, None)
    return (*backend_floors(values.get(FLOORS) or {}), *((pool,) if limited else ()), *_deadline(values))


def _deadline(values: Values) -> tuple[ModuleSpec, ...]:
    milliseconds = values.get(KEYS[3])
    return () if milliseconds is None else (SharedLedgerSpec(max_steps=NONE, max_seconds=milliseconds / 1000),)


def _unsimulated(values: Values) -> tuple[str, ...]:
    milliseconds = values.get(KEYS[3])
    why = "simulated as checked before each call; there work under way is stopped too"
    return () if milliseconds is None else (f"{KEYS[3]} = {milliseconds}: {why}",)


_TYPE = (
    "{ budget: { maxIterations: number; maxTokens: number; maxUsd?: number; deadlineMs?: number }; "
    "runtimeFloors?: Record<string, number | null> }"
)

TARGET = Target(
    name="tangle",
    title="Tangle agent-runtime",
    version="0.134 and later",
    knobs=KNOBS,
    holds=True,
    forms={
        "typescript": TypeScript(file="tangle-limits.ts", keys=KEYS, constant="LIMITS", type=_TYPE),
        "json": Json(file="tangle-limits.json", keys=KEYS),
    },
    model=_model,
    rest=_extra,
    unsimulated=_unsimulated,
)

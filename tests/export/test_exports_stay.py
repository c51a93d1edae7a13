"""A tuned config from the shipped data, and one with every module, go to every target and come out as they did.

The files stand in ``exports.json``. Where they are meant to change, ``HARNESS_LAB_WRITE_EXPORTS=1 pytest`` on this file
writes them anew: read the difference before it is committed.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness_lab.errors import InputError
from harness_lab.export import TARGETS, AgentLimits, Provenance, TunedConfig, export
from harness_lab.export.writers import target_of
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.policies import (
    call_holds,
    compose,
    iteration_budget,
    period_budget,
    reservation_pool,
    runtime_floors,
    shared_ledger,
    tree_limits,
)

HERE = Path(__file__).parent
STORED = HERE / "exports.json"
FORMS = [(name, form) for name, target in TARGETS.items() for form in target.forms]


def shipped() -> TunedConfig:
    """What the tour made of the shipped records, as it wrote it."""
    return TunedConfig.read(HERE / "shipped_config.json")


def wide() -> TunedConfig:
    """Every module, and agents of their own."""
    floor = FloorRow(key=FloorKey(backend="pi", model="m"), floor=31_211, n=6)
    policy = compose(
        runtime_floors(FloorTable((floor,))),
        shared_ledger(40, 0.8137, 300.7),
        reservation_pool(tokens=500_000, input=400_000, fresh=90_000, calls=35),
        tree_limits(2, 3, 12, 180.5),
        iteration_budget(20, max_child_iterations=9),
        call_holds(cost_usd=1.5),
        period_budget(cost_usd=25, by="team", every="month"),
        name="every module",
    )
    agents = [
        AgentLimits(name="reviewer", max_calls=5, model="m", disallowed_tools=("Bash",)),
        AgentLimits(name="模块"),
    ]
    return TunedConfig(policy, provenance=Provenance(date="2026-01-31", harness_lab="0.1.0"), agents=agents)


def each() -> TunedConfig:
    """One limit for every agent."""
    return TunedConfig(
        iteration_budget(20, max_refunds=0), provenance=Provenance(date="2026-01-31", harness_lab="0.1.0")
    )


CONFIGS = {"shipped": shipped, "wide": wide, "each": each}
SAYING = {"langgraph": "each"}
"""Which config says a number to a target that the wide one says none."""


def made(name: str, target: str, form: str) -> dict[str, str]:
    return dict(export(CONFIGS[name](), target, form=form).files)


@cache
def stored() -> dict[str, dict[str, str]]:
    if os.environ.get("HARNESS_LAB_WRITE_EXPORTS"):
        found = {f"{name} {t} {form}": made(name, t, form) for name in CONFIGS for t, form in FORMS}
        STORED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    data: dict[str, dict[str, str]] = json.loads(STORED.read_text("utf-8"))
    return data


@pytest.mark.parametrize(("target", "form"), FORMS)
@pytest.mark.parametrize("name", CONFIGS)
def test_the_files_are_those_that_were_written_before(name: str, target: str, form: str) -> None:
    assert made(name, target, form) == stored()[f"{name} {target} {form}"]


def test_no_target_is_left_out() -> None:
    assert set(stored()) == {f"{name} {target} {form}" for name in CONFIGS for target, form in FORMS}


def moved(value: Any, by: int) -> Any:
    """Return settings whose numbers are all off."""
    if isinstance(value, dict):
        return {key: moved(item, by) for key, item in value.items()}
    if isinstance(value, list):
        return [moved(item, by) for item in value]
    return value + by if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def break_writer(monkeypatch: pytest.MonkeyPatch, target: str, form: str) -> None:
    kind = type(target_of(target).forms[form])
    write = kind.write
    monkeypatch.setattr(kind, "write", lambda self, values, header: write(self, moved(values, 1), header))


@pytest.mark.parametrize(("target", "form"), FORMS)
def test_a_writer_that_writes_other_numbers_is_caught_by_reading_back(
    monkeypatch: pytest.MonkeyPatch, target: str, form: str
) -> None:
    break_writer(monkeypatch, target, form)
    with pytest.raises(InputError):
        made(SAYING.get(target, "wide"), target, form)


@pytest.mark.parametrize(("target", "form"), FORMS)
def test_a_writer_and_a_reader_that_are_wrong_alike_are_caught_by_what_is_stored(
    monkeypatch: pytest.MonkeyPatch, target: str, form: str
) -> None:
    kind = type(target_of(target).forms[form])
    read = kind.read
    break_writer(monkeypatch, target, form)
    monkeypatch.setattr(kind, "read", lambda self, files: moved(read(self, files), -1))
    with pytest.raises((AssertionError, InputError)):
        test_the_files_are_those_that_were_written_before(SAYING.get(target, "wide"), target, form)

"""A tuned config survives its file, and every target says what it cannot express."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError, ReadError
from harness_lab.export import TARGETS, Evidence, Provenance, TunedConfig, export
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.policies import (
    PolicySpec,
    compose,
    reservation_pool,
    runtime_floors,
    shared_ledger,
    tree_limits,
)

PROVENANCE = Provenance(date="2026-01-31", harness_lab="0.1.0", seed=7)

names = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), min_size=1, max_size=20)
counts = st.none() | st.integers(0, 10**12)
dollars = st.none() | st.floats(0, 1e6, allow_nan=False).map(lambda x: round(x, 6))


@st.composite
def policies(draw: st.DrawFn) -> PolicySpec:
    row = FloorRow(key=FloorKey(backend=draw(names), model=draw(names)), floor=draw(counts), n=6, note=draw(names))
    parts = [
        shared_ledger(draw(st.integers(0, 10**9)), draw(dollars), draw(st.none() | st.integers(0, 10**6))),
        reservation_pool(tokens=draw(counts), cost_usd=draw(dollars), inside=draw(st.sampled_from(["stop", "record"]))),
        tree_limits(draw(counts), draw(counts), draw(counts), concurrency="parent"),
        runtime_floors(FloorTable((row,))),
    ]
    chosen = draw(st.lists(st.sampled_from(range(4)), unique=True, min_size=1))
    return compose(*(parts[i] for i in chosen), name=draw(names))


@settings(max_examples=60, deadline=None)
@given(policies())
def test_a_config_is_the_same_policy_after_its_file(policy: PolicySpec) -> None:
    config = TunedConfig(policy, provenance=PROVENANCE)
    assert TunedConfig.from_json(config.to_json()).policy == policy
    assert TunedConfig.from_json(config.to_json()).to_json() == config.to_json()


@settings(max_examples=60, deadline=None)
@given(policies(), st.sampled_from(["env", "toml"]))
def test_a_target_that_loses_nothing_reads_back_the_same_policy(policy: PolicySpec, target: str) -> None:
    written = export(policy, target)
    assert written.losses == ()
    assert written.read_back() == policy


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9), dollars, st.none() | st.integers(0, 10**6), st.sampled_from(["json", "python"]))
def test_prism_keeps_the_three_limits_of_its_run_budget(
    steps: int, cost: float | None, seconds: int | None, form: str
) -> None:
    policy = shared_ledger(steps, cost, seconds)
    written = export(policy, "prism", form=form)
    assert written.losses == ()
    assert written.read_back() == policy


def test_prism_lists_what_it_cannot_express() -> None:
    policy = compose(shared_ledger(20), tree_limits(2, 3), reservation_pool(tokens=5))
    losses = [loss.value for loss in export(policy, "prism").losses]
    assert "tree_limits.max_depth = 2" in losses
    assert "reservation_pool.tokens = 5" in losses


def test_a_policy_without_a_ledger_has_no_form_in_prism() -> None:
    with pytest.raises(InputError, match="shared_ledger"):
        export(tree_limits(2), "prism")


def test_an_unknown_target_or_form_names_those_that_exist() -> None:
    with pytest.raises(InputError, match="prism, env, toml"):
        export(shared_ledger(1), "fax")
    with pytest.raises(InputError, match="json, python"):
        export(shared_ledger(1), "prism", form="cobol")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "other"}', '{"policy": NaN}', "\x00"])
def test_what_is_no_tuned_config_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        TunedConfig.from_json(text)


def test_a_newer_version_is_refused() -> None:
    text = TunedConfig(shared_ledger(1), provenance=PROVENANCE).to_json()
    with pytest.raises(InputError, match="at most 1"):
        TunedConfig.from_json(text.replace('"schema_version": 1', '"schema_version": 2'))


def test_evidence_stays_with_the_value(tmp_path: Path) -> None:
    why = Evidence(
        value="reservation_pool.cost_usd",
        chosen=0.5,
        unit="USD per run",
        target="85 %",
        method="m",
        n=6,
        confidence=0.95,
    )
    config = TunedConfig(reservation_pool(cost_usd=0.5), provenance=PROVENANCE, evidence=(why,))
    assert TunedConfig.read(config.write(tmp_path / "config.json")).evidence == (why,)


def test_a_missing_file_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="a tuned config"):
        TunedConfig.read(tmp_path / "nowhere.json")


def test_every_target_is_read_back_by_its_own_reader() -> None:
    policy = shared_ledger(20, 1.5, 300)
    for target, writer in TARGETS.items():
        for form in writer.FORMS:
            assert export(policy, target, form=form).read_back().module("shared_ledger") == policy.modules[0]

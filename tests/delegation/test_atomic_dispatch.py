"""Journal, ledger and audit log get a dispatch whole, or stay as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_lab.delegation import (
    AuditChainStore,
    DispatchNode,
    NativeResultMissing,
    NativeResultRejected,
    NodeCost,
    OuterPlan,
    RunJournal,
    SpendLedger,
    UnfinishedDispatch,
    cache_savings,
    delegate_plan,
    dispatch_node,
    resume,
)
from harness_lab.delegation.journal import AppendFile
from harness_lab.errors import InputError

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
KEY = b"k" * 32


def _plan(*names: str, **fields: Any) -> OuterPlan:
    return OuterPlan(tuple(DispatchNode(name, "claude", "m", "low", "p", SCHEMA, **fields) for name in names))


@pytest.fixture
def sinks(tmp_path: Path) -> dict[str, Any]:
    made = {
        "journal": RunJournal("run-1", tmp_path, sync=False),
        "ledger": SpendLedger(file=tmp_path / "ledger.jsonl", sync=False),
        "chain": AuditChainStore(tmp_path / "audit", key=KEY, sync=False),
    }
    dispatch_node(_plan("before").nodes[0], {"n": 0}, **made, undiscounted_cost_usd=1)
    return made


def _state(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.name != ".lock"}


def _memory(sinks: dict[str, Any]) -> tuple[Any, ...]:
    journal, ledger, chain = sinks["journal"], sinks["ledger"], sinks["chain"]
    return journal.head(), journal.event_count(), ledger.status(), ledger.charges, chain.prev_chain_digest


@pytest.mark.parametrize("failing", range(4))
def test_a_disk_that_fails_at_any_file_leaves_everything_as_it_was(
    sinks: dict[str, Any], tmp_path: Path, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, memory = _state(tmp_path), _memory(sinks)
    real, left = AppendFile.append, [failing]

    def append(self: AppendFile, text: str) -> int:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(28, "No space left on device")
        return real(self, text)

    monkeypatch.setattr(AppendFile, "append", append)
    results = {"a": {"n": 1}, "b": {"n": 2} if failing else {"n": 2, "extra": 1}}
    with pytest.raises(OSError, match="No space") if failing else pytest.raises(NativeResultRejected):
        delegate_plan(_plan("a", "b"), results, **sinks)
    assert (_state(tmp_path), _memory(sinks)) == (before, memory)
    monkeypatch.undo()
    delegate_plan(_plan("a", "b"), {"a": {"n": 1}, "b": {"n": 2}}, **sinks)
    assert sinks["journal"].event_count() == 3 == len(sinks["ledger"].charges) == len(sinks["chain"].entries())


def test_a_charge_function_that_refuses_takes_journal_and_audit_log_back(sinks: dict[str, Any], tmp_path: Path) -> None:
    before = _state(tmp_path)

    def refuse(charges: Any) -> None:
        assert [charge.node_name for charge in charges] == ["a", "b"]
        raise RuntimeError("over the cap")

    with pytest.raises(RuntimeError, match="over the cap"):
        delegate_plan(_plan("a", "b"), {"a": {"n": 1}, "b": {"n": 2}}, **{**sinks, "ledger": refuse})
    assert _state(tmp_path) == before


def test_an_interrupt_half_way_leaves_everything_as_it_was(
    sinks: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, memory = _state(tmp_path), _memory(sinks)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sinks["chain"], "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dispatch_node(_plan("a").nodes[0], {"n": 1}, **sinks)
    assert (_state(tmp_path), _memory(sinks)) == (before, memory)


def test_a_plan_with_a_missing_result_is_not_begun(sinks: dict[str, Any], tmp_path: Path) -> None:
    before = _state(tmp_path)
    with pytest.raises(NativeResultMissing, match=r"^no native result supplied for plan node 'b'$"):
        delegate_plan(_plan("a", "b"), {"a": {"n": 1}}, **sinks)
    assert _state(tmp_path) == before


def test_an_unfinished_dispatch_must_be_resumed_before_the_next(sinks: dict[str, Any], tmp_path: Path) -> None:
    journal = sinks["journal"]
    journal.intent.path.write_text('{"half of an int')
    for go_on in (lambda: journal.record("event"), lambda: dispatch_node(_plan("a").nodes[0], {"n": 1}, **sinks)):
        with pytest.raises(UnfinishedDispatch, match="resume"):
            go_on()
    again = resume("run-1", tmp_path, ledger=sinks["ledger"], chain=sinks["chain"])
    assert again.journal.event_count() == 1
    again.journal.record("event")


def test_costs_reach_a_plan_and_are_charged_as_whole_nano_dollars(sinks: dict[str, Any]) -> None:
    costs = {"a": NodeCost(undiscounted_cost_usd=0.000000005, input_tokens=10, cache_read_tokens=7)}
    results = delegate_plan(_plan("a", "b", batch=True), {"a": {"n": 1}, "b": {"n": 2}}, costs=costs, **sinks)
    assert [result.charge.cost_nusd for result in results if result.charge] == [2, None]
    assert (results[0].charge.undiscounted_nusd, results[0].charge.cache_read_tokens) == (5, 7)  # type: ignore[union-attr]
    status = sinks["ledger"].status()
    assert (status.spent_nusd, status.unknown) == (1_000_000_002, 1)


def test_what_caching_saved_is_told_by_node_and_target(sinks: dict[str, Any]) -> None:
    cost = NodeCost(undiscounted_cost_usd=1, cache_read_tokens=1_000_000, cache_write_tokens=100_000)
    delegate_plan(_plan("a", batch=True), {"a": {"n": 1}}, costs={"a": cost}, **sinks)
    saved = cache_savings(sinks["ledger"].charges, lambda model: (3_000_000, 300_000, 3_750_000) if model else None)
    assert [node.saved_nusd for node in saved.nodes] == [None, (2_700_000_000 - 75_000_000) // 2]
    assert saved.by_target() == {"claude": None}
    assert "claude: unknown" in saved.summary()


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), "much", True, 10**30])
def test_a_cost_that_is_no_amount_is_refused_before_anything_is_written(
    sinks: dict[str, Any], tmp_path: Path, cost: Any
) -> None:
    before = _state(tmp_path)
    with pytest.raises(InputError, match="undiscounted_cost_usd"):
        dispatch_node(_plan("a").nodes[0], {"n": 1}, **sinks, undiscounted_cost_usd=cost)
    assert _state(tmp_path) == before


def test_the_journal_has_neither_prompt_nor_result_nor_key(sinks: dict[str, Any], tmp_path: Path) -> None:
    node = DispatchNode("a", "claude", "m", "low", "a secret prompt", {})
    dispatch_node(node, {"answer": "a secret result"}, **sinks)
    written = b"".join(_state(tmp_path).values())
    assert b"secret" not in written
    assert KEY not in written
    assert KEY.decode() not in repr(sinks["chain"]) + repr(sinks["chain"]._key)
    assert [json.loads(line)["node_name"] for line in sinks["journal"].path.read_text().splitlines()] == ["before", "a"]

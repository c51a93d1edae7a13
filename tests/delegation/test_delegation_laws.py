"""Laws of hashes and chains, and the anchors that others publish."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.delegation import (
    BERNSTEIN_3_23,
    AuditChainStore,
    ChainKey,
    DispatchNode,
    OuterPlan,
    RunJournal,
    Seal,
    canonical_json,
    dispatch_node,
    node_hash,
    plan_hash,
    result_content_hash,
    verify_bytes,
)

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"type": "object", "properties": {"files_changed": {"type": "array"}}, "required": ["files_changed"]}
DOCUMENTED = DispatchNode(
    name="backend-leaf", target="claude", model="sonnet", effort="medium",
    prompt="Implement the endpoint per the spec.", result_schema=FILES, tools=("edit", "bash"),
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.text(min_size=1, max_size=8)
NODES = st.builds(
    DispatchNode, name=NAMES, target=NAMES, model=NAMES, effort=NAMES, prompt=st.text(),
    result_schema=st.dictionaries(st.text(), JSON, max_size=3), tools=st.lists(NAMES, max_size=3).map(tuple),
    background=st.booleans(), batch=st.booleans(),
)  # fmt: skip


def test_the_published_anchors_are_met() -> None:
    hashes = {
        "node": (node_hash(DOCUMENTED), "633e8d376836d1eb6502fbd93ab140897d6ba2ab8aa310b7cc663bc132d44b1e"),
        "plan": (
            plan_hash(OuterPlan((DOCUMENTED,))),
            "127897027a65a224d0a1a6f61a91e34e73b6d0b9bcc88c1bc55f536f115fbe9b",
        ),
        "empty": (plan_hash(OuterPlan(())), "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"),
        "detached": (
            node_hash(replace(DOCUMENTED, background=True)),
            "e756386904091d21ac028a8f703ac26385ae96d47606c76bde24fd96c99a879b",
        ),
        "sealed": (
            node_hash(replace(DOCUMENTED, result_schema={**FILES, "additionalProperties": False})),
            "27d4d6bb8448d804d802725e9f497f58a4f249dd048157588fa6bc9d6882603f",
        ),
        "payload": (
            result_content_hash({"files_changed": ["app.py"]}),
            "72f3769e2a12d36589bbb700570ec3a69556ea40da03cc7bd875e13427a35fa4",
        ),
    }
    assert {name: got for name, (got, _) in hashes.items()} == {n: f"sha256:{h}" for n, (_, h) in hashes.items()}


def test_the_published_chain_anchors_are_met(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"verdict": {"type": "string"}, "findings": {"type": "integer"}},
        "required": ["verdict", "findings"],
    }
    node = DispatchNode(
        "audit-0", "claude", "claude-sonnet-4", "high", "Audit module X for regressions.", schema, ("Read", "Grep")
    )
    assert node_hash(replace(node, batch=True)).endswith(
        "1512c8c2bff6141947b302029323a48abbc60f58cedacdbc581990839b872882"
    )
    journal = RunJournal("run-1", tmp_path)
    for one, result in ((node, ("clean", 0)), (replace(node, name="audit-1"), ("dirty", 3))):
        dispatch_node(one, dict(zip(("verdict", "findings"), result, strict=True)), journal=journal)
    assert journal.head() == "f56b68270f2021fadacbd9f6fe6952c3654b71e55ce9f649034ecff268c6c24b"


def test_both_audit_schemes_have_the_published_macs() -> None:
    details = {
        "run_id": "run-1", "node_name": "audit-0", "target": "claude", "tier": "interactive", "journal_index": 0,
        "node_hash": "sha256:1777c66fdae2aac24309f91913d116f966273376ef496fb6088f36285bcdc19c",
        "result_content_hash": "sha256:ae951e7b94d878a43c592a1118e50d89d70af4ae2c828329a97914d495804dc9",
        "journal_event_hash": "a652e43c3d935bdaac29925646bca4e5c97832855be27893a474fe8386a92c0a",
        "prev_chain_digest": "0" * 64,
    }  # fmt: skip
    entry = {
        "timestamp": "2026-01-01T00:00:00.000000Z", "event_type": "subagent.delegation", "resource_id": "audit-0",
        "actor": "subagent_delegation", "resource_type": "subagent_delegation", "details": details,
        "prev_hmac": "0" * 64,
    }  # fmt: skip
    key = ChainKey(b"k" * 32)
    assert key.entry_hmac({**entry, "scheme": 2}) == "f2379d9ce23c3e88f451ee1cb9ad943432139c6b7be801e37cd3bb0bbca02062"
    assert key.entry_hmac(entry) == "6dfc322e3c26a3625b9ab868914d6d8dea63af2a9bc0718724221d68af41b338"
    assert key.entry_hmac({**entry, "scheme": 3}) is None


@given(JSON)
@settings(deadline=None)
def test_canonical_json_is_what_python_writes_with_sorted_keys_and_survives_a_reading(value: Any) -> None:
    text = canonical_json(value)
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str)
    assert canonical_json(json.loads(text)) == text == canonical_json(value, rules=BERNSTEIN_3_23)


@given(NODES, st.data())
@settings(deadline=None)
def test_a_node_is_what_its_fields_are(node: DispatchNode, data: st.DataObject) -> None:
    assert node_hash(DispatchNode(**json.loads(json.dumps(node.to_dict())))) == node_hash(node)
    name = data.draw(st.sampled_from(["name", "target", "model", "effort", "prompt"]))
    assert node_hash(replace(node, **{name: getattr(node, name) + "x"})) != node_hash(node)
    for flag in ("background", "batch"):
        assert node_hash(replace(node, **{flag: not getattr(node, flag)})) != node_hash(node)
    assert node_hash(replace(node, tools=(*node.tools, "more"))) != node_hash(node)


@given(st.lists(NODES, min_size=2, max_size=4, unique_by=lambda node: node.name))
@settings(deadline=None)
def test_the_order_of_a_plan_is_part_of_it(nodes: list[DispatchNode]) -> None:
    plan = OuterPlan(tuple(nodes))
    assert plan_hash(OuterPlan.from_dict(json.loads(json.dumps(plan.to_dict())))) == plan_hash(plan)
    assert plan_hash(OuterPlan(tuple(reversed(nodes)))) != plan_hash(plan)


def test_changing_the_schema_that_was_given_does_not_change_the_node() -> None:
    schema: dict[str, Any] = {"properties": {"a": {}}}
    node = DispatchNode("n", "claude", "m", "low", "p", schema)
    before = node_hash(node)
    schema["properties"]["b"] = {}
    assert node_hash(node) == before


@given(JSON, JSON)
@settings(max_examples=30, deadline=None)
def test_the_identity_does_not_depend_on_results(first: Any, second: Any) -> None:
    node = DispatchNode("n", "claude", "m", "low", "p", {})
    one, two = (dispatch_node(node, {"x": value}) for value in (first, second))
    assert one.node_hash == two.node_hash == node_hash(node)
    assert (one.result_content_hash == two.result_content_hash) is (canonical_json(first) == canonical_json(second))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Seal]:
    journal = RunJournal("run-1", tmp_path_factory.mktemp("journal"))
    for i in range(3):
        dispatch_node(DispatchNode(f"n{i}", "claude", "m", "low", "p", {}), {"i": i}, journal=journal)
    journal.record("run_ended", reason="ü", score=1e-07)
    return journal.path.read_bytes(), journal.seal()


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_any_changed_byte_of_a_sealed_journal_is_found(written: tuple[bytes, Seal], data: st.DataObject) -> None:
    text, seal = written
    place = data.draw(st.integers(0, len(text) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != text[place]))
    changed = text[:place] + bytes([byte]) + text[place + 1 :]
    assert not verify_bytes(changed, seal=seal).intact


def test_without_a_seal_any_changed_byte_is_found_but_in_the_numbers_of_time(written: tuple[bytes, Seal]) -> None:
    text, _ = written
    times = [
        place
        for start in (i for name in (b'"ts": ', b'"elapsed_s": ') for i in _places(text, name))
        for place in range(start, text.index(b",", start))
    ]
    for place in range(len(text)):
        for byte in {text[place] ^ 1, text[place] ^ 32, 48} - {text[place]}:
            changed = text[:place] + bytes([byte]) + text[place + 1 :]
            assert not verify_bytes(changed).intact or place in times


def _places(text: bytes, name: bytes) -> list[int]:
    return [i + len(name) for i in range(len(text)) if text.startswith(name, i)]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_dropping_swapping_or_cutting_rows_is_found(written: tuple[bytes, Seal], data: st.DataObject) -> None:
    text, seal = written
    lines = text.splitlines(keepends=True)
    i = data.draw(st.integers(0, len(lines) - 2))
    swapped = [*lines[:i], lines[i + 1], lines[i], *lines[i + 2 :]]
    dropped = lines[:i] + lines[i + 1 :]
    for rows in (swapped, dropped):
        verdict = verify_bytes(b"".join(rows))
        assert verdict.divergent_index == i == (verdict.first_bad_line or 0) - 1
    cut = verify_bytes(text[: data.draw(st.integers(0, len(text) - 1))], seal=seal)
    assert cut.identity == "mismatched"


def test_any_changed_byte_of_an_audit_log_is_found(tmp_path: Path) -> None:
    chain = AuditChainStore(tmp_path, key=b"k" * 32)
    for i in range(2):
        chain.log("event", "actor", "type", f"id-{i}", {"n": i, "text": "ü"})
    (file,) = tmp_path.glob("*.jsonl")
    text = file.read_bytes()
    for place in range(len(text)):
        file.write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
        verdict = chain.verify()
        assert not verdict.intact
        assert verdict.errors[0].startswith(f"{file.name}:{1 + text[:place].count(10)}: ")

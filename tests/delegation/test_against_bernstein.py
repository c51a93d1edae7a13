"""Held against the real bernstein 3.23.0, where an environment that has it is at hand.

It needs Python 3.12: ``python3.12 -m venv ENV && ENV/bin/pip install -r tests/delegation/bernstein.txt`` and
``HARNESS_LAB_BERNSTEIN_PYTHON=ENV/bin/python``. Without, the recorded answers of 3.23.0 stand (the behaviour cases).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness_lab.delegation import (
    BERNSTEIN_3_23,
    AuditChainStore,
    DispatchNode,
    NativeResultRejected,
    OuterPlan,
    RunJournal,
    SchemaViolation,
    delegate_plan,
    dispatch_node,
    plan_hash,
    verify_audit,
    verify_journal,
)

PYTHON = os.environ.get("HARNESS_LAB_BERNSTEIN_PYTHON", "")
PEER = Path(__file__).with_name("bernstein_peer.py")
KEY = "0123456789abcdef0123456789abcdef"
pytestmark = pytest.mark.skipif(not PYTHON, reason="HARNESS_LAB_BERNSTEIN_PYTHON names no Python with bernstein 3.23.0")
WORDS = ("a", "b", "properties", "required", "type", "ü", "模", "", " x", "additionalProperties", "\u2028", "😀")


def _ask(folder: Path, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    asked = json.dumps({"folder": str(folder), "cases": cases})
    done = subprocess.run([PYTHON, str(PEER)], input=asked, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def _value(luck: random.Random, depth: int = 0) -> Any:
    plain = [None, True, False, 0, 1, -7, 2**70, 0.1, 1e-07, -0.0, 1e22, *WORDS]
    kind = luck.randrange(4 if depth < 3 else 2)
    if kind < 2:
        return luck.choice(plain)
    if kind == 2:
        return [_value(luck, depth + 1) for _ in range(luck.randrange(3))]
    return {luck.choice(WORDS): _value(luck, depth + 1) for _ in range(luck.randrange(4))}


def _schema(luck: random.Random, depth: int = 0) -> dict[str, Any]:
    names = luck.sample(WORDS, 3)
    schema: dict[str, Any] = luck.choice([{}, {"type": "object"}, {"type": "string"}])
    schema = dict(schema)
    if luck.random() < 0.8 and depth < 3:
        schema["properties"] = {name: _schema(luck, depth + 1) for name in names[: luck.randrange(4)]}
    if luck.random() < 0.5:
        schema["required"] = names[: luck.randrange(3)]
    if luck.random() < 0.2:
        schema["additionalProperties"] = luck.choice([True, False, {}])
    return schema


def _fitting(luck: random.Random, schema: dict[str, Any]) -> Any:
    """A result that fits a schema more often than not."""
    if schema.get("type") != "object" and "properties" not in schema:
        return _value(luck, 2)
    names = [name for name in schema.get("properties", {}) if luck.random() < 0.8]
    names += [name for name in schema.get("required", ()) if luck.random() < 0.7]
    result = {name: _fitting(luck, schema.get("properties", {}).get(name, {})) for name in names}
    return {**result, luck.choice(WORDS): 1} if luck.random() < 0.15 else result


def _fields(luck: random.Random, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name, "target": luck.choice(WORDS), "model": luck.choice(WORDS), "effort": luck.choice(WORDS),
        "prompt": luck.choice(WORDS), "result_schema": schema, "tools": luck.sample(WORDS, luck.randrange(4)),
        "background": luck.random() < 0.5, "batch": luck.random() < 0.5,
    }  # fmt: skip


def _ours(case: dict[str, Any]) -> dict[str, Any]:
    node = DispatchNode(**case["node"])
    try:
        result = dispatch_node(node, case["result"], rules=BERNSTEIN_3_23)
    except NativeResultRejected as error:
        said = {"raises": "NativeResultRejected", "message": str(error), "fields": list(error.fields)}
        return {"hash": node.node_hash(), **said}
    except SchemaViolation as error:
        return {"hash": node.node_hash(), "raises": "SchemaViolation", "message": str(error)}
    return {"hash": node.node_hash(), "content": result.result_content_hash}


def test_generated_nodes_and_results_are_hashed_and_judged_alike(tmp_path: Path) -> None:
    luck = random.Random(20260101)  # noqa: S311 - cases, not secrets
    cases: list[dict[str, Any]] = []
    while len(cases) < 3000:
        schema = _schema(luck)
        result = _fitting(luck, schema)
        if isinstance(result, dict):  # what else there is, Bernstein fails on or takes apart
            cases.append({"kind": "dispatch", "node": _fields(luck, f"n{len(cases)}", schema), "result": result})
    kinds = {"accepted": 0, "NativeResultRejected": 0, "SchemaViolation": 0}
    for case, theirs in zip(cases, _ask(tmp_path, cases), strict=True):
        ours = _ours(case)
        kinds[ours.get("raises", "accepted")] += 1
        if ours.get("raises") == "SchemaViolation":  # the same schemas; our words
            assert theirs.get("raises") in ("ValueError", "TypeError", "AttributeError"), (case, theirs)
            theirs = {**theirs, "raises": ours["raises"], "message": ours["message"]}
            theirs.pop("fields")
        assert ours == theirs, case
    assert min(kinds.values()) > 100, kinds


def test_journals_and_audit_logs_are_read_both_ways(tmp_path: Path) -> None:
    luck = random.Random(7)  # noqa: S311 - cases, not secrets
    plans, checks = [], []
    for i in range(20):
        nodes = [_fields(luck, f"n{j}", {}) for j in range(luck.randrange(1, 6))]
        results = {fields["name"]: {"x": _value(luck)} for fields in nodes}
        plans.append({"kind": "plan", "run": f"r{i}", "nodes": nodes, "results": results, "key": KEY})
        plan = OuterPlan(tuple(DispatchNode(**fields) for fields in nodes))
        journal = RunJournal(f"r{i}", tmp_path / "ours", sync=False)
        chain = AuditChainStore(tmp_path / "our-audit" / f"r{i}", key=KEY.encode(), sync=False)
        delegate_plan(plan, results, journal=journal, chain=chain)
        checks.append({"kind": "verify", "path": str(journal.path), "audit": str(chain.folder), "key": KEY})
    said = _ask(tmp_path, plans + checks)
    for case, theirs, check in zip(plans, said[:20], said[20:], strict=True):
        ours = verify_journal(tmp_path / "ours" / "runs" / str(case["run"]) / "journal.jsonl")
        verdict = verify_journal(theirs["path"])
        assert (verdict.intact, verdict.head) == (True, theirs["head"])
        assert (check["consistent"], check["head"], check["audit"], check["errors"]) == (True, ours.head, True, [])
        assert ours.head == theirs["head"]
        assert plan_hash(OuterPlan(tuple(DispatchNode(**node) for node in case["nodes"]))) == theirs["plan"]
        assert verify_audit(tmp_path / "peer-audit" / str(case["run"]), key=KEY.encode()).intact

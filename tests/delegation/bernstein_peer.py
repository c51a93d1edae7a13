"""Runs inside an environment that has bernstein 3.23.0: answers generated cases; not a test itself.

Reads ``{"folder": ..., "cases": [...]}`` from standard input and writes one answer a case.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from bernstein.core.agents.subagent_delegation import DispatchNode, OuterPlan, delegate_plan, dispatch_node  # type: ignore[import-not-found]
from bernstein.core.replay.journal import EventJournal, verify_journal  # type: ignore[import-not-found]
from bernstein.core.security.audit_chain import AuditChainStore  # type: ignore[import-not-found]


def node_of(fields: dict[str, Any]) -> Any:
    """Build a node of the peer."""
    return DispatchNode(**{**fields, "tools": tuple(fields["tools"])})


def answer(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Answer one case."""
    if case["kind"] == "dispatch":
        node = node_of(case["node"])
        try:
            result = dispatch_node(node, native_result=case["result"])
        except (ValueError, TypeError, AttributeError) as error:
            name = type(error).__name__
            return {
                "hash": node.node_hash(),
                "raises": name,
                "message": str(error),
                "fields": list(getattr(error, "fields", ())),
            }
        return {"hash": node.node_hash(), "content": result.result_content_hash}
    if case["kind"] == "plan":
        nodes = tuple(node_of(fields) for fields in case["nodes"])
        journal = EventJournal(case["run"], folder / "peer")
        chain = AuditChainStore(folder / "peer-audit" / case["run"], key=case["key"].encode())
        delegate_plan(OuterPlan(nodes), journal=journal, native_results=case["results"], chain=chain)
        return {"plan": OuterPlan(nodes).plan_hash(), "head": journal.head(), "path": str(journal.path)}
    assert case["kind"] == "verify"
    seen = verify_journal(Path(case["path"]))
    good, errors = AuditChainStore(Path(case["audit"]), key=case["key"].encode())._log.verify()
    return {
        "consistent": seen.chain_consistent,
        "head": seen.head,
        "count": seen.count,
        "audit": good,
        "errors": errors,
    }


logging.disable(logging.CRITICAL)
asked = json.load(sys.stdin)
json.dump([answer(case, Path(asked["folder"])) for case in asked["cases"]], sys.stdout)

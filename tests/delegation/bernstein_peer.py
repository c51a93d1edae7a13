"""Runs inside an environment that has bernstein 3.23.0: answers generated cases; not a test itself.

Reads ``{"folder": ..., "cases": [...]}`` from standard input and writes one answer a case.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer what is asked."""
    from bernstein.core.agents import subagent_delegation as peer  # type: ignore[import-not-found]
    from bernstein.core.replay.journal import EventJournal, verify_journal  # type: ignore[import-not-found]
    from bernstein.core.security.audit_chain import AuditChainStore  # type: ignore[import-not-found]

    def node_of(fields: dict[str, Any]) -> Any:
        return peer.DispatchNode(**{**fields, "tools": tuple(fields["tools"])})

    def dispatch(case: dict[str, Any]) -> dict[str, Any]:
        node = node_of(case["node"])
        try:
            result = peer.dispatch_node(node, native_result=case["result"])
        except (ValueError, TypeError, AttributeError) as error:
            said = {"raises": type(error).__name__, "message": str(error), "fields": list(getattr(error, "fields", ()))}
            return {"hash": node.node_hash(), **said}
        return {"hash": node.node_hash(), "content": result.result_content_hash}

    def plan(case: dict[str, Any]) -> dict[str, Any]:
        whole = peer.OuterPlan(tuple(node_of(fields) for fields in case["nodes"]))
        journal = EventJournal(case["run"], folder / "peer")
        chain = AuditChainStore(folder / "peer-audit" / case["run"], key=case["key"].encode())
        peer.delegate_plan(whole, journal=journal, native_results=case["results"], chain=chain)
        return {"plan": whole.plan_hash(), "head": journal.head(), "path": str(journal.path)}

    def verify(case: dict[str, Any]) -> dict[str, Any]:
        seen = verify_journal(Path(case["path"]))
        good, errors = AuditChainStore(Path(case["audit"]), key=case["key"].encode())._log.verify()
        return {"consistent": seen.chain_consistent, "head": seen.head, "audit": good, "errors": errors}

    logging.disable(logging.CRITICAL)
    asked = json.load(sys.stdin)
    folder = Path(asked["folder"])
    answers = {"dispatch": dispatch, "plan": plan, "verify": verify}
    json.dump([answers[case["kind"]](case) for case in asked["cases"]], sys.stdout)


if __name__ == "__main__":
    main()

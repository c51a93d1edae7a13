"""Runs inside an environment that has hermes-agent 0.19.0: answers generated cases; not a test itself.

Reads ``{"cases": [...]}`` from standard input and writes one answer a case.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any


class Allowed(Exception):
    """Everything was checked; the children would be built now."""


def _allow() -> None:
    raise Allowed


def main() -> None:
    """Answer what is asked."""
    from agent.iteration_budget import IterationBudget  # type: ignore[import-not-found]
    from tools import delegate_tool as peer  # type: ignore[import-not-found]

    def budget(case: dict[str, Any]) -> list[Any]:
        counter = IterationBudget(case["max_total"])
        moves = {"c": counter.consume, "r": counter.refund}
        return [[moves[move](), counter.used, counter.remaining] for move in case["moves"]]

    def role(case: dict[str, Any]) -> str:
        return str(peer._normalize_role(case["role"]))

    def config(case: dict[str, Any]) -> list[Any]:
        peer._load_config = lambda: case["config"]
        return [peer._get_max_spawn_depth(), peer._get_max_concurrent_children(), peer._get_orchestrator_enabled()]

    def gate(case: dict[str, Any]) -> str | None:
        peer._load_config = lambda: case["config"]
        peer.set_spawn_paused(case["paused"])
        try:
            told = peer.delegate_task(**case["request"], parent_agent=SimpleNamespace(_delegate_depth=case["depth"]))
        except Allowed:
            return None
        return str(json.loads(told)["error"])

    peer._resolve_delegation_credentials = lambda *_: {}
    peer.time = SimpleNamespace(monotonic=_allow)  # asked for when all checks are over and no child is built yet
    answers = {"budget": budget, "role": role, "config": config, "gate": gate}
    json.dump([answers[case["kind"]](case) for case in json.load(sys.stdin)["cases"]], sys.stdout)


if __name__ == "__main__":
    main()

"""A process that dispatches until it is killed; run by the tests of recovery, not a test itself.

``killed_dispatcher.py FOLDER`` dispatches until somebody kills it. ``killed_dispatcher.py FOLDER STEP TORN`` kills
itself at the STEP-th call that touches the disk: before it, or for a write when TORN is 1 after half of its bytes.
"""

from __future__ import annotations

import os
import pathlib
import signal
import sys
from typing import Any

from harness_lab.delegation import (
    AuditChainStore,
    DispatchNode,
    NodeCost,
    OuterPlan,
    SpendLedger,
    delegate_plan,
    dispatch_node,
    resume,
)

KEY = b"a key for the tests alone"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def opened(folder: str, *, sync: bool = False) -> tuple[Any, SpendLedger, AuditChainStore]:
    """Return the journal, ledger and audit log in a folder, resumed."""
    ledger = SpendLedger(file=os.path.join(folder, "ledger.jsonl"), sync=sync)
    chain = AuditChainStore(os.path.join(folder, "audit"), key=KEY, sync=sync)
    return resume("run-1", folder, ledger=ledger, chain=chain, sync=sync).journal, ledger, chain


def plan_of(first: int, size: int) -> OuterPlan:
    """Return a plan whose nodes are numbered on."""
    return OuterPlan(
        tuple(
            DispatchNode(f"node-{first + i}", "claude", "m", "low", "p", SCHEMA, batch=i % 2 == 1) for i in range(size)
        )
    )


def one_more(journal: Any, ledger: SpendLedger, chain: AuditChainStore, size: int) -> None:
    """Dispatch one node, or a plan of several."""
    first = journal.event_count()
    plan = plan_of(first, size)
    if size == 1:
        dispatch_node(plan.nodes[0], {"n": 1}, journal=journal, ledger=ledger, chain=chain, undiscounted_cost_usd=0.25)
        return
    results = {node.name: {"n": i} for i, node in enumerate(plan.nodes)}
    costs = {node.name: NodeCost(undiscounted_cost_usd=0.25) for node in plan.nodes}
    delegate_plan(plan, results, journal=journal, ledger=ledger, chain=chain, costs=costs)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_at(step: int, *, torn: bool) -> None:
    """Count the calls that touch the disk and die at one of them."""
    seen = 0

    def wrap(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == step:
                if torn and name == "write":
                    fd, data = arguments
                    real(fd, data[: max(1, len(data) // 2)])
                _die()
            return real(*arguments, **options)

        setattr(owner, name, counted)

    for owner, name in ((os, "write"), (os, "fsync"), (os, "ftruncate"), (pathlib.Path, "unlink")):
        wrap(owner, name)


def resume_and_die(folder: str, step: int, *, torn: bool) -> None:
    """Resume, with a death at a step."""
    _die_at(step, torn=torn)
    opened(folder, sync=True)


def main(arguments: list[str]) -> None:
    """Dispatch until killed, or once with a death at a step."""
    folder = arguments[0]
    if len(arguments) == 1:
        sinks = opened(folder)
        print("ready", flush=True)
        while True:
            one_more(*sinks, size=1 + sinks[0].event_count() % 3)
    sinks = opened(folder, sync=True)
    _die_at(int(arguments[1]), torn=arguments[2] == "1")
    one_more(*sinks, size=3)
    print("survived")


if __name__ == "__main__":
    main(sys.argv[1:])

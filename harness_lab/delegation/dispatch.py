"""Crossing the boundary: check a native result, then write journal, ledger and audit log, all three or none.

The native call is the caller's: it has ended and its result is handed in. The order is schema, journal, cost, audit.
The journal is the commit point: before it has a node's row nothing has happened, from then on it has, and what a kill
leaves undone in ledger and audit log is brought up by :func:`harness_lab.delegation.resume`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness_lab.delegation.audit import delegation_entry
from harness_lab.delegation.charges import Charge, NodeCost, charge_for
from harness_lab.delegation.errors import NativeResultMissing
from harness_lab.delegation.events import DELEGATION_EVENT
from harness_lab.delegation.plan import DispatchNode, result_content_hash
from harness_lab.delegation.rules import OURS, DelegationRules
from harness_lab.delegation.schema import check_result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness_lab.delegation.audit import AuditChainStore
    from harness_lab.delegation.journal import RunJournal
    from harness_lab.delegation.ledger import Ledger
    from harness_lab.delegation.plan import OuterPlan

    ChargeFunction = Callable[[Sequence[Charge]], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchResult:
    """A node that crossed the boundary.

    Parameters
    ----------
    node_name, node_hash, result_content_hash : str
        What the journal has.
    payload : dict
        The checked result.
    tier : str
        ``batch`` or ``interactive``.
    validated : bool
        Always True: a result that fails its check raises.
    journal_index : int or None
        Its row, from 0; None without a journal.
    charge : Charge or None
        What was charged; None without a ledger.
    ledger_status : object
        What the ledger said to it; None without a ledger, or where it says nothing.
    """

    node_name: str
    node_hash: str
    result_content_hash: str
    payload: dict[str, Any]
    tier: str
    validated: bool = True
    journal_index: int | None = None
    charge: Charge | None = None
    ledger_status: object = None


def dispatch_node(
    node: DispatchNode,
    native_result: Mapping[str, Any],
    *,
    journal: RunJournal | None = None,
    chain: AuditChainStore | None = None,
    ledger: Ledger | ChargeFunction | None = None,
    undiscounted_cost_usd: float | None = None,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    cache_read_tokens: int | None = None,
    cache_write_tokens: int | None = None,
    strict: bool = False,
    rules: DelegationRules = OURS,
) -> DispatchResult:
    """Take one native result over the boundary.

    Parameters
    ----------
    node : DispatchNode
        The node of the plan.
    native_result : mapping
        What its native subagent returned.
    journal, chain : RunJournal, AuditChainStore, optional
        Where it is written down.
    ledger : Ledger or callable, optional
        Where it is charged: an object such as :class:`SpendLedger`, or a function that takes the charges. A function
        cannot be undone, so it is called last, and what it raises takes journal and audit log back.
    undiscounted_cost_usd : float or None
        Price of the call at the interactive rate, dollars; None: not known, and recorded so. Half of it is charged for
        a batch node.
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens : int or None
        As reported; None: not known.
    strict : bool
        Check types, enumerations, items and formats too (jsonschema), not only names.
    rules : DelegationRules
        Preset of the axes.

    Returns
    -------
    DispatchResult

    Raises
    ------
    NativeResultRejected
        If the result does not fit; nothing was written.
    InputError
        If a value cannot be hashed, or a cost is no amount; nothing was written.
    UnfinishedDispatch
        If an earlier dispatch on this journal was interrupted.
    """
    cost = NodeCost(
        undiscounted_cost_usd=undiscounted_cost_usd, input_tokens=input_tokens, output_tokens=output_tokens,
        cache_read_tokens=cache_read_tokens, cache_write_tokens=cache_write_tokens,
    )  # fmt: skip
    crossing = _prepare(node, native_result, cost, strict=strict, rules=rules)
    return _commit([crossing], journal=journal, chain=chain, ledger=ledger)[0]


def delegate_plan(
    plan: OuterPlan,
    native_results: Mapping[str, Mapping[str, Any]],
    *,
    journal: RunJournal | None = None,
    chain: AuditChainStore | None = None,
    ledger: Ledger | ChargeFunction | None = None,
    costs: Mapping[str, NodeCost] | None = None,
    strict: bool = False,
    rules: DelegationRules = OURS,
) -> list[DispatchResult]:
    """Take the results of a whole plan over the boundary, in the plan's order.

    Parameters
    ----------
    plan : OuterPlan
        The plan.
    native_results : mapping of str to mapping
        Results by node name; names that the plan does not have are ignored.
    costs : mapping of str to NodeCost, optional
        What each call used; a node without an entry has unknown cost.
    journal, chain, ledger, strict, rules
        As for :func:`dispatch_node`. Under `plan` = whole a plan is anchored whole or not at all; under node-by-node
        the nodes before the one that fails stay anchored.

    Raises
    ------
    NativeResultMissing
        If a node has no result (a ``KeyError``).
    NativeResultRejected, InputError, UnfinishedDispatch
        As for :func:`dispatch_node`.
    """
    known = costs if costs is not None else {}
    sinks: dict[str, Any] = {"journal": journal, "chain": chain, "ledger": ledger}
    results: list[DispatchResult] = []
    crossings: list[_Crossing] = []
    for node in plan.nodes:
        if node.name not in native_results:
            raise NativeResultMissing(f"no native result supplied for plan node {node.name!r}")
        cost = known.get(node.name, NodeCost())
        crossings.append(_prepare(node, native_results[node.name], cost, strict=strict, rules=rules))
        if rules.plan == "node-by-node":
            results += _commit(crossings, **sinks)
            crossings = []
    return results + _commit(crossings, **sinks)


@dataclass(frozen=True, slots=True)
class _Crossing:
    """One node with its checked result: everything that can be known before anything is written."""

    node: DispatchNode
    payload: dict[str, Any]
    node_hash: str
    result_hash: str
    charge: Charge

    def event(self) -> tuple[str, dict[str, Any]]:
        """Return the journal's event; neither the prompt nor the result is in it."""
        node = self.node
        payload = {
            "node_name": node.name, "target": node.target, "model": node.model, "effort": node.effort,
            "tier": node.tier, "node_hash": self.node_hash, "result_content_hash": self.result_hash,
        }  # fmt: skip
        return DELEGATION_EVENT, payload

    def details(self, run_id: str, row: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the audit log's details."""
        return {
            "run_id": run_id, "node_name": self.node.name, "target": self.node.target, "node_hash": self.node_hash,
            "result_content_hash": self.result_hash, "journal_index": -1 if row is None else row["index"],
            "journal_event_hash": "" if row is None else row["event_hash"], "tier": self.node.tier,
        }  # fmt: skip


def _prepare(
    node: DispatchNode, native_result: Any, cost: NodeCost, *, strict: bool, rules: DelegationRules
) -> _Crossing:
    payload = check_result(node.result_schema, native_result, strict=strict, rules=rules)
    result_hash = result_content_hash(payload, rules=rules)
    return _Crossing(node, payload, node.node_hash(rules=rules), result_hash, charge_for(node, cost, rules=rules))


def _commit(
    crossings: Sequence[_Crossing],
    *,
    journal: RunJournal | None,
    chain: AuditChainStore | None,
    ledger: Ledger | ChargeFunction | None,
) -> list[DispatchResult]:
    """Write everything, or leave everything as it was."""
    if not crossings:
        return []
    with contextlib.ExitStack() as stack:
        for sink in (journal, chain):
            if sink is not None:
                stack.enter_context(sink.exclusive())
        rows: list[Any] = [None] * len(crossings)
        if journal is not None:
            journal.intent.refuse()
            rows = journal.rows_for([crossing.event() for crossing in crossings])
        charges = [_anchored(crossing.charge, row) for crossing, row in zip(crossings, rows, strict=True)]
        run_id = "" if journal is None else journal.run_id
        entries = [delegation_entry(c.details(run_id, row)) for c, row in zip(crossings, rows, strict=True)]
        writing = _Writing(journal, chain, ledger)
        statuses = writing.run(rows, charges, entries)
    return [_result(*parts) for parts in zip(crossings, rows, charges, statuses, strict=True)]


class _Writing:
    """One pass over the sinks, taken back if any of them fails."""

    __slots__ = ("_chain", "_journal", "_ledger", "_undo")

    def __init__(self, journal: RunJournal | None, chain: AuditChainStore | None, ledger: Any) -> None:
        self._journal = journal
        self._chain = chain
        self._ledger = ledger
        self._undo: list[Callable[[], None]] = []

    def run(self, rows: list[Any], charges: list[Charge], entries: list[dict[str, Any]]) -> Sequence[object]:
        """Write rows, charges and entries; return what the ledger said to each charge."""
        statuses: Sequence[object] = [None] * len(charges)
        function = self._ledger is not None and not hasattr(self._ledger, "rollback")
        try:
            self._declare(rows, charges, entries)
            self._write_rows(rows)
            if self._ledger is not None and not function:
                self._mark(self._ledger)
                statuses = self._ledger.charge(charges)
            if self._chain is not None:
                self._mark(self._chain)
                self._chain.append(entries, embed=True)
            if function:
                self._ledger(charges)
            else:
                self._done()
        except BaseException:
            while self._undo:
                self._undo.pop()()
            raise
        if function:
            self._done()
        return statuses

    def _done(self) -> None:
        if self._journal is not None:
            self._journal.intent.clear()

    def _declare(self, rows: list[Any], charges: list[Charge], entries: list[dict[str, Any]]) -> None:
        """Say on disk what is about to be done, so that a kill leaves nothing half done."""
        journal = self._journal
        if journal is None:
            return
        journal.intent.declare(
            {
                "base": journal.file.size,
                "rows": rows,
                "charges": [charge.to_dict() for charge in charges] if self._ledger is not None else None,
                "entries": entries if self._chain is not None else None,
            }
        )
        self._undo.append(journal.intent.clear)

    def _write_rows(self, rows: list[Any]) -> None:
        if self._journal is not None:
            self._mark(self._journal)
            self._journal.write(rows)

    def _mark(self, sink: Any) -> None:
        mark = sink.mark()
        self._undo.append(lambda: sink.rollback(mark))


def _anchored(charge: Charge, row: Mapping[str, Any] | None) -> Charge:
    return charge if row is None else replace(charge, event_hash=row["event_hash"])


def _result(crossing: _Crossing, row: Mapping[str, Any] | None, charge: Charge, status: object) -> DispatchResult:
    return DispatchResult(
        node_name=crossing.node.name, node_hash=crossing.node_hash, result_content_hash=crossing.result_hash,
        payload=crossing.payload, tier=crossing.node.tier, journal_index=None if row is None else row["index"],
        charge=charge, ledger_status=status,
    )  # fmt: skip

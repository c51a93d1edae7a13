"""Cases of Bernstein's delegation: plans, dispatches, journals, ledgers and audit logs, in a folder of their own.

A case is carried out as our defaults are; where that differs, under the preset ``bernstein-3.23``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from harness_lab.conformance.areas import delegation_books as books
from harness_lab.conformance.areas.delegation_values import a_node, observed, raised
from harness_lab.conformance.shapes import Area, UnknownShape, differences, operation
from harness_lab.delegation import (
    BERNSTEIN_3_23,
    OURS,
    DispatchNode,
    OuterPlan,
    RunJournal,
    SpendLedger,
    canonical_json,
    dispatch_node,
    node_hash,
    plan_hash,
    result_content_hash,
)
from harness_lab.usage import nusd

if TYPE_CHECKING:
    from harness_lab.conformance.shapes import Answer, Case, Differences
    from harness_lab.delegation import DelegationRules

PRESETS: Final = {None: OURS, "bernstein-3.23": BERNSTEIN_3_23}
Operation = Callable[["Case", "DelegationRules", Path], "Answer"]


def hash_of_node(case: Case, rules: DelegationRules, _folder: Path) -> Answer:
    """Hash one node, or several that should hash alike."""
    nodes = [DispatchNode(**case["given"][name]) for name in case["when"].get("of", ["node"])]
    hashes = {node_hash(node, rules=rules) for node in nodes}
    text = canonical_json(nodes[0].to_dict())
    return {"canonical_json": text, "node_hash": min(hashes), "equal": len(hashes) == 1}


def hash_of_plan(case: Case, _rules: DelegationRules, _folder: Path) -> Answer:
    """Hash a plan."""
    plan = OuterPlan(tuple(DispatchNode(**node) for node in case["given"]["nodes"]))
    return {"plan_hash": plan_hash(plan), "preimage": canonical_json([node.node_hash() for node in plan.nodes])}


def construct_plan(case: Case, _rules: DelegationRules, _folder: Path) -> Answer:
    """Make a plan of nodes by name."""
    return raised(lambda: OuterPlan(tuple(a_node(name) for name in case["given"]["nodes"])))


def hash_of_content(case: Case, rules: DelegationRules, _folder: Path) -> Answer:
    """Hash a payload, or two that should differ: a path, and its text."""
    given = case["given"]
    if "payload" in given:
        text = canonical_json(given["payload"], rules=rules)
        return {"canonical_json": text, "hash": result_content_hash(given["payload"], rules=rules)}
    payloads = [observed(given["payload_a"]), observed(given["payload_b"])]
    hashes = {result_content_hash(payload, rules=rules) for payload in payloads}
    return {"equal": len(hashes) == 1, "hash": min(hashes)}


def dispatch(case: Case, rules: DelegationRules, folder: Path) -> Answer:
    """Dispatch one node; a result that is refused leaves nothing behind."""
    node = a_node(result_schema=case["given"]["result_schema"])
    journal, ledger = RunJournal("run-1", folder), SpendLedger()
    found: list[Any] = []
    result = case["when"]["native_result"]
    wrong = raised(lambda: found.append(dispatch_node(node, result, journal=journal, ledger=ledger, rules=rules)))
    if wrong["raises"]:
        left = journal.path.exists() or bool(ledger.charges)
        return {**wrong, "raises": [*wrong["raises"], "and something was written"]} if left else wrong
    return {"accepted": True, "payload": found[0].payload, "result_content_hash": found[0].result_content_hash}


def to_nano(case: Case, _rules: DelegationRules, _folder: Path) -> Answer:
    """Turn dollars into nano-dollars."""
    return {"nano": [nusd(usd) for usd in case["given"]["usd"]], "rounding": "half-even at 1e-9"}


OPERATIONS: Final[dict[str, Operation]] = {
    "node_hash": hash_of_node,
    "plan_hash": hash_of_plan,
    "construct_plan": construct_plan,
    "dispatch": dispatch,
    "result_content_hash": hash_of_content,
    "to_nano_usd": to_nano,
    "delegate_plan": books.delegate,
    "verify": books.verify,
    "construct_then_record": books.reopen,
    "dispatch_with_ledger": books.with_ledger,
    "record": books.record,
    "open_new_instance": books.open_new,
    "cheaper_model": books.cheaper,
    "entry_hmac": books.entry_hmac,
    "dispatch_with_chain": books.with_chain,
}


def _answer(case: Case, preset: str | None) -> Answer:
    name = operation(case)
    if name not in OPERATIONS:
        raise UnknownShape(f"the operation {name!r}")
    with TemporaryDirectory() as folder:
        return OPERATIONS[name](case, PRESETS[preset], Path(folder))


def _compare(case: Case, answer: Answer) -> Differences:
    """Compare; an error's class may be one that the case's class is a base of."""
    given = answer.get("raises")
    if not isinstance(given, list):
        return differences(case, answer)
    wanted = case["then"].get("raises")
    named = wanted if wanted in given else ", ".join(given)
    rest = {name: value for name, value in answer.items() if name != "raises"}
    return differences(case, {**rest, "raises": named} if given else rest)


AREA: Final = Area(
    name="delegation",
    parts=frozenset({"delegation"}),
    answer=_answer,
    presets=lambda _case: tuple(PRESETS),
    compare=_compare,
)

"""Cases of delegation about what is written: journals, ledgers, audit logs."""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Any, Final

from harness_lab.conformance.areas.delegation_values import GOOD, a_node, raised, result_named, two_rows
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.delegation import (
    AuditChainStore,
    ChainKey,
    Charge,
    DispatchNode,
    OuterPlan,
    RunJournal,
    Seal,
    SpendLedger,
    delegate_plan,
    dispatch_node,
    hkdf,
    verify_bytes,
    verify_journal,
)
from harness_lab.usage import nusd

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.conformance.shapes import Answer, Case
    from harness_lab.delegation import DelegationRules

KEY: Final = b"k" * 32
TIMES: Final = ("ts", "elapsed_s")
CHANGES: Final[dict[str, dict[str, Any] | None]] = {
    "drop last row": None,
    "row 1 ts -> 0": {"ts": 0},
    "row 1 tier interactive->batch": {"tier": "batch"},
}
"""What is done to a journal of two rows before it is verified; None: its last row is taken away."""


def delegate(case: Case, rules: DelegationRules, folder: Path) -> Answer:
    """Delegate a plan and read what its journal and ledger then hold."""
    plan = OuterPlan(tuple(a_node(n) if isinstance(n, str) else DispatchNode(**n) for n in case["given"]["plan"]))
    given = case["when"]["native_results"]
    named = dict.fromkeys(given, GOOD) if isinstance(given, list) else given
    results: dict[str, Any] = {
        name: result_named(value) if isinstance(value, str) else value for name, value in named.items()
    }
    journal, ledger = RunJournal("run-1", folder, rules=rules), SpendLedger(rules=rules)
    done: list[Any] = []
    wrong = raised(lambda: done.extend(delegate_plan(plan, results, journal=journal, ledger=ledger, rules=rules)))
    lines = journal.path.read_text("utf-8").splitlines() if journal.path.exists() else []
    unused = set(named) - {node.name for node in plan.nodes}
    said = {
        "journal_rows": len(lines),
        "already_anchored": len(lines),
        "ledger_rows": len(ledger.charges),
        "rows": [{key: v for key, v in json.loads(line).items() if key not in TIMES} for line in lines],
        "order": [result.node_name for result in done],
        "journal_index": [result.journal_index for result in done],
        "head": journal.head(),
        "unused_entries": "ignored" if unused and not wrong["raises"] else "none, or refused",
    }
    return {**said, **wrong}


def verify(case: Case, _rules: DelegationRules, folder: Path) -> Answer:
    """Change a journal of two rows, and verify it with and without its seal."""
    change = case["when"]["change"]
    if change not in CHANGES:
        raise UnknownShape(f"the change {change!r}")
    journal = two_rows(folder)
    seal = Seal(head=journal.head(), count=2)
    rows = [json.loads(line) for line in journal.path.read_text("utf-8").splitlines()]
    fields = CHANGES[change]
    if fields is None:
        rows.pop()
    else:
        rows[1].update(fields)
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    plain, sealed = (verify_bytes(data, seal=given).to_dict() for given in (None, seal))
    both = {
        name: {key: verdict[key] for key in ("chain_consistent", "identity")}
        for name, verdict in (("without_seal", plain), ("with_seal", sealed))
    }
    return {**plain, "errors": list(plain["errors"]), **both}


def reopen(_case: Case, rules: DelegationRules, folder: Path) -> Answer:
    """Open a journal that has rows anew and write on."""
    path = two_rows(folder).path
    RunJournal("run-1", folder, rules=rules).record("task_claimed", task_id="t1")
    verdict = verify_journal(path)
    return {"chain_consistent": verdict.chain_consistent, "errors": list(verdict.errors)}


def with_ledger(case: Case, rules: DelegationRules, _folder: Path) -> Answer:
    """Dispatch one node with its use, and read its charge."""
    given = dict(case["given"])
    node, ledger = a_node(batch=given.pop("batch")), SpendLedger()
    dispatch_node(node, GOOD, ledger=ledger, rules=rules, **given)
    (charge,) = ledger.charges
    return {"cost_usd": charge.cost_usd, "tags": charge.tags, **charge.to_dict()}


def record(case: Case, rules: DelegationRules, _folder: Path) -> Answer:
    """Charge costs one after the other, and read the ledger after each."""
    ledger, after = _ledger(case, rules), []
    for usd in case["when"]["costs"]:
        status = ledger.charge([_charge(usd)])[0]
        after.append(
            {
                "spent": status.spent_usd,
                "warn": status.warn,
                "soft_halt": status.soft_halt,
                "hard_halt": status.hard_halt,
                "admits": ledger.admits(),
                "reroute": ledger.cheaper_model("claude-sonnet-4"),
            }
        )
    return {"after_each": after}


def open_new(case: Case, rules: DelegationRules, folder: Path) -> Answer:
    """Open a ledger on a file that has charges."""
    file = folder / "ledger.jsonl"
    _ledger(case, rules, file=file).charge([_charge(case["given"]["file_already_holds_usd"])])
    again = _ledger(case, rules, file=file)
    rows = len(file.read_text("utf-8").splitlines())
    return {"spent_usd": again.status().spent_usd, "admits": again.admits(), "file_rows": rows}


def cheaper(case: Case, rules: DelegationRules, _folder: Path) -> Answer:
    """Ask for a cheaper model when nine tenths of a limit are spent."""
    ledger = SpendLedger(soft_limit_usd=1.0, rules=rules)
    ledger.charge([_charge(0.9)])
    return {"suggest": [ledger.cheaper_model(model) for model in case["when"]["models"]]}


PREIMAGE = "domain_prefix + prev_hmac + JSON(entry without hmac, keys sorted, default separators, ASCII)"
"""What an audit entry's signature is of, in the words of the cases."""


def entry_hmac(case: Case, _rules: DelegationRules, _folder: Path) -> Answer:
    """Sign an audit entry with a key derived from a master key."""
    given = case["given"]
    key = ChainKey(bytes.fromhex(given["master_key_hex"]))
    if hkdf(bytes.fromhex(given["master_key_hex"]), info=b"audit").hex() != given["derived_key_hex"]:
        return {"hmac": "another key was derived", "preimage": None}
    told = key.entry_hmac(given["entry"])
    unsigned = {name: value for name, value in given["entry"].items() if name != "hmac"}
    text = given["domain_prefix"] + given["entry"]["prev_hmac"] + json.dumps(unsigned, sort_keys=True)
    signed = hmac.new(bytes.fromhex(given["derived_key_hex"]), text.encode(), "sha256").hexdigest()
    return {"hmac": told, "preimage": PREIMAGE if signed == told else "something else"}


def with_chain(case: Case, rules: DelegationRules, folder: Path) -> Answer:
    """Dispatch one node with an audit log, and read its entry."""
    chain = AuditChainStore(folder / "audit", key=KEY)
    dispatch_node(a_node(), GOOD, chain=chain, rules=rules)
    details = chain.entries()[0]["details"]
    return {"details": {name: details.get(name) for name in case["then"]["details"]}}


def _ledger(case: Case, rules: DelegationRules, *, file: Path | None = None) -> SpendLedger:
    given = case["given"]
    return SpendLedger(
        soft_limit_usd=given.get("budget_usd"), hard_limit_usd=given.get("hard_budget_usd"), rules=rules, file=file
    )


def _charge(usd: float) -> Charge:
    money = nusd(usd)
    return Charge(
        node_name="a", target="claude", model="m", tier="interactive", undiscounted_nusd=money, cost_nusd=money
    )

"""A plan as data: what identifies it, the check at its boundary, the run journal, the audit chain, and what it cost."""

from harness_lab.delegation.audit import (
    EVENT_SUBAGENT_DELEGATION,
    AuditChainStore,
    load_key,
    read_entries,
    record_subagent_delegation,
    verify_audit,
)
from harness_lab.delegation.audit_report import AuditVerdict, missing_entries
from harness_lab.delegation.canonical import canonical_json
from harness_lab.delegation.charges import BATCH_TIER_DISCOUNT, Charge, NodeCost
from harness_lab.delegation.dispatch import DispatchResult, delegate_plan, dispatch_node
from harness_lab.delegation.errors import (
    ChainBroken,
    JournalPathError,
    NativeResultMissing,
    NativeResultRejected,
    PlanError,
    SchemaViolation,
    UnfinishedDispatch,
)
from harness_lab.delegation.events import DELEGATION_EVENT, JournalVerdict, Seal, verify_rows
from harness_lab.delegation.hmac_chain import ChainKey, hkdf
from harness_lab.delegation.journal import RunJournal, read_journal, verify_journal
from harness_lab.delegation.ledger import Ledger, LedgerStatus, SpendLedger
from harness_lab.delegation.plan import DispatchNode, OuterPlan, node_hash, plan_hash, result_content_hash
from harness_lab.delegation.recovery import Resumed, resume
from harness_lab.delegation.rules import BERNSTEIN_3_23, OURS, PRESETS, DelegationRules, preset
from harness_lab.delegation.savings import CacheSavings, NodeSaving, cache_savings
from harness_lab.delegation.schema import check_result, seal_schema
from harness_lab.delegation.verify import verify_bytes

__all__ = [
    "BATCH_TIER_DISCOUNT",
    "BERNSTEIN_3_23",
    "DELEGATION_EVENT",
    "EVENT_SUBAGENT_DELEGATION",
    "OURS",
    "PRESETS",
    "AuditChainStore",
    "AuditVerdict",
    "CacheSavings",
    "ChainBroken",
    "ChainKey",
    "Charge",
    "DelegationRules",
    "DispatchNode",
    "DispatchResult",
    "JournalPathError",
    "JournalVerdict",
    "Ledger",
    "LedgerStatus",
    "NativeResultMissing",
    "NativeResultRejected",
    "NodeCost",
    "NodeSaving",
    "OuterPlan",
    "PlanError",
    "Resumed",
    "RunJournal",
    "SchemaViolation",
    "Seal",
    "SpendLedger",
    "UnfinishedDispatch",
    "cache_savings",
    "canonical_json",
    "check_result",
    "delegate_plan",
    "dispatch_node",
    "hkdf",
    "load_key",
    "missing_entries",
    "node_hash",
    "plan_hash",
    "preset",
    "read_entries",
    "read_journal",
    "record_subagent_delegation",
    "result_content_hash",
    "resume",
    "seal_schema",
    "verify_audit",
    "verify_bytes",
    "verify_journal",
    "verify_rows",
]

"""The four questions, and named compositions of the modules that answer them."""

from harness_lab.policies.at_limit import AtLimit
from harness_lab.policies.call_costs import (
    CallContext,
    CallCostObserver,
    CallRefused,
    CallReservation,
    CallSettlement,
)
from harness_lab.policies.caps import call_holds, hard_cap
from harness_lab.policies.compose import Composed
from harness_lab.policies.durable_account import DurableAccountSpec
from harness_lab.policies.hard_cap import BoundViolation, CallHoldsSpec
from harness_lab.policies.locked import Locked, locked
from harness_lab.policies.opened import OpenPolicy
from harness_lab.policies.period_budget import PeriodBudgetSpec
from harness_lab.policies.presets import PRESETS, preset
from harness_lab.policies.protocol import (
    COMPLETED,
    End,
    Grant,
    Granted,
    Module,
    ModuleSpec,
    Path,
    Policy,
    Refused,
    SpawnAsk,
    StepAsk,
    Stop,
    Ticket,
    Use,
    Wait,
    path_text,
)
from harness_lab.policies.reservation_pool import ReservationPoolSpec
from harness_lab.policies.runtime_floors import RuntimeFloorsSpec
from harness_lab.policies.shadow import Shadow, ShadowAnswer
from harness_lab.policies.shadowed import Shadowed
from harness_lab.policies.shared_ledger import SharedLedgerSpec
from harness_lab.policies.spec import (
    PolicySpec,
    compose,
    durable_account,
    iteration_budget,
    period_budget,
    reservation_pool,
    runtime_floors,
    shared_ledger,
    tree_limits,
    unlimited,
)
from harness_lab.policies.tree_limits import TreeLimitsSpec

__all__ = [
    "COMPLETED",
    "PRESETS",
    "AtLimit",
    "BoundViolation",
    "CallContext",
    "CallCostObserver",
    "CallHoldsSpec",
    "CallRefused",
    "CallReservation",
    "CallSettlement",
    "Composed",
    "DurableAccountSpec",
    "End",
    "Grant",
    "Granted",
    "Locked",
    "Module",
    "ModuleSpec",
    "OpenPolicy",
    "Path",
    "PeriodBudgetSpec",
    "Policy",
    "PolicySpec",
    "Refused",
    "ReservationPoolSpec",
    "RuntimeFloorsSpec",
    "Shadow",
    "ShadowAnswer",
    "Shadowed",
    "SharedLedgerSpec",
    "SpawnAsk",
    "StepAsk",
    "Stop",
    "Ticket",
    "TreeLimitsSpec",
    "Use",
    "Wait",
    "call_holds",
    "compose",
    "durable_account",
    "hard_cap",
    "iteration_budget",
    "locked",
    "path_text",
    "period_budget",
    "preset",
    "reservation_pool",
    "runtime_floors",
    "shared_ledger",
    "tree_limits",
    "unlimited",
]

"""The four questions, and named compositions of the modules that answer them."""

from harness_lab.policies.compose import Composed
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
from harness_lab.policies.shared_ledger import SharedLedgerSpec
from harness_lab.policies.spec import (
    PolicySpec,
    compose,
    reservation_pool,
    runtime_floors,
    shared_ledger,
    tree_limits,
    unlimited,
)
from harness_lab.policies.tree_limits import TreeLimitsSpec

__all__ = [
    "COMPLETED",
    "Composed",
    "End",
    "Grant",
    "Granted",
    "Module",
    "ModuleSpec",
    "Path",
    "Policy",
    "PolicySpec",
    "Refused",
    "ReservationPoolSpec",
    "RuntimeFloorsSpec",
    "SharedLedgerSpec",
    "SpawnAsk",
    "StepAsk",
    "Stop",
    "Ticket",
    "TreeLimitsSpec",
    "Use",
    "Wait",
    "compose",
    "path_text",
    "reservation_pool",
    "runtime_floors",
    "shared_ledger",
    "tree_limits",
    "unlimited",
]

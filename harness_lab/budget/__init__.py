"""What a run tree may spend: the shared ledger and the reservation pool."""

from harness_lab.budget.pool import Account, Allocation, Overspend, ReservationPool
from harness_lab.budget.run import Ceiling, RunBudget, RunContext, RunLedger

__all__ = [
    "Account",
    "Allocation",
    "Ceiling",
    "Overspend",
    "ReservationPool",
    "RunBudget",
    "RunContext",
    "RunLedger",
]

"""What a run tree may spend: the shared ledger and the reservation pool."""

from harness_lab.budget.period import PeriodBudget, PeriodLimits
from harness_lab.budget.pool import Account, Allocation, Overspend, ReservationPool
from harness_lab.budget.run import Ceiling, RunBudget, RunContext, RunLedger
from harness_lab.budget.windows import Calendar, Rolling

__all__ = [
    "Account",
    "Allocation",
    "Calendar",
    "Ceiling",
    "Overspend",
    "PeriodBudget",
    "PeriodLimits",
    "ReservationPool",
    "Rolling",
    "RunBudget",
    "RunContext",
    "RunLedger",
]

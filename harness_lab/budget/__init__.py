"""What a run tree may spend: the shared ledger and the reservation pool."""

from harness_lab.budget.advice import advice
from harness_lab.budget.allocation import Account, Allocation, Overspend
from harness_lab.budget.period import PeriodBudget, PeriodLimits
from harness_lab.budget.pool import ReservationPool
from harness_lab.budget.pool_rules import POOL_RULES, BudgetFault, PoolRules
from harness_lab.budget.run import Ceiling, RunBudget, RunContext, RunLedger
from harness_lab.budget.scope import Scope
from harness_lab.budget.scope_child import Child, ExecutionRetained, ReservationsOpen, WorkFailed
from harness_lab.budget.scope_journal import Accounting, Event, Leak, NotDelivered, Settlement
from harness_lab.budget.scope_spec import ScopeSpec
from harness_lab.budget.spend import NOTHING, UNREPORTED, Quantity, Spend
from harness_lab.budget.windows import Calendar, Rolling

__all__ = [
    "NOTHING",
    "POOL_RULES",
    "UNREPORTED",
    "Account",
    "Accounting",
    "Allocation",
    "BudgetFault",
    "Calendar",
    "Ceiling",
    "Child",
    "Event",
    "ExecutionRetained",
    "Leak",
    "NotDelivered",
    "Overspend",
    "PeriodBudget",
    "PeriodLimits",
    "PoolRules",
    "Quantity",
    "ReservationPool",
    "ReservationsOpen",
    "Rolling",
    "RunBudget",
    "RunContext",
    "RunLedger",
    "Scope",
    "ScopeSpec",
    "Settlement",
    "Spend",
    "WorkFailed",
    "advice",
]

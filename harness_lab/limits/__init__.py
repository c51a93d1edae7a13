"""How large a tree may grow: depth, starts, concurrency, time."""

from harness_lab.limits.tree import HARNESS_DEFAULTS, StartCounter, SubagentBudget, SubagentLimits

__all__ = ["HARNESS_DEFAULTS", "StartCounter", "SubagentBudget", "SubagentLimits"]

"""How large a tree may grow: depth, starts, concurrency, time."""

from harness_lab.limits.tree import HARNESS_DEFAULTS, StartCounter, SubagentBudget, SubagentLimits, tool_error

__all__ = ["HARNESS_DEFAULTS", "StartCounter", "SubagentBudget", "SubagentLimits", "tool_error"]

"""A lab for the budgets of AI agents."""

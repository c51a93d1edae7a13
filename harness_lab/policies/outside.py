"""Charging steps that run although no module holds anything for them: wrap-ups, and what only a shadow refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.policies.protocol import OPEN, Ticket, Use

if TYPE_CHECKING:
    from harness_lab.clock import Time
    from harness_lab.policies.compose import Composed
    from harness_lab.policies.protocol import StepAsk


def step_outside(ask: StepAsk, now: Time) -> Ticket:
    """Return the ticket of a step that no module was asked about."""
    ticket = Ticket(ask, ask.node, ask.node.depth, ask.node.memory, now, ask.node.policy)
    ticket.state = OPEN
    return ticket


def charge_outside(policy: Composed, ticket: Ticket, use: Use, now: Time, *, counts: bool) -> None:
    """Charge a step to the modules of a composition that keep books of steps.

    Parameters
    ----------
    policy : Composed
        The composition.
    ticket : Ticket
        The step, from :func:`step_outside`.
    use : Use
        What it used.
    now : Time
        When it ended.
    counts : bool
        Whether a module that holds worst cases counts it as spent, or books it apart.

    Notes
    -----
    Books that follow what happens (the shared ledger, the pool) count it either way: it did happen. A period budget
    holds it and settles it at once.
    """
    if use.status == "unsent":
        return
    plain = Use(use.spent, use.status)  # nothing was taken for its turn, so nothing is given back
    for module in policy.modules:
        if not module.asks_step:
            continue
        book: Any = module
        if hasattr(book, "outside"):
            book.outside(ticket, plain, now, counts=counts)
        else:
            if getattr(book, "holds_steps", False):
                book.hold(ticket, now)
            book.settle(ticket, plain, now)

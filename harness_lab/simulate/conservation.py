"""What must hold when a run has ended: nothing is held, nobody waits, and the books say what the nodes used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.errors import NotConserved
from harness_lab.policies.compose import Composed

if TYPE_CHECKING:
    from harness_lab.simulate.rows import Rows


def check_conserved(policy: Any, rows: Rows, spec: Any) -> None:
    """Hold a composed policy's books, after a run, against the sums of the rows of its nodes.

    A module takes part by two methods, if it has them: ``unsettled()`` says what it still holds, and
    ``booked_nusd()`` what it has booked, and whether that is just what was reported or may be more (where unknown usage
    is charged at its worst case).

    Parameters
    ----------
    policy : Policy
        A policy that is not a composition is left alone.
    rows : Rows
        The rows, with the sum of what the nodes of this run reported.
    spec : PolicySpec
        Whose policy it is; for the error.

    Raises
    ------
    NotConserved
        If something is still held, somebody waits, or the sums differ.
    """
    if not isinstance(policy, Composed):
        return
    if policy.waiting:
        raise NotConserved(_where(spec, rows), f"{policy.waiting} question(s) still wait")
    for module in policy.modules:
        unsettled = getattr(module, "unsettled", None)
        if unsettled is not None and (what := unsettled()):
            raise NotConserved(_where(spec, rows), what)
        booked = getattr(module, "booked_nusd", None)
        if booked is not None and (said := booked()) is not None:
            amount, exact = said
            if amount < rows.reported_nusd or (exact and amount != rows.reported_nusd):
                what = f"{amount:,} nano-dollars are booked and nodes reported {rows.reported_nusd:,}"
                raise NotConserved(_where(spec, rows), what)


def _where(spec: Any, rows: Rows) -> str:
    return f"policy {getattr(spec, 'name', spec)}, run {rows.run}"

"""A loop of turns under an iteration budget, and children that run such a loop."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import RunBudget, RunContext
from harness_lab.clock import ManualClock, Time
from harness_lab.outcome import Outcome, Refusal
from harness_lab.policies import Grant, SpawnAsk, StepAsk, Use, iteration_budget
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness_lab.agents.delegating import DelegatedTask
    from harness_lab.budget.iteration import IterationBudget
    from harness_lab.policies import PolicySpec

UNLIMITED: Final = "unbounded"
TURNS: Final = 500
"""After as many turns a loop that nothing stopped is given up."""
ONE_CALL: Final = amounts(calls=1, input=0, tokens=0, fresh=0, cost_usd=0)
PROGRAMMATIC: Final = {"execute_code"}
"""A turn that calls nothing else gives its unit back."""
PARENT_USD: Final = 1.0
CHILD_USD: Final = 0.25
"""What parent and each child cost in the cases of delegation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """How a loop ended.

    Parameters
    ----------
    exit : str
        ``text`` (it answered), ``budget`` (it was refused) or that nothing stopped it.
    model_calls : int
        Calls that were made.
    loop_counter, budget_used : int
        Units taken from the loop's own counter and from the budget, after refunds.
    """

    exit: str
    model_calls: int
    loop_counter: int
    budget_used: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def run_loop(spec: PolicySpec, turns: Sequence[Any]) -> Loop:
    """Run turns until one answers or a call is refused; the last turn repeats."""
    policy = spec.start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    if not isinstance(top, Grant):
        return Loop(exit="budget", model_calls=0, loop_counter=0, budget_used=0)
    calls, ended = 0, ""
    while not ended and calls <= TURNS:
        turn = turns[min(calls, len(turns) - 1)]
        answer = policy.admit(StepAsk(top.ticket, calls, 0, amounts()), Time(0))
        if isinstance(answer, Refusal):
            ended = "budget"
            continue
        script = isinstance(turn, list) and set(turn) == PROGRAMMATIC
        policy.settle(answer.ticket, Use(ONE_CALL, turn="programmatic" if script else "interactive"), Time(0))
        calls += 1
        ended = "text" if turn == "text" else ""
    budget: IterationBudget = top.ticket.memory[-1]
    ledger = getattr(policy.modules[0], "ledger", None)  # a counter of the loop's own, where it has one
    counter = budget.used if ledger is None else ledger.steps
    ended = ended or f"no_limit_reached_in_{TURNS}_turns"
    return Loop(exit=ended, model_calls=calls, loop_counter=counter, budget_used=budget.used)


def child_result(
    tasks: Sequence[DelegatedTask], script: Mapping[str, Any] | None
) -> tuple[list[dict[str, Any]], float, list[bool]]:
    """Run children and return how each ended, what the parent's tree then cost, and who shared the parent's budget.

    Parameters
    ----------
    tasks : sequence of DelegatedTask
        The children.
    script : mapping or None
        What a child does: it goes on until it is stopped when ``completed`` is false; it answers at once if None.
    """
    root = RunContext.root("parent", RunBudget(10**6), clock=ManualClock())
    root.ledger.record_cost(PARENT_USD)
    turns: list[Any] = ["text"] if script is None or script["completed"] else [["x"]]
    results, shares = [], []
    for index, task in enumerate(tasks):
        loop = run_loop(iteration_budget(task.max_iterations), turns)
        root.for_child(RunBudget(task.max_iterations), "parent").ledger.record_cost(CHILD_USD)
        shares.append(_shares(task, index))
        status = Outcome.COMPLETED if loop.exit == "text" else Outcome.EXHAUSTED
        reason = "completed" if loop.exit == "text" else "max_iterations"
        results.append({"task_index": index, "status": str(status), "exit_reason": reason})
    return results, root.ledger.cost_usd, shares


def _shares(task: DelegatedTask, index: int) -> bool:
    """Whether a child under the iteration policy draws on its parent's counter."""
    policy = iteration_budget(task.max_iterations).start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    if not isinstance(top, Grant):
        return False
    asked = amounts(calls=task.max_iterations)
    child = policy.spawn(SpawnAsk(top.ticket, ((0, index, 0),), asked), Time(0))
    return isinstance(child, Grant) and child.ticket.memory[-1] is top.ticket.memory[-1]

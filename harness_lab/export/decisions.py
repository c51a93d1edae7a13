"""Answers of two policies to the same runs: where they first differ, and what kind of difference that is."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.simulate import Experiment
    from harness_lab.simulate.result import Result

Kind = Literal["ended earlier", "ended later", "start refused", "start let in", "waits otherwise"]
KINDS: Final[dict[Kind, str]] = {
    "ended earlier": "a call is refused, or time is up, that was not before",
    "ended later": "a call is made that was refused, or was not made in time, before",
    "start refused": "a child does not start that did before",
    "start let in": "a child starts that did not before",
    "waits otherwise": "an ask waits that did not before, or waits no more",
}
"""Kinds of difference, and what each means; a run is of the kind of its first difference."""


class Run(NamedTuple):
    """What a policy made of a run: its answers, whether its root completed, and whether a limit ended a node."""

    answers: list[Answer]
    completed: bool
    stopped: bool = False

    @property
    def bound(self) -> bool:
        """Whether a limit did anything: refused something, made it wait, or ended a node."""
        return self.stopped or any(one.answer != "granted" for one in self.answers)

    @property
    def calls(self) -> int:
        """Model calls that were let through."""
        return sum(one.question == "admit" and one.answer == "granted" for one in self.answers)


class Answer(NamedTuple):
    """One answer: who asked what, and what came of it.

    The answer is granted, waits or refused. Codes are left out, since the same refusal has other names elsewhere; a
    deadline shows in what follows it.
    """

    node: str
    question: str
    call: int
    attempt: int
    answer: str


def by_run(result: Result, policy: str) -> dict[str, list[Answer]]:
    """Return each run's answers under a policy, in order; where runs arrive together, ``3.1`` is a period's second.

    There each run's answers are told apart only where runs do not share a policy, or share one that outlives a run.
    """
    found: dict[str, list[Answer]] = {}
    rows = result.decisions
    if rows is None:
        return found
    mine = rows.loc[rows["policy"] == policy, ["run", "node", "question", "call", "attempt", "answer"]]
    for run, node, question, call, attempt, answer in mine.itertuples(index=False, name=None):
        told = answer if answer in ("granted", "waits") else "refused"
        found.setdefault(str(run), []).append(Answer(node, question, call, attempt, told))
    return found


def runs_of(result: Result, policy: str) -> dict[str, Run]:
    """Return what a policy made of each run, in order of the table."""
    nodes = result.settlements.nodes
    roots = nodes[(nodes["policy"] == policy) & nodes["parent"].isna()]
    answers = by_run(result, policy)
    stopped = set(nodes.loc[(nodes["policy"] == policy) & nodes["stopped_by"].notna(), "run"].astype("string"))
    ended = zip(roots["run"].astype("string").tolist(), roots["outcome"].tolist(), strict=True)
    return {run: Run(answers.get(run, []), outcome == "completed", run in stopped) for run, outcome in ended}


def apart(experiment: Experiment) -> Experiment:
    """Return the experiment with a policy for each run that arrives, where its state lasts one run."""
    arrivals = experiment.workload.arrivals
    if arrivals is None:
        return experiment
    return replace(experiment, workload=replace(experiment.workload, arrivals=replace(arrivals, shared=False)))


def kind_of(before: Run, after: Run) -> Kind | None:
    """Return the kind of the first difference between the answers of one run; None where there is none.

    Up to it both policies met the same questions. Where the questions themselves differ, time has come between: the run
    that is granted fewer calls ended earlier.
    """
    answers = zip_longest(before.answers, after.answers)
    first = next(((one, two) for one, two in answers if one != two), None)
    if first is None:
        return None
    one, two = first
    if one is not None and two is not None and one[:-1] == two[:-1]:
        if "waits" in (one.answer, two.answer):
            return "waits otherwise"
        if two.answer == "refused":
            return "start refused" if two.question == "spawn" else "ended earlier"
        return "start let in" if two.question == "spawn" else "ended later"
    return "ended earlier" if after.calls < before.calls else "ended later"


def differing(before: Sequence[Answer], after: Sequence[Answer]) -> int:
    """Count the answers of one run that differ by their place in it, and those that only one list has."""
    return sum(one != two for one, two in zip_longest(before, after))

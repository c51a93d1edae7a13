"""What policy objects take by themselves: the questions of some runs, recorded once and asked again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from harness_lab.policies.protocol import SpawnAsk, StepAsk, Ticket, Use

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness_lab.policies import PolicySpec
    from harness_lab.simulate.engine import World

SPAWN, ADMIT, SETTLE, CLOSE = range(4)


class Conversation:
    """The questions that agents asked a policy.

    Parameters
    ----------
    world : World
        Whose agents.
    spec : PolicySpec
        The policy; it never makes anyone wait.
    runs : iterable of int
        Which runs.
    slots, timeout_s
        As for :func:`harness_lab.bench.simpy_agents.simulate`.

    Attributes
    ----------
    calls : int
        Calls that were admitted.
    """

    def __init__(self, world: World, spec: PolicySpec, runs: Iterable[int], *, slots: int, timeout_s: float) -> None:
        from harness_lab.bench import simpy_agents

        self._spec = spec
        self._talks: list[_Recorder] = []
        simpy_agents.simulate(world, self, runs, slots=slots, timeout_s=timeout_s)  # type: ignore[arg-type]
        self.calls = sum(talk.admitted for talk in self._talks)

    def start(self, run: str) -> Any:
        """Start the policy of one run, and write down what it is asked."""
        self._talks.append(_Recorder(self._spec.start(run)))
        return self._talks[-1]

    def seconds(self) -> float:
        """Ask everything again and return the processor time that the answers take, less that of asking nobody."""
        return self._ask(self._spec) - self._ask(_Nobody())

    def _ask(self, spec: Any) -> float:
        spent = 0.0
        for talk in self._talks:
            policy = spec.start("")
            start = time.process_time()
            replay(policy, talk.said)
            spent += time.process_time() - start
        return spent


def replay(policy: Any, said: list[tuple[Any, ...]]) -> None:
    """Ask a policy what was asked before."""
    tickets: list[Any] = []
    spawn, admit, settle, close = policy.spawn, policy.admit, policy.settle, policy.close
    for what, place, one, two, three, now in said:
        if what == ADMIT:
            answer = admit(StepAsk(tickets[place], one, two, three), now)
            tickets.append(getattr(answer, "ticket", None))
        elif what == SETTLE:
            settle(tickets[place], Use(one, two), now)
        elif what == SPAWN:
            answer = spawn(SpawnAsk(None if place < 0 else tickets[place], one, two), now)
            tickets.append(getattr(answer, "ticket", None))
        else:
            close(tickets[place], Use(one, two), three, now)


class _Recorder:
    """A policy that writes its conversation down."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self._places: dict[Ticket, int] = {}
        self._asked = 0
        self.admitted = 0
        self.said: list[tuple[Any, ...]] = []

    def spawn(self, ask: SpawnAsk, now: Any) -> Any:
        place = -1 if ask.parent is None else self._places[ask.parent]
        return self._answered(self._policy.spawn(ask, now), (SPAWN, place, ask.path, ask.budget, None, now))

    def admit(self, ask: StepAsk, now: Any) -> Any:
        answer = self._policy.admit(ask, now)
        self.admitted += hasattr(answer, "ticket")
        return self._answered(answer, (ADMIT, self._places[ask.node], ask.call, ask.attempt, ask.bound, now))

    def settle(self, step: Ticket, use: Use, now: Any) -> None:
        self.said.append((SETTLE, self._places[step], use.spent, use.status, None, now))
        self._policy.settle(step, use, now)

    def close(self, node: Ticket, use: Use, end: Any, now: Any) -> None:
        self.said.append((CLOSE, self._places[node], use.spent, use.status, end, now))
        self._policy.close(node, use, end, now)

    def _answered(self, answer: Any, said: tuple[Any, ...]) -> Any:
        self.said.append(said)
        if hasattr(answer, "ticket"):
            self._places[answer.ticket] = self._asked
        self._asked += 1
        return answer


class _Nobody:
    """A policy that says yes and does nothing: what asking takes."""

    def start(self, _run: str) -> _Nobody:
        return self

    def spawn(self, _ask: Any, _now: Any) -> None:
        return None

    admit = spawn

    def settle(self, _ticket: Any, _use: Any, _now: Any) -> None:
        return None

    def close(self, _ticket: Any, _use: Any, _end: Any, _now: Any) -> None:
        return None

"""What goes wrong around agents: wrappers that compose, each drawn for itself and named like every draw.

A fault may stand around what agents do (their brains), around the policy (what reaches it, and when), or around the
runtime (how long an answer takes). Put several into :attr:`Workload.faults`; the first is the outermost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harness_lab import draws
from harness_lab.agents.ports import DEADLINE, Call, Child, Children
from harness_lab.clock import NS_PER_S, ns
from harness_lab.errors import InputError
from harness_lab.outcome import Cause, Code, Outcome, Purpose, Refusal, Shortfall
from harness_lab.policies.protocol import End, SpawnAsk
from harness_lab.providers.tables import Table
from harness_lab.simulate.fault_policies import DeadLetters, JumpingClock, Refusing, Slow, SlowRuntime
from harness_lab.simulate.runtime import SimRuntime

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.agents.ports import Brain, Runtime
    from harness_lab.policies.protocol import Path, Policy
    from harness_lab.stats.distributions import Distribution

_MANY = 4
"""A worker that dies does so in one of so many first calls."""
DIED = End(Outcome.FAILED, None, Cause.INFRASTRUCTURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Nothing goes wrong: what each fault changes is what it overrides.

    Attributes
    ----------
    kernel_only : bool
        Whether the asyncio engine cannot do it.
    """

    kernel_only = False

    def started(self, key: int) -> ActiveFault:
        """Return the fault at work in one world, whose luck is named by `key`."""
        return ActiveFault(key)


class ActiveFault:
    """A fault at work in one world."""

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key

    def policy(self, policy: Policy) -> Policy:
        """Return what stands in front of a policy."""
        return policy

    def runtime(self, runtime: Runtime) -> Runtime:
        """Return what stands in front of a runtime."""
        return runtime

    def brain(self, brain: Brain, agent: str, path: Path, key: int, runtime: Runtime) -> Brain:
        """Return what stands in front of a node's brain; it runs inside the node's process."""
        return brain


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDies(Fault):
    """Workers die in a call: neither the call nor the node is ever settled with the policy.

    Whoever waits for the worker is told that it failed. The tokens are spent, and so is what was held for it.

    Parameters
    ----------
    chance : float
        Chance for each node, 0 to 1; it dies in one of its first four calls, if it comes to it.
    agents : tuple of str
        Roles that die; empty: all.
    """

    chance: float
    agents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_chance(self.chance)

    def started(self, key: int) -> ActiveFault:
        """Return the fault at work in one world, whose luck is named by `key`."""
        return _Dying(key, self)


class _Dying(ActiveFault):
    __slots__ = ("_dead", "_fault")

    def __init__(self, key: int, fault: WorkerDies) -> None:
        super().__init__(key)
        self._fault = fault
        self._dead: set[Path] = set()

    def policy(self, policy: Policy) -> Policy:
        return DeadLetters(policy, self._dead)

    def brain(self, brain: Brain, agent: str, path: Path, key: int, runtime: Runtime) -> Brain:
        word = draws.word(key, 0, 0, Purpose.FAULT)
        if not _concerned(self._fault.agents, agent) or word >> 32 >= draws.chance(self._fault.chance):
            return (yield from brain)
        lives = (word & 0xFFFF_FFFF) * _MANY >> 32
        told: Any = None
        made = 0
        while True:
            try:
                move = brain.send(told)
            except StopIteration as finished:
                return finished.value  # type: ignore[no-any-return]
            if type(move) is Call and made == lives:
                self._dead.add(path)
                yield move
                brain.close()
                return DIED
            made += type(move) is Call
            told = yield move


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentCancelled(Fault):
    """Nodes are cancelled while they run, with all that is below them.

    Parameters
    ----------
    chance : float
        Chance for each node, 0 to 1.
    after_s : Distribution
        Seconds from its start; a node that has ended by then is not cancelled.
    agents : tuple of str
        Roles that are cancelled; empty: all.

    Notes
    -----
    On the kernel only: an experiment with it refuses ``engine="asyncio"`` before anything is simulated, and
    ``engine="auto"`` takes the kernel.
    """

    chance: float
    after_s: Distribution
    agents: tuple[str, ...] = ()
    kernel_only = True

    def __post_init__(self) -> None:
        _check_chance(self.chance)

    def started(self, key: int) -> ActiveFault:
        """Return the fault at work in one world, whose luck is named by `key`."""
        return _Cancelling(key, self)


class _Cancelling(ActiveFault):
    __slots__ = ("_after", "_fault")

    def __init__(self, key: int, fault: ParentCancelled) -> None:
        super().__init__(key)
        self._fault = fault
        self._after = Table(fault.after_s, NS_PER_S).draw

    def brain(self, brain: Brain, agent: str, path: Path, key: int, runtime: Runtime) -> Brain:
        due = draws.word(key, 0, 1, Purpose.FAULT) >> 32 < draws.chance(self._fault.chance)
        if not due or not _concerned(self._fault.agents, agent):
            return (yield from brain)
        while isinstance(runtime, SlowRuntime):
            runtime = runtime.runtime
        if not isinstance(runtime, SimRuntime):
            raise InputError("engine", expected="kernel, for a fault that cancels nodes", got="asyncio")
        kernel = runtime.kernel
        me = kernel.current
        at = kernel.now + self._after(draws.word(key, 0, 1, Purpose.FAULT_TIME))
        timer = kernel.at(at, DEADLINE, partial(kernel.cancel, me))
        try:
            return (yield from brain)
        finally:
            timer.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockJumps(Fault):
    """The clock that the policy reads jumps once; agents and calls go on as they were.

    Parameters
    ----------
    at_s : float
        When, seconds from the start.
    by_s : float
        How far, seconds; below 0 it goes back.
    """

    at_s: float
    by_s: float

    def __post_init__(self) -> None:
        ns(self.at_s, what="at_s"), ns(self.by_s, what="by_s")

    def started(self, key: int) -> ActiveFault:
        """Return the fault at work in one world, whose luck is named by `key`."""
        return _Jumping(key, self)


class _Jumping(ActiveFault):
    __slots__ = ("_fault",)

    def __init__(self, key: int, fault: ClockJumps) -> None:
        super().__init__(key)
        self._fault = fault

    def policy(self, policy: Policy) -> Policy:
        return JumpingClock(policy, ns(self._fault.at_s), ns(self._fault.by_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStore(Fault):
    """What the policy writes to is slow, or refuses.

    Parameters
    ----------
    delay_s : Distribution or None
        Seconds before a question is answered; None: at once.
    refuse_chance : float
        Chance that a question is refused as unavailable, 0 to 1.
    """

    delay_s: Distribution | None = None
    refuse_chance: float = 0.0

    def __post_init__(self) -> None:
        _check_chance(self.refuse_chance)

    def started(self, key: int) -> ActiveFault:
        """Return the fault at work in one world, whose luck is named by `key`."""
        return _Slow(key, self)


class _Slow(ActiveFault):
    __slots__ = ("_delay", "_refuses")

    def __init__(self, key: int, fault: SlowStore) -> None:
        super().__init__(key)
        self._delay = None if fault.delay_s is None else Table(fault.delay_s, NS_PER_S).draw
        self._refuses = draws.chance(fault.refuse_chance)

    def runtime(self, runtime: Runtime) -> Runtime:
        delay = self._delay
        if delay is None:
            return runtime
        return SlowRuntime(runtime, lambda ask: delay(draws.word(*self._named(ask), Purpose.FAULT_TIME)))

    def policy(self, policy: Policy) -> Policy:
        refusing = Refusing(policy, self._refusal) if self._refuses else policy
        return refusing if self._delay is None else Slow(refusing)

    def _refusal(self, ask: Any) -> Refusal | None:
        if draws.word(*self._named(ask), Purpose.FAULT) >> 32 >= self._refuses:
            return None
        return Refusal((Shortfall(Code.ACCOUNT_UNAVAILABLE, None, None, None, "wait", detail="simulated fault"),))

    def _named(self, ask: Any) -> tuple[int, int, int]:
        if isinstance(ask, SpawnAsk):
            return key_of(self.key, ask.path), 0, 2
        return key_of(self.key, ask.node.path), ask.call + 1, min(ask.attempt, 31)


def around(
    faults: list[ActiveFault], brain: Callable[[], Brain], agent: str, path: Path, key: int, runtime: Runtime
) -> Callable[[], Brain]:
    """Return a brain with faults around it and around all that it starts."""

    def made() -> Brain:
        found = _children_too(faults, brain(), path, key, runtime)
        for fault in reversed(faults):
            found = fault.brain(found, agent, path, key, runtime)
        return found

    return made


def key_of(root: int, path: Path) -> int:
    """Return the draw key of a node."""
    for call, slot, attempt in path:
        root = draws.child_key(root, call, slot, attempt)
    return root


def _children_too(faults: list[ActiveFault], brain: Brain, path: Path, key: int, runtime: Runtime) -> Brain:
    told: Any = None
    try:
        while True:
            try:
                move = brain.send(told)
            except StopIteration as finished:
                return finished.value  # type: ignore[no-any-return]
            if type(move) is Children:
                move = Children([_wrapped(faults, child, path, key, runtime) for child in move.children])
            told = yield move
    finally:
        brain.close()


def _wrapped(faults: list[ActiveFault], child: Child, path: Path, key: int, runtime: Runtime) -> Child:
    name = (child.call, child.slot, child.attempt)
    below = draws.child_key(key, *name)
    return replace(child, brain=around(faults, child.brain, child.agent, (*path, name), below, runtime))


def _concerned(agents: tuple[str, ...], agent: str) -> bool:
    return not agents or agent in agents


def _check_chance(chance: float) -> None:
    if not 0 <= chance <= 1:
        raise InputError("chance of a fault", expected="0 to 1", got=chance)

"""A policy to be tried out, as data; and its shadow beside the limits of a run that are in force."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.clock import Time
from harness_lab.errors import AccountUnavailable, InputError
from harness_lab.policies.opened import OpenPolicy
from harness_lab.policies.shadow import Shadow
from harness_lab.policies.spec import PolicySpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.outcome import Shortfall
    from harness_lab.policies.protocol import Ask, Ticket, Use

_START = Time(0)


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A policy that each run is to ask, and none to obey.

    Parameters
    ----------
    policy : PolicySpec or OpenPolicy
        Who is asked. State that outlives a run (a period budget, an account) needs one that is open.
    sink : callable, optional
        Takes the row of each answer, such as ``lambda row: print(json.dumps(row), file=log)``.
    count_refused : bool
        Whether what was refused is charged to it when it runs all the same.

    Raises
    ------
    InputError
        If `policy` is neither.
    """

    policy: PolicySpec | OpenPolicy
    sink: Callable[[dict[str, Any]], object] | None = None
    count_refused: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.policy, PolicySpec | OpenPolicy):
            raise InputError("policy", expected="a PolicySpec or an OpenPolicy", got=self.policy)

    @property
    def name(self) -> str:
        """Name of the policy that is tried out."""
        return self.spec.name

    @property
    def spec(self) -> PolicySpec:
        """The policy as data."""
        return self.policy if isinstance(self.policy, PolicySpec) else self.policy.spec

    def start(
        self, run: str = "", groups: Mapping[str, str] | None = None, now: Time = _START, *, wall_ns: int | None = None
    ) -> Shadow:
        """Make the shadow of one run."""
        if isinstance(self.policy, PolicySpec):
            policy: Any = self.policy.start(run, groups, now)
        else:
            policy = self.policy.start(run, groups, now, wall_ns=wall_ns)
        return Shadow(policy, count_refused=self.count_refused, run=run, sink=self.sink)


class ShadowModule:
    """A shadow as a module: it is told of what the modules beside it let start, and nothing falls short of it.

    Attributes
    ----------
    shadow : Shadow
        What it asks, and its answers.
    """

    asks_spawn = True
    asks_step = True
    holds_steps = True
    __slots__ = ("does_io", "index", "shadow")

    def __init__(self, shadow: Shadow) -> None:
        self.shadow = shadow
        self.does_io = shadow.blocking
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return nothing."""
        return ()

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Ask about what starts."""
        self.shadow.watch(ticket, now)

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Take note that it ended; an account that is only tried out and cannot be written stops nobody."""
        with suppress(AccountUnavailable):
            self.shadow.watched(ticket, use, now)

"""What an agent runtime asks besides each run's ledger: a policy in force, and one that is tried out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness_lab.agents.context_ledger import ChildCeilings
from harness_lab.agents.session import ANYONE
from harness_lab.errors import InputError
from harness_lab.policies import OpenPolicy, PolicySpec, Shadowed, unlimited
from harness_lab.policies.hard_cap import CallHolds
from harness_lab.policies.shadowed import ShadowModule

if TYPE_CHECKING:
    from harness_lab.agents.context_ledger import ContextLedger
    from harness_lab.agents.session import Session
    from harness_lab.clock import Time
    from harness_lab.policies.compose import Composed
    from harness_lab.policies.protocol import Module


class RuntimeLimits:
    """The policies of an agent runtime, opened once and started for each run.

    Parameters
    ----------
    policy : PolicySpec, OpenPolicy, Shadowed or None
        What is in force behind each run's ledger.
    shadow : Shadowed or None
        What is tried out.

    Raises
    ------
    InputError
        If one of them is something else, or two are to be tried out.
    AccountUnavailable
        If a durable account cannot be opened.
    """

    def __init__(self, policy: PolicySpec | OpenPolicy | Shadowed | None, shadow: Shadowed | None) -> None:
        if isinstance(policy, Shadowed):
            if shadow is not None:
                raise InputError("shadow", expected="None beside a policy that is itself shadowed", got=shadow.name)
            policy, shadow = None, policy
        if shadow is not None and not isinstance(shadow, Shadowed):
            raise InputError("shadow", expected="Shadowed(policy)", got=shadow)
        self._mine: list[OpenPolicy] = []
        self._open = self._opened(unlimited() if policy is None else policy)
        if shadow is not None and shadow.spec.scope != "run":
            shadow = Shadowed(self._opened(shadow.policy), shadow.sink, shadow.count_refused)
        self._shadow = shadow

    @property
    def shared_ledger(self) -> Any:
        """The shared ledger of the policy in force as data, the budget of runs without a context; None without one."""
        return self._open.spec.module("shared_ledger")

    @property
    def runtime_floors(self) -> Any:
        """The runtime floors of the policy in force as data; None without any."""
        return self._open.spec.module("runtime_floors")

    @property
    def charges_hold(self) -> bool:
        """Whether the run's ledger charges a call without reported cost its worst case."""
        return self.shared_ledger is not None and self.shared_ledger.unknown_usage == "charge-hold"

    def policy_of(self, ledger: ContextLedger, levels: Module, groups: Mapping[str, str], now: Time) -> Composed:
        """Return the policy of one tree: the ledger, levels, what a child could use, what was configured besides.

        Raises
        ------
        InputError
            If the run does not say to which group of a period budget it belongs.
        """
        run, wall_ns = ledger.ledger.root_run_id, time.time_ns()
        more = self._open.modules(run, groups, now, wall_ns=wall_ns, but="shared_ledger")
        for module in more:
            if isinstance(module, CallHolds):
                spent = ledger.ledger
                module.carry_on(spent.cost_nusd, spent.unmetered_runs, root_counts_it=ledger.whole)
        watching: list[Module] = []
        if self._shadow is not None:
            watching = [ShadowModule(self._shadow.start(run, groups, now, wall_ns=wall_ns))]
        return self._open.composed([ledger, levels, ChildCeilings(ledger), *watching, *more])

    def close(self) -> None:
        """Close what was opened here."""
        for policy in self._mine:
            policy.close()

    def _opened(self, policy: PolicySpec | OpenPolicy) -> OpenPolicy:
        if isinstance(policy, OpenPolicy):
            return policy
        if not isinstance(policy, PolicySpec):
            hint = "A policy that was started serves one run; give what it was started from"
            raise InputError("policy", expected="a PolicySpec, an OpenPolicy or Shadowed", got=policy, hint=hint)
        self._mine.append(policy.open())
        return self._mine[-1]


def groups_of(session: Session, named: Mapping[str, str] | None) -> dict[str, str]:
    """Return who runs a session's runs: the session, its participant by kind (``user``: ``7``), and what is named.

    Raises
    ------
    InputError
        If what is named is no mapping of texts to texts.
    """
    given = {} if named is None else named
    if not isinstance(given, Mapping) or not all(isinstance(x, str) for pair in given.items() for x in pair):
        raise InputError("groups", expected='names of groups by kind, such as {"team": "search"}', got=named)
    participant = session.participant
    known = {} if participant == ANYONE else {participant.type: str(participant.id)}
    return {"session": session.key} | known | dict(given)

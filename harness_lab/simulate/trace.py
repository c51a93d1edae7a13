"""Everything a policy was asked and told in one run, written down with its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from harness_lab.clock import NS_PER_S
from harness_lab.outcome import CHANNELS, Refusal
from harness_lab.policies.protocol import Grant, Granted, Refused, StepAsk, Stop, Wait
from harness_lab.simulate.rows import node_name
from harness_lab.usage import NUSD_PER_USD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Ask, End, News, Policy, SpawnAsk, Ticket, Use
    from harness_lab.usage import Amounts

_UNITS: Final = tuple("cost_nusd" if channel == "cost" else channel for channel in CHANNELS)
ASKED: Final = tuple(f"asked_{name}" for name in _UNITS)
GRANTED: Final = tuple(f"granted_{name}" for name in _UNITS)
SPENT: Final = tuple(f"spent_{name}" for name in _UNITS)
TEXTS: Final = ("event", "node", "kind", "answer", "reason", "model", "state")
EVENT_COLUMNS: Final = (
    "time_ns", "event", "node", "call", "attempt", "kind", "answer", "reason", "deadline_ns", "model",
    *ASKED, *GRANTED, *SPENT, "state",
)  # fmt: skip
"""Columns of a run's events; :class:`harness_lab.simulate.explain.Timeline` says what they mean."""

_NONE: Final[Amounts] = (None,) * len(CHANNELS)


class Traced:
    """Writes down what a policy is asked, answers and is told; changes nothing.

    Parameters
    ----------
    policy : Policy
        Who answers.

    Attributes
    ----------
    events : list of tuple
        In the order in which they happened, columns as in :data:`EVENT_COLUMNS`.
    trees : list of int
        To which tree each event belongs, by the order in which roots asked to start: runs may share a policy.
    """

    __slots__ = ("_now", "_roots", "_trees", "blocking", "channels", "events", "policy", "trees")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.channels = policy.channels
        self.blocking = policy.blocking
        self.events: list[tuple[Any, ...]] = []
        self.trees: list[int] = []
        self._trees: dict[Ticket, int] = {}
        self._roots = -1
        self._now = 0

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a child may start."""
        answer = self.policy.spawn(ask, now)
        if ask.parent is None:
            self._roots += 1
            if not isinstance(answer, Refusal):
                self._trees[answer.ticket] = self._roots
        self._answered("spawn", ask, answer, now)
        return answer

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a step may start."""
        answer = self.policy.admit(ask, now)
        self._answered("admit", ask, answer, now)
        return answer

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a step ended."""
        self.policy.settle(step, use, now)
        self._note(now, "settle", step.ask, use.status, "", spent=use.spent, node=step.parent)

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node's work has really ended."""
        self.policy.close(node, use, end, now)
        reason = "" if end.stopped_by is None else f"{end.stopped_by} ({end.cause})"
        self._note(now, "close", node.ask, str(end.outcome), reason, spent=use.spent, node=node)

    def cancel(self, node: Ticket, reason: str, now: Time) -> None:
        """Take note that a subtree was stopped."""
        self.policy.cancel(node, reason, now)
        self._note(now, "cancel", node.ask, "", reason, node=node)

    def tick(self, now: Time) -> Time | None:
        """Take note that time went by."""
        self._now = now
        return self.policy.tick(now)

    def outbox(self) -> Iterator[News]:
        """Yield answers to those who waited."""
        for news in self.policy.outbox():
            if isinstance(news, Granted):
                self._answered("answer", news.ticket.ask, news.grant, self._now)
            elif isinstance(news, Refused):
                self._answered("answer", news.ticket.ask, news.refusal, self._now)
            elif isinstance(news, Stop):
                self._note(self._now, "stop", news.node.ask, "", news.reason, node=news.node)
            yield news

    def _answered(self, event: str, ask: Ask, answer: Grant | Wait | Refusal, now: int) -> None:
        if isinstance(answer, Grant):
            node = answer.ticket.parent if isinstance(ask, StepAsk) else answer.ticket
            granted = _NONE if answer.ceiling is None else answer.ceiling
            self._note(
                now, event, ask, "granted", "; ".join(answer.warnings), node=node, granted=granted,
                deadline=answer.deadline, model=answer.model,
            )  # fmt: skip
            return
        above = ask.node if isinstance(ask, StepAsk) else ask.parent
        reason, word = ("", "waits") if isinstance(answer, Wait) else (str(answer), "refused")
        self._note(now, event, ask, word, reason, node=above, deadline=getattr(answer, "until", None))

    def _note(
        self, now: int, event: str, ask: Ask, answer: str, reason: str, *, node: Ticket | None = None,
        spent: Amounts = _NONE, granted: Amounts = _NONE, deadline: int | None = None, model: str | None = None,
    ) -> None:  # fmt: skip
        self._now = now
        self.trees.append(self._tree(ask, node))
        if isinstance(ask, StepAsk):
            step: tuple[Any, ...] = (node_name(ask.node.path), ask.call, ask.attempt, ask.kind)
            asked = ask.bound
        else:
            step, asked = (node_name(ask.path), None, None, "node"), ask.budget
        asked = _NONE if event in ("settle", "close", "cancel", "stop") else tuple(asked)
        head = (now, event, *step, answer, reason, deadline, model)
        self.events.append((*head, *asked, *granted, *spent, self._state(node, now)))

    def _tree(self, ask: Ask, node: Ticket | None) -> int:
        top = ask.node if isinstance(ask, StepAsk) else ask.parent if ask.parent is not None else node
        while top is not None and top.parent is not None:
            top = top.parent
        return self._roots if top is None else self._trees.get(top, self._roots)

    def _state(self, node: Ticket | None, now: Any) -> str:
        """Return how full each limit over a node is, in words."""
        modules = getattr(self.policy, "modules", ())
        if node is None or self.blocking:
            return ""
        found = [(_words(module), module.gauges(node, now)) for module in modules if hasattr(module, "gauges")]
        return "; ".join(f"{name}: {_filled(gauges)}" for name, gauges in found if gauges)


class Tracing:
    """A policy specification whose policies are traced; runs are started from it as from the specification.

    Parameters
    ----------
    spec : PolicySpec or OpenPolicy
        What starts the policies of runs.
    name : str
        The policy's name.

    Attributes
    ----------
    started : list of (str, Traced)
        The policies started so far, and what for.
    """

    def __init__(self, spec: Any, *, name: str) -> None:
        self.spec = spec
        self.name = name
        self.scope = spec.scope
        self.started: list[tuple[str, Traced]] = []

    def start(self, run: str = "", *arguments: Any, **options: Any) -> Traced:
        """Start a traced policy."""
        traced = Traced(self.spec.start(run, *arguments, **options))
        self.started.append((run, traced))
        return traced

    def open(self) -> Tracing:
        """Open the state that runs share; what is started from it is traced and listed here."""
        opened = Tracing(self.spec.open(), name=self.name)
        opened.started = self.started
        return opened

    def close(self) -> None:
        """Close what was opened."""
        self.spec.close()


def events_frame(events: list[tuple[Any, ...]]) -> pd.DataFrame:
    """Return events as columns (:data:`EVENT_COLUMNS`)."""
    columns = zip(*events, strict=True) if events else [()] * len(EVENT_COLUMNS)
    made = {
        name: pd.array(list(values), dtype="string" if name in TEXTS else "Int64")
        for name, values in zip(EVENT_COLUMNS, columns, strict=True)
    }
    return pd.DataFrame(made)


def _words(module: object) -> str:
    """Return a module's name in words: ``SharedLedger`` is a shared ledger."""
    name = type(module).__name__
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


def _filled(gauges: list[tuple[str, int, int]]) -> str:
    return ", ".join(f"{name} {_figure(name, used)} of {_figure(name, limit)}" for name, used, limit in gauges)


def _figure(channel: str, amount: int) -> str:
    if channel == "cost":
        return f"${amount / NUSD_PER_USD:.4f}"
    return f"{amount / NS_PER_S:g} s" if channel == "time" else f"{amount:,}"

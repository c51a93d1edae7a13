"""One conversation: four questions, two pieces of news, one outbox.

A run is a tree of nodes. All that a node ever asks of enforcement is ``spawn`` (may this child start?), ``admit`` (may
this step start?), ``settle`` (the step ended; this is what it used) and ``close`` (the node ended; this is how). The
news are ``cancel`` (a subtree was stopped) and ``tick`` (time went by). Answers to those who wait come through the
``outbox``, which the runtime drains after each of the above. Production and simulation ask the same objects.

Nothing can be asked *during* a call: a soft cap cannot stop a stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from harness_lab.outcome import CHANNELS, amount_text
from harness_lab.policies.asks import (
    COMPLETED,
    STATUSES,
    STEP_KINDS,
    Ask,
    End,
    Path,
    SpawnAsk,
    Status,
    StepAsk,
    StepKind,
    Turn,
    Use,
    path_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness_lab.clock import Time
    from harness_lab.outcome import Refusal, Shortfall
    from harness_lab.usage import Amounts

__all__ = [
    "COMPLETED",
    "OPEN",
    "SETTLED",
    "STATUSES",
    "STEP_KINDS",
    "WAITING",
    "Ask",
    "End",
    "Grant",
    "Granted",
    "Module",
    "ModuleSpec",
    "News",
    "Path",
    "Policy",
    "Refused",
    "SpawnAsk",
    "Status",
    "StepAsk",
    "StepKind",
    "Stop",
    "Ticket",
    "Turn",
    "Use",
    "Wait",
    "path_text",
]

WAITING, OPEN, SETTLED = range(3)


class Ticket:
    """A single-use handle to a node that runs or a step in flight.

    Attributes
    ----------
    ask : SpawnAsk or StepAsk
        What it was given for.
    parent : Ticket or None
        The parent node of a node, the node of a step.
    depth : int
        0 for the root; a step has its node's.
    state : int
        Waiting, open or settled.
    asked : Time
        When the question was put.
    deadline : Time or None
        When the work must have ended; modules may only tighten it in ``hold``.
    detach : bool
        At the deadline whoever waits is told, and the work goes on until it ends by itself.
    ceiling : Amounts or None
        What was granted by channel; a module that grants less than asked sets it in ``hold``.
    until : Time or None
        While it waits: how long.
    blocker : Module or None
        While it waits: whose limit it waits for; None: its turn in line, or what others share.
    policy : Policy or None
        Who gave it, and alone may be asked with it.
    memory : list
        One cell per module of the composition; what the module keeps about a node.
    first : Use or None
        The use with which it was settled.
    """

    __slots__ = (
        "ask",
        "asked",
        "blocker",
        "ceiling",
        "deadline",
        "depth",
        "detach",
        "first",
        "memory",
        "parent",
        "policy",
        "state",
        "until",
    )

    def __init__(
        self,
        ask: Ask,
        parent: Ticket | None,
        depth: int,
        memory: list[Any],
        asked: Time,
        policy: Policy | None = None,
    ) -> None:
        self.ask = ask
        self.policy = policy
        self.asked = asked
        self.parent = parent
        self.depth = depth
        self.state = OPEN
        self.deadline: Time | None = None if parent is None else parent.deadline
        self.detach = False
        self.ceiling: Amounts | None = None
        self.until: Time | None = None
        self.blocker: Module | None = None
        self.memory = memory
        self.first: Use | None = None

    def __str__(self) -> str:
        what = "node" if type(self.ask) is SpawnAsk else f"call {getattr(self.ask, 'call', '')} of node"
        path = self.ask.path if type(self.ask) is SpawnAsk else getattr(self.parent, "path", ())
        return f"{what} {path_text(path)}"

    def __repr__(self) -> str:
        return f"<{self}, {('waiting', 'open', 'settled')[self.state]}>"

    @property
    def path(self) -> Path:
        """The node's name in its tree."""
        if isinstance(self.ask, SpawnAsk):
            return self.ask.path
        return self.ask.node.path


class Grant:
    """An answer "yes", maybe to less than asked.

    Attributes
    ----------
    ticket : Ticket
        To be settled (a step) or closed (a node) exactly once.
    ceiling : Amounts
        What is in force; None without a ceiling of its own.
    deadline : Time or None
        The runtime stops the work there.
    model : str or None
        Another model than the one asked for.
    warnings : sequence of str
        For whoever reads them.
    """

    __slots__ = ("ceiling", "deadline", "model", "ticket", "warnings")

    def __init__(
        self, ticket: Ticket, ceiling: Amounts | None = None, model: str | None = None, warnings: Sequence[str] = ()
    ) -> None:
        self.ticket = ticket
        self.ceiling = ceiling if ceiling is not None else ticket.ceiling
        self.deadline = ticket.deadline
        self.model = model
        self.warnings = warnings

    def __repr__(self) -> str:
        named = zip(CHANNELS, self.ceiling or (), strict=False)
        said = [f"{name} {amount_text(name, amount)}" for name, amount in named if amount is not None]
        said += [] if self.deadline is None else [f"deadline {amount_text('time', self.deadline)}"]
        said += [] if self.model is None else [f"model {self.model}"]
        said += [f"{len(self.warnings)} warning(s)"] if self.warnings else []
        return f"Grant({', '.join([str(self.ticket), *said])})"


class Wait:
    """An answer "not yet". It holds nothing; the final answer comes through the outbox.

    Parameters
    ----------
    ticket : Ticket
        The ask's; settling it withdraws the ask.
    until : Time or None
        When it is refused at the latest, nanoseconds on the run's clock; None: never.
    """

    __slots__ = ("ticket", "until")

    def __init__(self, ticket: Ticket, until: Time | None) -> None:
        self.ticket = ticket
        self.until = until

    def __repr__(self) -> str:
        return f"Wait({self.ticket}, until {'ever' if self.until is None else amount_text('time', self.until)})"


@dataclass(frozen=True, slots=True)
class Granted:
    """Outbox: a waiting ask is granted.

    Parameters
    ----------
    ticket : Ticket
        The ask's.
    grant : Grant
        The answer.
    """

    ticket: Ticket
    grant: Grant


@dataclass(frozen=True, slots=True)
class Refused:
    """Outbox: a waiting ask is refused.

    Parameters
    ----------
    ticket : Ticket
        The ask's.
    refusal : Refusal
        The answer.
    """

    ticket: Ticket
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Stop:
    """Outbox: a policy that must act between questions stops a subtree.

    Parameters
    ----------
    node : Ticket
        The node at the top of the subtree.
    reason : str
        Why, in words.
    """

    node: Ticket
    reason: str


News = Granted | Refused | Stop


class Policy(Protocol):
    """Whatever answers the questions."""

    channels: tuple[str, ...]
    blocking: bool

    def spawn(self, ask: SpawnAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a child may start."""

    def admit(self, ask: StepAsk, now: Time) -> Grant | Wait | Refusal:
        """Answer whether a step may start."""

    def settle(self, step: Ticket, use: Use, now: Time) -> None:
        """Take note that a step ended.

        A second time raises :class:`~harness_lab.errors.AlreadySettled`, a ticket that this policy never gave
        :class:`~harness_lab.errors.UnknownTicket`.
        """

    def close(self, node: Ticket, use: Use, end: End, now: Time) -> None:
        """Take note that a node's work has really ended."""

    def cancel(self, node: Ticket, reason: str, now: Time) -> None:
        """Take note that a subtree was stopped."""

    def tick(self, now: Time) -> Time | None:
        """Take note that time went by; return when to be told again."""

    def outbox(self) -> Iterator[News]:
        """Yield answers to those who waited; drained after each of the above."""


class Module(Protocol):
    """What a composition is made of: check, then hold.

    Attributes
    ----------
    asks_spawn, asks_step : bool
        Whether it has a say in spawns and in steps; it is not bothered with the others.
    takes_at_admission : bool, optional
        Whether a step in flight is in its gauges with what it may use at most; those of others follow what has ended.
    holds_steps : bool, optional
        False: a step holds nothing of it, so that its ``hold`` is called for children only. True if it does not say.
    warns : bool, optional
        Whether it has a method ``warnings(ask, now)`` whose lines a child's grant carries: what it admits and would not
        pass over in silence. Only a child's, not a step's: admission is the hot path.
    index : int
        Its cell in :attr:`Ticket.memory`; the composition sets it.
    """

    asks_spawn: bool
    asks_step: bool
    index: int

    def short(self, ask: Ask, now: Time) -> Sequence[Shortfall]:
        """Return what falls short; pure, changes nothing."""

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Set the ask aside; cannot fail after an empty ``short``."""

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Commit the use of a step, or end a node."""


class ModuleSpec(Protocol):
    """A module's parameters: frozen, serialisable; state lives only in what it builds."""

    @property
    def kind(self) -> str:
        """Name of the module, as it is stored."""

    def build(self, now: Time) -> Module:
        """Make a module with fresh state."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return plain values."""

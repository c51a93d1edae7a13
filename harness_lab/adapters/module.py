"""An adapter as a module of a policy: it is simulated, compared, composed and shadowed like ours."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from harness_lab.adapters.protocol import Adapter, Call, Child, No, Used
from harness_lab.adapters.registry import address, checked, limits_of, named, needed_limits
from harness_lab.errors import InputError
from harness_lab.outcome import Shortfall
from harness_lab.policies import PolicySpec
from harness_lab.policies.protocol import StepAsk
from harness_lab.policies.spec import ADDED

if TYPE_CHECKING:
    from harness_lab.clock import Time
    from harness_lab.policies.protocol import Ask, Ticket, Use


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSpec:
    """A foreign limiter's parameters: which, and its limits.

    Parameters
    ----------
    adapter : type of Adapter
        Makes the limiter of a run; or its name (:func:`~harness_lab.adapters.registry.named`), as files have it.
    limits : tuple of (str, value)
        Its limits by name (:data:`~harness_lab.adapters.protocol.LIMITS`); or a mapping.

    Raises
    ------
    InputError
        If its package is not there, or it does not take such limits.
    """

    adapter: type[Adapter]
    limits: tuple[tuple[str, Any], ...] = ()
    kind: str = "adapter"

    many: ClassVar[bool] = True
    """A composition may hold several."""
    foreign: ClassVar[bool] = True
    """What it answers once other calls were refused is its own affair: nothing is read off, all is simulated."""

    def __post_init__(self) -> None:
        if not isinstance(self.adapter, type):
            object.__setattr__(self, "adapter", named(self.adapter))
        if isinstance(self.limits, Mapping):
            object.__setattr__(self, "limits", tuple(self.limits.items()))
        checked(self.adapter, dict(self.limits))

    def takes(self, limit: str) -> bool:
        """Whether it has a limit of that name."""
        return limit in limits_of(self.adapter)

    def with_limit(self, limit: str, value: Any) -> AdapterSpec:
        """Return a copy with one limit at a value; None: without it."""
        rest = tuple(pair for pair in self.limits if pair[0] != limit)
        needed = limit in needed_limits(self.adapter)
        return replace(self, limits=rest if value is None and not needed else (*rest, (limit, value)))

    def build(self, now: Time) -> AdapterModule:
        """Make a limiter with nothing used."""
        return AdapterModule(self.adapter(**dict(self.limits)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"kind": self.kind, "adapter": address(self.adapter), "limits": dict(self.limits)}


class AdapterModule:
    """A node's memory is the adapter that stands for it.

    A foreign limiter may count when it is asked, so it is asked last, once every other module let the step through;
    where another one says no after it, it is told that the call was not sent.
    """

    asks_spawn = True
    asks_step = True
    observes = True
    __slots__ = ("_calls", "index", "root")

    def __init__(self, root: Adapter) -> None:
        self.root = root
        self._calls: dict[Ticket, Call] = {}
        self.index = 0

    def short(self, ask: Ask, now: Time) -> tuple[Shortfall, ...]:
        """Return nothing: asking a foreign limiter may change it."""
        return ()

    def reserve(self, ticket: Ticket, now: Time) -> tuple[Shortfall, ...]:
        """Ask the limiter of a step or a child that fits every other limit."""
        ask = ticket.ask
        if isinstance(ask, StepAsk):
            if ask.kind == "wrap-up":  # lies outside every limit; it is told what it used
                return ()
            adapter: Adapter = ticket.memory[self.index]
            call = Call(ask, now)
            said = adapter.before_tools(call) if ask.kind == "tool" else adapter.before_call(call)
            if said is None:
                self._calls[ticket] = call
                return ()
            return _refused(said, adapter, "before_tools" if ask.kind == "tool" else "before_call")
        if ticket.parent is None:
            ticket.memory[self.index] = self.root
            return ()
        parent: Adapter = ticket.parent.memory[self.index]
        child = parent.child(Child(ask, now))
        if isinstance(child, Adapter):
            ticket.memory[self.index] = child
            return ()
        return _refused(child, parent, "child")

    def unreserve(self, ticket: Ticket) -> None:
        """Take note that what the limiter let through was refused by another."""
        call = self._calls.pop(ticket, None)
        if call is not None:
            ticket.memory[self.index].not_sent(call)

    def hold(self, ticket: Ticket, now: Time) -> None:
        """Do nothing: the limiter was asked already."""

    def settle(self, ticket: Ticket, use: Use, now: Time) -> None:
        """Tell the limiter what a step used, or that a node ended."""
        ask, adapter = ticket.ask, ticket.memory[self.index]
        if not isinstance(ask, StepAsk):
            above = ticket.parent
            if above is None or above.memory[self.index] is not adapter:
                adapter.end()
            return
        call = self._calls.pop(ticket, None) or Call(ask, now)  # a step that no limit was asked about
        if use.status == "unsent":
            adapter.not_sent(call)
        elif ask.kind == "tool":
            adapter.after_tools(call, Used(use, now))
        else:
            adapter.after_call(call, Used(use, now))


def _refused(said: object, adapter: Adapter, method: str) -> tuple[Shortfall, ...]:
    no = No(said) if isinstance(said, str) and said else said
    if not isinstance(no, No):
        if isinstance(said, Coroutine):
            said.close()  # asked and never awaited: that it is one is said here
        expected = "an Adapter" if method == "child" else "None to let through"
        raise InputError(
            f"{type(adapter).__name__}.{method}", expected=f"{expected}, or a reason (text or No)", got=said
        )
    return (Shortfall(no.code, None, None, None, "nothing", no.channel, no.reason),)


def policy(adapter: str | type[Adapter], *, name: str = "", **limits: Any) -> PolicySpec:
    """Return a foreign limiter as a policy, like any of ours.

    Parameters
    ----------
    adapter : str or type of Adapter
        A name of :func:`names`, ``module:Class`` or ``file.py:Class``, or the class itself.
    name : str, optional
        Name in tables; that of the adapter if none.
    **limits
        Limits by name: ``calls``, ``tool_calls``, ``input``, ``tokens``, ``fresh``, ``cost_usd``, ``seconds``,
        ``max_depth``, ``max_concurrent``, ``max_children``.

    Raises
    ------
    InputError
        If there is no such adapter, its package is not there, or it does not take such a limit.

    Examples
    --------
    >>> policy("check-then-add", calls=3).name
    'check-then-add'
    """
    found = adapter if isinstance(adapter, type) else named(adapter)
    spec = AdapterSpec(adapter=found, limits=tuple(limits.items()))
    return PolicySpec(name=name or found.name or found.__name__, modules=(spec,))


ADDED["adapter"] = AdapterSpec  # experiment files may have [policies.adapter] from now on

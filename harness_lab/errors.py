"""Every error of the package, as one tree.

::

    HarnessLabError
    ├── InputError (ValueError)        what came is not what was expected
    │   ├── ReadError                  a file cannot be read as what it was said to be
    │   └── UnitMismatch               a floor in one unit was held against a budget in another
    ├── AlreadySettled (RuntimeError)  a ticket was closed a second time; the first close stands
    ├── UnknownTicket (LookupError)    a ticket that this policy never handed out
    ├── AccountUnavailable (RuntimeError)  a durable account cannot be read or written: nothing is admitted
    ├── BudgetExhausted                a budget has nothing left (raised only by the APIs that raise)
    ├── budget.BudgetFault             a spend that a pool's rules do not let pass in silence; the books are done
    ├── budget.ReservationsOpen        a run has a result, and somebody in it still holds a part of its pool
    ├── budget.WorkFailed, ExecutionRetained, NotDelivered   how a scope's child ended, or that it has no result
    ├── SimulationError (RuntimeError)
    │   ├── Deadlock                   nothing can happen any more and somebody still waits
    │   ├── Livelock                   much happens and time does not move
    │   └── TreeTooLarge               a tree grows on, and no limit of its policy stops it
    ├── agents.errors.AgentError ...   an agent cannot be started or went wrong; its own tree is in that module
    ├── agents.StartRefused            a limit said no to a start; code that starts agents may catch it
    ├── agents.Cancelled               an agent was told to end before it was done
    ├── agents.HarnessStopped          a harness inside a harness was stopped by one of its limits
    └── delegation.errors ...          plans, journals, audit logs and dispatches; one tree in that module

A limit that says no during a run is a value (:class:`harness_lab.outcome.Refusal`), never an exception.
Errors carry their numbers as attributes and survive pickling.
"""

from __future__ import annotations


class HarnessLabError(Exception):
    """Base of every error that the package raises on purpose."""


class InputError(HarnessLabError, ValueError):
    """What came is not what was expected.

    Parameters
    ----------
    what : str
        Name of the argument, field, column or file.
    expected : str
        What would have been accepted.
    got : object
        What came; its ``repr`` is shown, shortened.
    hint : str, optional
        A next step.
    """

    def __init__(self, what: str, *, expected: str, got: object, hint: str = "") -> None:
        self.what, self.expected, self.got, self.hint = what, expected, got, hint
        shown = _shown(got)
        super().__init__(f"{_one_line(what)}: expected {expected}, got {shown}{'. ' + hint if hint else ''}")

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.expected, self.got, self.hint))


def check_kind(what: str, value: object, kind: type | tuple[type, ...], *, expected: str) -> None:
    """Refuse what is not of a kind: a refusal that was taken for an allocation, a float for a budget.

    Raises
    ------
    InputError
        If `value` is no instance of `kind`.
    """
    if not isinstance(value, kind):
        raise InputError(what, expected=expected, got=value)


def check_text(what: str, value: object, *, empty: bool = True) -> None:
    """Refuse what is no text, or none that UTF-8 can hold (half a surrogate pair): it could not be written down.

    Raises
    ------
    InputError
        If it is not, or is empty where it may not be.
    """
    if not isinstance(value, str) or not (value or empty):
        raise InputError(what, expected="text" if empty else "some text", got=value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(what, expected="text that UTF-8 can hold", got=value) from None


def _shown(got: object) -> str:
    try:
        shown = repr(got)
    except ValueError:  # an int of more digits than Python writes
        shown = f"a value of {type(got).__name__} too long to write"
    return shown if len(shown) <= 120 else f"{shown[:117]}..."


def _one_line(what: str) -> str:
    """Escape what would break the line: names of fields come from outside."""
    return what if what.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in what)


def _rebuild(kind: type[InputError], what: str, expected: str, got: object, hint: str) -> InputError:
    return kind(what, expected=expected, got=got, hint=hint)


class ReadError(InputError):
    """A file cannot be read as what it was said to be."""


class UnitMismatch(InputError):
    """A floor in one unit was held against a budget in another."""


class AlreadySettled(HarnessLabError, RuntimeError):
    """A ticket was closed a second time; the first close stands and nothing moved.

    Attributes
    ----------
    ticket : object
        The ticket.
    first : object
        The use with which it was closed the first time.
    """

    def __init__(self, ticket: object, first: object = None) -> None:
        self.ticket, self.first = ticket, first
        super().__init__(ticket, first)

    def __str__(self) -> str:
        return f"{self.ticket} was already settled with {self.first}; nothing was charged again"


class UnknownTicket(HarnessLabError, LookupError):
    """A ticket that this policy never handed out."""


class AccountUnavailable(HarnessLabError, RuntimeError):
    """A durable account cannot be read or written; nothing was admitted and nothing moved.

    Attributes
    ----------
    path : str
        The account's file.
    reason : str
        What is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"account {self.path} is unavailable: {self.reason}"


class BudgetExhausted(HarnessLabError):
    """A budget has nothing left."""


class SimulationError(HarnessLabError, RuntimeError):
    """A simulated world cannot go on."""


class Deadlock(SimulationError):
    """Nothing can happen any more and somebody still waits.

    Attributes
    ----------
    parked : tuple of str
        Names of the processes that wait.
    """

    def __init__(self, parked: tuple[str, ...]) -> None:
        self.parked = parked
        super().__init__(parked)

    def __str__(self) -> str:
        shown = ", ".join(self.parked[:8]) + (", ..." if len(self.parked) > 8 else "")
        return f"deadlock: no event is left and {len(self.parked)} process(es) still wait: {shown}"


class Livelock(SimulationError):
    """Much happens and time does not move.

    Attributes
    ----------
    events : int
        Events that were processed at one instant.
    at_ns : int
        That instant, nanoseconds.
    running : str
        Name of the process that ran last.
    """

    def __init__(self, events: int, at_ns: int, running: str) -> None:
        self.events, self.at_ns, self.running = events, at_ns, running
        super().__init__(events, at_ns, running)

    def __str__(self) -> str:
        at = self.at_ns / 1e9
        return f"livelock: {self.events} events at t = {at:g} s without time moving; last ran {self.running}"


class TreeTooLarge(SimulationError):
    """A tree grew beyond what a simulation carries: no limit of its policy stops it.

    Attributes
    ----------
    nodes, depth : int
        Nodes that were asked for, and the deepest level of the last of them.
    at_ns : int
        That instant, nanoseconds.
    where : str
        Policy and run, where they are known.
    """

    def __init__(self, nodes: int, depth: int, at_ns: int, where: str = "") -> None:
        self.nodes, self.depth, self.at_ns, self.where = nodes, depth, at_ns, where
        super().__init__(nodes, depth, at_ns, where)

    def __str__(self) -> str:
        where = f" ({self.where})" if self.where else ""
        return (
            f"tree too large{where}: {self.nodes:,} nodes, {self.depth:,} levels at t = {self.at_ns / 1e9:g} s and no "
            "end in sight. Bound it with tree_limits(max_depth=...) or (max_calls=...), or lower the chance of a spawn"
        )


class NotConserved(SimulationError):
    """A run has ended and its books do not close: something is still held, or the sums differ.

    Attributes
    ----------
    where : str
        Policy and run.
    what : str
        What does not close.
    """

    def __init__(self, where: str, what: str) -> None:
        self.where, self.what = where, what
        super().__init__(where, what)

    def __str__(self) -> str:
        return f"books do not close ({self.where}): {self.what}"

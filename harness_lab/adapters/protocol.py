"""What an adapter is: a few methods around somebody else's limiter.

A limiter that is an object (most are) is asked before each model call and told after it; :class:`Adapter` has a method
for each, and a subclass writes those that its limiter has an opinion on. A limiter that owns the loop of the agent
has no method to ask: :class:`~harness_lab.adapters.loops.LoopAdapter` lets it run until it wants the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from harness_lab.clock import NS_PER_S
from harness_lab.errors import HarnessLabError
from harness_lab.outcome import CALLS, COST, FRESH, INPUT, TOKENS, Code
from harness_lab.policies.protocol import StepAsk, path_text
from harness_lab.usage import usd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.clock import Time
    from harness_lab.policies.protocol import SpawnAsk, Use
    from harness_lab.usage import Amounts

LIMITS = (
    "calls",
    "tool_calls",
    "input",
    "tokens",
    "fresh",
    "cost_usd",
    "seconds",
    "max_depth",
    "max_concurrent",
    "max_children",
)
"""Names of the limits that an adapter may take, so that one case can be put to every limiter: model calls; tool calls;
prompt tokens, all tokens, newly presented tokens; dollars; seconds; levels of children, children at once, children."""


class NotApplicable(HarnessLabError):
    """A limiter cannot express what a case asks for; the text says why."""


@dataclass(frozen=True, slots=True)
class No:
    """A refusal that says which limit it was.

    Parameters
    ----------
    reason : str
        In words.
    limit : str
        One of :data:`LIMITS`, or empty.
    """

    reason: str
    limit: str = ""

    @property
    def code(self) -> Code:
        """The reason code under which it is counted."""
        return _CODES.get(self.limit, Code.CALL_REFUSED)

    @property
    def channel(self) -> str:
        """The channel of that limit; empty for limits that are none."""
        return {"calls": "calls", "input": "input", "tokens": "tokens", "fresh": "fresh", "cost_usd": "cost"}.get(
            self.limit, ""
        )


_CODES = {
    "calls": Code.STEPS_EXHAUSTED,
    "tool_calls": Code.TOOL_CALLS_EXHAUSTED,
    "input": Code.BUDGET_EXHAUSTED,
    "tokens": Code.BUDGET_EXHAUSTED,
    "fresh": Code.BUDGET_EXHAUSTED,
    "cost_usd": Code.COST_EXHAUSTED,
    "seconds": Code.TIME_EXHAUSTED,
    "max_depth": Code.MAX_DEPTH,
    "max_concurrent": Code.MAX_CONCURRENT,
    "max_children": Code.MAX_CALLS,
}

_NO_PRICE = (Code.COST_CAP_PRICE_MISSING, Code.COST_CAP_PRICE_INVALID, Code.COST_CAP_PRICE_UNTRUSTED)


class _Amounts:
    """Amounts by name; None: unknown, never zero."""

    __slots__ = ("_amounts",)

    def __init__(self, amounts: Amounts) -> None:
        self._amounts = amounts

    @property
    def input_tokens(self) -> int | None:
        """Prompt tokens, all of them."""
        return self._amounts[INPUT]

    @property
    def tokens(self) -> int | None:
        """Prompt and completion tokens."""
        return self._amounts[TOKENS]

    @property
    def output_tokens(self) -> int | None:
        """Completion tokens."""
        whole, prompt = self._amounts[TOKENS], self._amounts[INPUT]
        return None if whole is None or prompt is None else whole - prompt

    @property
    def fresh_tokens(self) -> int | None:
        """Tokens that no cache gave."""
        return self._amounts[FRESH]

    @property
    def cost_usd(self) -> float | None:
        """Dollars."""
        cost = self._amounts[COST]
        return None if cost is None else usd(cost)


@final
class Call:
    """A model call, or a batch of tool calls, that wants to start.

    Attributes
    ----------
    kind : {"model", "tool", "compaction", "wrap-up"}
        What kind of step.
    number, attempt : int
        The logical call of its node, and one more for each retry of it.
    count : int
        Calls of a batch, which starts whole or not at all.
    node : str
        Who asks: ``/`` is the root, ``/3.0`` its first child after call 3.
    at_s : float
        The run's clock, seconds since its beginning; virtual in a simulation.
    most : amounts by name
        Its worst case: ``most.input_tokens``, ``most.tokens``, ``most.cost_usd``; None: cannot be bounded.
    unpriced : bool
        Whether nobody named a price of its model, where that is why its cost cannot be bounded.
    """

    __slots__ = ("_ask", "at_s", "attempt", "count", "kind", "number")

    def __init__(self, ask: StepAsk, now: Time) -> None:
        self._ask = ask
        self.kind = ask.kind
        self.number, self.attempt, self.count = ask.call, ask.attempt, ask.count
        self.at_s = now / NS_PER_S

    @property
    def node(self) -> str:
        """Who asks."""
        return path_text(self._ask.node.path)

    @property
    def most(self) -> _Amounts:
        """Its worst case."""
        return _Amounts(self._ask.bound)

    @property
    def unpriced(self) -> bool:
        """Whether a price that nobody named is why its cost cannot be bounded."""
        return any(short.code in _NO_PRICE for short in getattr(self._ask.bound, "shortfalls", ()))


@final
class Used(_Amounts):
    """What a call really used; None is unknown, never zero.

    Attributes
    ----------
    status : {"completed", "failed", "abandoned"}
        How it ended. A failed call may have been billed.
    programmatic : bool
        A turn that only ran scripts; some limiters give its unit back.
    at_s : float
        When it ended, seconds on the run's clock.
    """

    __slots__ = ("at_s", "programmatic", "status")

    def __init__(self, use: Use, now: Time) -> None:
        super().__init__(use.spent)
        self.status = use.status
        self.programmatic = use.turn == "programmatic"
        self.at_s = now / NS_PER_S

    @property
    def calls(self) -> int | None:
        """Calls that it was billed as; mostly 1."""
        return self._amounts[CALLS]


@final
class Child:
    """A child that wants to start.

    Attributes
    ----------
    node : str
        Its name: ``/3.0`` is the root's first child after call 3.
    depth : int
        1 for a child of the root.
    at_s : float
        Seconds on the run's clock.
    asked : amounts by name
        What the parent declares for it: ``asked.tokens``, ``asked.cost_usd``; None: nothing declared.
    calls : int or None
        Calls that the parent declares for it.
    """

    __slots__ = ("asked", "at_s", "calls", "depth", "node")

    def __init__(self, ask: SpawnAsk, now: Time) -> None:
        self.node, self.depth = path_text(ask.path), len(ask.path)
        self.at_s = now / NS_PER_S
        self.asked = _Amounts(ask.budget)
        self.calls = ask.budget[CALLS]


class Adapter:
    """A limiter that is an object, behind a few methods; write those that yours has an opinion on.

    One is made for each run, with the limits as keywords (names of :data:`LIMITS`); what its ``__init__`` does not take
    cannot be expressed, and a case about it does not apply. It stands for one node and, by default, for all below it.

    Attributes
    ----------
    name : str
        How it is called in tables.
    package, requires : str
        Distribution whose version is looked up, empty if it needs none; what ``pip install`` is given to get it.
    elsewhere : str
        Environment variable that names another Python which has the package, where it needs another one than this;
        empty: it does not.
    knobs : mapping of str to str
        What the package calls each limit, in which unit and for whom; for people.
    areas : tuple of str
        Areas of behaviour cases whose very subject the package is: :meth:`answer` carries those out on it.

    Examples
    --------
    >>> class Ten(Adapter):
    ...     name = "ten"
    ...     def __init__(self, *, calls=10):
    ...         self.left = calls
    ...     def before_call(self, call):
    ...         return "no call is left" if self.left == 0 else None
    ...     def after_call(self, call, used):
    ...         self.left -= 1
    """

    name: ClassVar[str] = ""
    package: ClassVar[str] = ""
    requires: ClassVar[str] = ""
    elsewhere: ClassVar[str] = ""
    knobs: ClassVar[Mapping[str, str]] = {}
    areas: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def answer(cls, case: Mapping[str, Any]) -> Mapping[str, Any]:
        """Carry a case of one of `areas` out on the package's own objects, and answer in the words of its ``then``.

        Raises
        ------
        NotApplicable
            If the case asks for something else.
        """
        raise NotApplicable("the case is about another part of the package")

    @classmethod
    def shows(cls, lines: list[str]) -> list[str]:
        """Return the lines that show a deviation, from those that were written down (:mod:`.watched`)."""
        return lines

    def before_call(self, call: Call) -> str | No | None:
        """Say why a model call must not start; None: it may. What is taken here must be given back in `not_sent`."""
        return None

    def after_call(self, call: Call, used: Used) -> None:
        """Take note that a call ended."""

    def not_sent(self, call: Call) -> None:
        """Take note that a call which was let through never left; it used nothing."""

    def before_tools(self, call: Call) -> str | No | None:
        """Say why ``call.count`` tool calls must not start, as a whole; None: they may."""
        return None

    def after_tools(self, call: Call, used: Used) -> None:
        """Take note that tool calls ended."""

    def child(self, child: Child) -> Adapter | str | No:
        """Return who stands for a child and all below it: this very object, another one, or why it must not start."""
        return self

    def end(self) -> None:
        """Take note that the node for which this object was made has ended."""

"""What was spent, with what is known about it: counts are lower bounds where they are not known.

A provider that reports late, never, or without the split by cache leaves a spend that is partly unknown. The known part
is kept, and a flag beside it says that it is not all; zero never stands for unknown.

Source: the spend of tangle-network/agent-runtime, with its asymmetric rules for what is unknown: cost and resources
close a limit, tokens never do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, COST, FRESH, INPUT, TOKENS
from harness_lab.usage import MAX_NUSD, count, optional_count, optional_nusd

if TYPE_CHECKING:
    from harness_lab.usage import Amounts

CostSource = Literal["reported", "estimated", "partial", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """An amount of a named resource, in its unit.

    Parameters
    ----------
    unit : str
        What is counted (``seconds``, ``bytes``); the same everywhere in a tree.
    amount : int
        Whole units. Of a budget: the limit. Of a spend: what was used, a lower bound if not `known`.
    known : bool
        Whether the amount is all of it.

    Raises
    ------
    InputError
        If the unit is no name, or the amount no count.
    """

    unit: str
    amount: int
    known: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or not self.unit:
            raise InputError("unit", expected="a name", got=self.unit)
        object.__setattr__(self, "amount", count("amount", self.amount))
        _check_flag("known", self.known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What a child, or one turn of a driver, used.

    Parameters
    ----------
    calls : int
        Model calls (iterations).
    input, output : int
        Prompt tokens, all of them, and completion tokens.
    fresh_input, cache_read, cache_write : int or None
        The prompt by cache class; None: not reported.
    tokens_known : bool
        False: `input` and `output` are lower bounds.
    split_known : bool or None
        Whether the classes make up the whole prompt; None: found out. True demands that they do.
    cost_nusd : int
        Nano-dollars, a lower bound if not `cost_known`.
    cost_known : bool
        Whether the cost is what will be billed, all of it.
    estimated_nusd : int
        The part of `cost_nusd` that is an estimate by list prices; an estimate is no bill, so `cost_known` is false.
    resources : mapping of str to Quantity
        Use of named resources.

    Raises
    ------
    InputError
        If a count is none, the cache classes do not add up to the prompt, or an estimate passes for a bill.

    Notes
    -----
    What a spend is charged in newly presented tokens is the prompt and the completion less what a cache gave. What no
    class was named for is charged in full: that may charge too much and never too little.
    """

    calls: int = 0
    input: int = 0
    output: int = 0
    fresh_input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    tokens_known: bool = True
    split_known: bool | None = None
    cost_nusd: int = 0
    cost_known: bool = True
    estimated_nusd: int = 0
    resources: Mapping[str, Quantity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("calls", "input", "output"):
            object.__setattr__(self, name, count(name, getattr(self, name)))
        for name in ("fresh_input", "cache_read", "cache_write"):
            object.__setattr__(self, name, optional_count(name, getattr(self, name)))
        for name in ("cost_nusd", "estimated_nusd"):
            object.__setattr__(self, name, count(name, getattr(self, name), maximum=MAX_NUSD))
        checked_resources("resources", self.resources)
        _check_flag("tokens_known", self.tokens_known)
        _check_flag("cost_known", self.cost_known)
        object.__setattr__(self, "split_known", self._split())
        if self.estimated_nusd > self.cost_nusd or (self.estimated_nusd and self.cost_known):
            raise InputError("estimated_nusd", expected="a part of a cost that is not known", got=self.estimated_nusd)

    def _split(self) -> bool:
        classes = (self.fresh_input, self.cache_read, self.cache_write)
        total, all_given = sum(part or 0 for part in classes), None not in classes
        if self.split_known is not None:
            _check_flag("split_known", self.split_known)
        too_many = self.split_known is False and total > self.input
        claimed = self.split_known or (self.split_known is None and all_given)
        if too_many or (claimed and total != self.input):
            raise InputError("cache classes", expected=f"a sum of {self.input} prompt tokens", got=total)
        return bool(claimed) or (self.split_known is None and self.input == 0)

    @classmethod
    def reported(
        cls,
        *,
        calls: int = 0,
        input: int | None = 0,
        output: int | None = 0,
        cost_usd: float | None = 0.0,
        estimate_usd: float | None = None,
        resources: Mapping[str, Quantity] | None = None,
    ) -> Spend:
        """Build a spend from what a provider reported; None says that it did not.

        Parameters
        ----------
        calls : int
            Model calls.
        input, output : int or None
            Prompt and completion tokens.
        cost_usd : float or None
            Dollars billed.
        estimate_usd : float or None
            Dollars by list prices, in place of a bill.
        resources : mapping of str to Quantity, optional
            Use of named resources.

        Examples
        --------
        >>> turn = Spend.reported(calls=1, input=100, output=50, cost_usd=None)
        >>> turn.total, turn.cost_source
        (150, 'unknown')
        """
        cost = optional_nusd(estimate_usd if estimate_usd is not None else cost_usd)
        return cls(
            calls=calls,
            input=0 if input is None else input,
            output=0 if output is None else output,
            tokens_known=input is not None and output is not None,
            cost_nusd=cost or 0,
            cost_known=estimate_usd is None and cost is not None,
            estimated_nusd=(cost or 0) if estimate_usd is not None else 0,
            resources=checked_resources("resources", resources),
        )

    def by_channel(self, units: Mapping[str, str], *, partial: bool = False) -> tuple[Amounts, frozenset[int]]:
        """Return what is known, by channel, and the channels in which that is not all.

        Parameters
        ----------
        units : mapping of str to str
            Units of the named resources that are limited, behind the channels in this order.
        partial : bool
            Whether a resource that is left out is still to come; else its use is unknown.

        Raises
        ------
        InputError
            If a resource is not among the limited ones, or in another unit.
        """
        for name, quantity in self.resources.items():
            if units.get(name) != quantity.unit:
                raise InputError(f"unit of {name}", expected=str(units.get(name)), got=quantity.unit)
        known: list[int] = [self.calls, self.input, self.total, self.newly_presented, self.cost_nusd]
        unknown = set() if self.tokens_known else {INPUT, TOKENS, FRESH}
        if not self.cost_known:
            unknown.add(COST)
        for i, name in enumerate(units, start=len(CHANNELS)):
            used = self.resources.get(name)
            known.append(0 if used is None else used.amount)
            if (used is None and not partial) or (used is not None and not used.known):
                unknown.add(i)
        return tuple(known), frozenset(unknown)

    def complete(self, units: Mapping[str, str], *, known: bool = False) -> Spend:
        """Return this spend with every limited resource named; one that it leaves out is unknown, unless it is `known`.

        Parameters
        ----------
        units : mapping of str to str
            Units of the limited resources.
        known : bool
            Whether what is left out is known to be nothing.
        """
        missing = {name: Quantity(unit=unit, amount=0, known=known) for name, unit in units.items()}
        return replace(self, resources=missing | dict(self.resources)) if missing else self

    @property
    def total(self) -> int:
        """Prompt and completion tokens."""
        return self.input + self.output

    @property
    def newly_presented(self) -> int:
        """Tokens that are charged as new: all but what was read from a cache, where that can be credited."""
        classes = (self.fresh_input or 0) + (self.cache_read or 0) + (self.cache_write or 0)
        credited = 0 if classes > self.input else self.cache_read or 0
        return self.input - credited + self.output

    @property
    def cost_source(self) -> CostSource:
        """Where the cost comes from: billed, an estimate, partly so, or not known at all."""
        if self.cost_known:
            return "reported"
        if not self.cost_nusd:
            return "unknown"
        return "estimated" if self.estimated_nusd == self.cost_nusd else "partial"

    def __add__(self, other: Spend) -> Spend:
        """Return both together; what is unknown in one is unknown in the sum."""
        return Spend(
            calls=self.calls + other.calls,
            input=self.input + other.input,
            output=self.output + other.output,
            fresh_input=(self.fresh_input or 0) + (other.fresh_input or 0),
            cache_read=(self.cache_read or 0) + (other.cache_read or 0),
            cache_write=(self.cache_write or 0) + (other.cache_write or 0),
            tokens_known=self.tokens_known and other.tokens_known,
            split_known=bool((self.split_known or not self.input) and (other.split_known or not other.input)),
            cost_nusd=self.cost_nusd + other.cost_nusd,
            cost_known=self.cost_known and other.cost_known,
            estimated_nusd=self.estimated_nusd + other.estimated_nusd,
            resources=_together(self.resources, other.resources),
        )


def checked_resources(what: str, resources: object) -> Mapping[str, Quantity]:
    """Return named resources with their quantities; None is none.

    Raises
    ------
    InputError
        If they are no mapping of names to quantities.
    """
    if resources is None:
        return {}
    if not isinstance(resources, Mapping) or not all(
        isinstance(name, str) and isinstance(each, Quantity) for name, each in resources.items()
    ):
        raise InputError(what, expected="quantities by name", got=resources)
    return resources


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InputError(name, expected="true or false", got=value)


def _together(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> dict[str, Quantity]:
    merged = dict(left)
    for name, more in right.items():
        before = merged.get(name)
        if before is not None and before.unit != more.unit:
            raise InputError(f"unit of {name}", expected=before.unit, got=more.unit)
        known = more.known and (before is None or before.known)
        merged[name] = Quantity(unit=more.unit, amount=more.amount + (before.amount if before else 0), known=known)
    return merged


NOTHING = Spend()
UNREPORTED = Spend(tokens_known=False, cost_known=False)
"""A call that told nothing about its use."""

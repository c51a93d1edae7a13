"""Where pools differ on purpose: three choices, and the presets of the systems that chose otherwise than we do."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Literal, get_args

from harness_lab.errors import HarnessLabError, InputError

if TYPE_CHECKING:
    from harness_lab.budget.allocation import Overspend

OnOverspend = Literal["record", "raise"]
OnUnknown = Literal["close", "raise"]
OnUnlimited = Literal["own-ceiling", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRules:
    """What a pool does where users want different things.

    Parameters
    ----------
    overspend : {"record", "raise"}
        A child that used more than was held for it: a fact in the answer, or an error after the books are done.
    unknown : {"close", "raise"}
        A spend of unknown size under a limit on money or a named resource: what is known is charged and the channel
        takes no more, or it is used up and an error says so. A driver's own turn of unknown cost then raises before
        anything is charged.
    unlimited : {"own-ceiling", "refuse"}
        An ask in a channel in which the pool has no limit: it becomes the child's own ceiling, or is refused, so that
        the limit is put where it belongs, at the root.

    Raises
    ------
    InputError
        If a choice is none of those named.
    """

    overspend: OnOverspend = "record"
    unknown: OnUnknown = "close"
    unlimited: OnUnlimited = "own-ceiling"

    def __post_init__(self) -> None:
        choices = (get_args(OnOverspend), get_args(OnUnknown), get_args(OnUnlimited))
        for each, allowed in zip(fields(self), choices, strict=True):
            if getattr(self, each.name) not in allowed:
                raise InputError(each.name, expected=" or ".join(allowed), got=getattr(self, each.name))


POOL_RULES: Final[dict[str, PoolRules]] = {
    "ours": PoolRules(),
    "tangle-e1": PoolRules(overspend="raise", unknown="raise", unlimited="refuse"),
    "tangle-e2": PoolRules(overspend="raise", unknown="raise", unlimited="refuse"),
    "tangle-e3": PoolRules(overspend="record", unknown="raise", unlimited="refuse"),
}
"""Presets by name: ours, and the three eras of the conserved pool of tangle-network/agent-runtime."""


def pool_rules(rules: PoolRules | str | None) -> PoolRules:
    """Return rules by the name of a preset, or as they are; None is ours.

    Raises
    ------
    InputError
        If there is no preset of that name.
    """
    if isinstance(rules, PoolRules):
        return rules
    if rules is None:
        return POOL_RULES["ours"]
    if not isinstance(rules, str) or rules not in POOL_RULES:
        raise InputError("rules", expected=f"one of {', '.join(POOL_RULES)}", got=rules)
    return POOL_RULES[rules]


class BudgetFault(HarnessLabError):
    """A spend that the rules do not let pass in silence. The books are done: nothing that was spent is lost.

    Attributes
    ----------
    overspent : tuple of Overspend
        Channels in which more was spent than held.
    unknown : tuple of str
        Channels under a limit in which nobody knows what was spent.
    """

    def __init__(self, overspent: tuple[Overspend, ...], unknown: tuple[str, ...] = ()) -> None:
        self.overspent, self.unknown = overspent, unknown
        super().__init__(overspent, unknown)

    def __str__(self) -> str:
        over = [f"{o.channel}: spent {o.spent:,} of {o.held:,} held" for o in self.overspent]
        return "; ".join([*over, *(f"{channel}: unknown spend under a limit" for channel in self.unknown)])

"""What a delegated node costs, as integers, and what is charged for it.

Source: the spend ledger of Bernstein 3.23, in whole nano-dollars.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError
from harness_lab.usage import MAX_TOKENS, optional_count, optional_nusd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.delegation.plan import DispatchNode
    from harness_lab.delegation.rules import DelegationRules

BATCH_TIER_DISCOUNT = 0.5
"""Share of the price that the batch tier takes off."""
_DISCOUNT_PPM = round(BATCH_TIER_DISCOUNT * 1_000_000)
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCost:
    """What a native call used.

    Parameters
    ----------
    undiscounted_cost_usd : float or None
        Its price at the interactive rate, dollars. None: not known.
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens : int or None
        As the native agent reports them; passed on as they are. None: not known.
    """

    undiscounted_cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What is charged for one node.

    Parameters
    ----------
    node_name, target, model, tier : str
        Of the node.
    undiscounted_nusd, cost_nusd : int or None
        Before and after the batch discount, nano-dollars, half to even. None: not known.
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens : int or None
        Passed on as they are; a discount does not change them.
    event_hash : str
        The journal row that it belongs to, and what tells a charge given twice; empty without a journal.
    """

    node_name: str
    target: str
    model: str
    tier: str
    undiscounted_nusd: int | None
    cost_nusd: int | None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    event_hash: str = ""

    @property
    def cost_usd(self) -> float | None:
        """The cost in dollars, for display."""
        return None if self.cost_nusd is None else self.cost_nusd / 1e9

    @property
    def tags(self) -> dict[str, str]:
        """How a bill is split: the tier, and the node."""
        return {"tier": self.tier, "delegation_node": self.node_name}

    def to_dict(self) -> dict[str, Any]:
        """Return the charge as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Charge:
        """Build a charge from what :meth:`to_dict` gave.

        Raises
        ------
        InputError
            If a field is missing.
        """
        try:
            return cls(**{field.name: data[field.name] for field in fields(cls)})
        except KeyError as error:
            raise InputError("charge", expected="every field of a charge", got=f"none named {error}") from None


def charge_for(node: DispatchNode, cost: NodeCost, *, rules: DelegationRules) -> Charge:
    """Return the charge of a node, the batch discount taken off.

    Raises
    ------
    InputError
        If the cost is not a finite number from 0 to nine billion (under `negative_cost` = clamp a negative one is 0),
        or a count is not a whole number.
    """
    usd = cost.undiscounted_cost_usd
    if rules.negative_cost == "clamp" and _negative(usd):
        usd = 0.0
    whole = optional_nusd(usd, what="undiscounted_cost_usd")
    tokens: dict[str, Any] = {name: optional_count(name, getattr(cost, name), maximum=MAX_TOKENS) for name in _TOKENS}
    return Charge(
        node_name=node.name, target=node.target, model=node.model, tier=node.tier, undiscounted_nusd=whole,
        cost_nusd=discounted(whole) if node.batch and whole is not None else whole, **tokens,
    )  # fmt: skip


def discounted(nusd: int) -> int:
    """Return an amount less the batch discount, half to even.

    Examples
    --------
    >>> discounted(1_000_000_000), discounted(5), discounted(7)
    (500000000, 2, 4)
    """
    share, rest = divmod(nusd * (1_000_000 - _DISCOUNT_PPM), 1_000_000)
    return share + (rest * 2 > 1_000_000 or (rest * 2 == 1_000_000 and share % 2))


def _negative(usd: object) -> bool:
    try:
        return Decimal(str(usd)) < 0
    except InvalidOperation:
        return False

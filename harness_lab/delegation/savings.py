"""What prompt caching saved, per node and target, against the full input price.

Source: the cache savings of Bernstein 3.23.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.delegation.charges import discounted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness_lab.delegation.charges import Charge

    Rates = Callable[[str], tuple[int, int, int] | None]

_PUSD_PER_NUSD = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSaving:
    """What caching saved on one node.

    Parameters
    ----------
    node_name, target, model, tier : str
        Of the node.
    cache_read_tokens, cache_write_tokens : int or None
        As charged; None: not known.
    saved_nusd : int or None
        Nano-dollars, half to even; negative where writing cost more than reading saved. None: no price, or no counts.
    """

    node_name: str
    target: str
    model: str
    tier: str
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    saved_nusd: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSavings:
    """What caching saved.

    Parameters
    ----------
    nodes : tuple of NodeSaving
        One for each charge, in order.
    """

    nodes: tuple[NodeSaving, ...]

    def by_target(self) -> dict[str, int | None]:
        """Return nano-dollars by target; None where a node's saving is not known."""
        totals: dict[str, int | None] = {}
        for node in self.nodes:
            before = totals.get(node.target, 0)
            totals[node.target] = None if before is None or node.saved_nusd is None else before + node.saved_nusd
        return totals

    @property
    def unknown(self) -> int:
        """Nodes whose saving is not known."""
        return sum(node.saved_nusd is None for node in self.nodes)

    def summary(self) -> str:
        """Return the totals, one line a target."""
        lines = [f"cache savings of {len(self.nodes):,} nodes, {self.unknown:,} of them unknown"]
        for target, saved in sorted(self.by_target().items()):
            lines.append(f"  {target}: {'unknown' if saved is None else f'${saved / 1e9:.6g}'}")
        return "\n".join(lines)

    def explain(self) -> str:
        """Return what the figures mean and what not."""
        return (
            "Tokens read from a cache at the difference between the input price and the cache price, less what tokens "
            "written to it cost above the input price; half of that on the batch tier. A total with an unknown part is "
            "unknown. It says nothing about what the agents would have sent without a cache."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return nodes and totals as JSON values."""
        return {"nodes": [asdict(node) for node in self.nodes], "by_target": self.by_target(), "unknown": self.unknown}


def cache_savings(charges: Iterable[Charge], rates: Rates) -> CacheSavings:
    """Return what prompt caching saved on charged nodes.

    Parameters
    ----------
    charges : iterable of Charge
        What was charged.
    rates : callable
        Model name → prices of fresh input, cache read and cache write, pico-dollars per token (for a price table:
        ``lambda model: table.models[model][0].rates()[:3]``); None where there is no price.

    Examples
    --------
    >>> from harness_lab.delegation.charges import Charge
    >>> charge = Charge(
    ...     node_name="a", target="claude", model="m", tier="interactive", undiscounted_nusd=0, cost_nusd=0,
    ...     cache_read_tokens=1_000_000, cache_write_tokens=0,
    ... )
    >>> print(cache_savings([charge], lambda model: (3_000_000, 300_000, 3_750_000)).summary())
    cache savings of 1 nodes, 0 of them unknown
      claude: $2.7
    """
    return CacheSavings(nodes=tuple(_node(charge, rates(charge.model)) for charge in charges))


def _node(charge: Charge, rates: tuple[int, int, int] | None) -> NodeSaving:
    read, write = charge.cache_read_tokens, charge.cache_write_tokens
    saved: int | None = None
    if rates is not None and read is not None and write is not None:
        fresh, cached, written = rates
        pusd = read * (fresh - cached) - write * (written - fresh)
        saved = _half_even(pusd, _PUSD_PER_NUSD)
        saved = saved if charge.tier != "batch" else _signed_discount(saved)
    return NodeSaving(
        node_name=charge.node_name, target=charge.target, model=charge.model, tier=charge.tier,
        cache_read_tokens=read, cache_write_tokens=write, saved_nusd=saved,
    )  # fmt: skip


def _signed_discount(nusd: int) -> int:
    return discounted(nusd) if nusd >= 0 else -discounted(-nusd)


def _half_even(value: int, unit: int) -> int:
    whole, rest = divmod(value, unit)
    return whole + (rest * 2 > unit or (rest * 2 == unit and whole % 2 == 1))

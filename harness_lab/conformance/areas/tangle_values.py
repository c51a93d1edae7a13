"""Asks, uses and channels that the cases of tangle are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.conformance.shapes import UnknownShape
from harness_lab.outcome import CALLS, COST, FRESH
from harness_lab.usage import NUSD_PER_USD, Amounts, TokenCounts, nusd

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS: Final = {"maxIterations": CALLS, "maxTokens": FRESH, "maxUsd": COST}
NAMES: Final = {"fresh": "tokens", "calls": "iterations", "cost": "usd"}
"""Channels, as tangle calls them; its tokens are the newly presented ones."""
FLAGS: Final = ("tokensKnown", "cacheBreakdownKnown")


def ask_of(budget: Mapping[str, Any]) -> Amounts:
    """Return an ask, or a pool's limits, by channel."""
    unknown = set(budget) - set(FIELDS)
    if unknown:
        raise UnknownShape(f"a pool's budget has no {', '.join(sorted(unknown))} yet")
    usd = budget.get("maxUsd")
    return (budget["maxIterations"], None, None, budget["maxTokens"], None if usd is None else nusd(usd))


def spent_of(spent: Mapping[str, Any]) -> Amounts:
    """Return what was used: newly presented tokens, unknown where their count or their split is."""
    tokens = spent["tokens"]
    if set(spent) - {"iterations", "tokens", "usd", "ms", "tokensKnown", "usdKnown"}:
        raise UnknownShape("use of a named resource")
    for flag in FLAGS:
        if tokens.get(flag, False) is not False:
            raise UnknownShape(f"tokens with {flag} {tokens[flag]!r}")
    known = spent.get("tokensKnown", True) and not any(flag in tokens for flag in FLAGS)
    fresh = _counts(tokens).newly_presented if known else None
    cost = nusd(spent["usd"]) if spent.get("usdKnown", True) else None
    return (spent["iterations"], 0, 0, fresh, cost)


def _counts(tokens: Mapping[str, Any]) -> TokenCounts:
    """Return disjoint counts; an input that its split does not add up to cannot be said in them."""
    read, written = tokens.get("cacheRead", 0), tokens.get("cacheWrite", 0)
    fresh = tokens.get("freshInput", tokens["input"])
    return TokenCounts(input_fresh=fresh, cache_read=read, cache_write=written, output=tokens["output"])


def told(channel: str, amount: int | None) -> float | int | None:
    """Return an amount as the cases tell it: money in dollars."""
    if amount is None or channel != "cost":
        return amount
    whole, part = divmod(amount, NUSD_PER_USD)
    return amount / NUSD_PER_USD if part else whole

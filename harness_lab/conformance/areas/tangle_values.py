"""Asks, uses and channels that the cases of tangle are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import Quantity, ReservationPool, Spend
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.usage import NUSD_PER_USD, Amounts, nusd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.budget import BudgetFault, Overspend
    from harness_lab.conformance.shapes import Case
    from harness_lab.errors import InputError
    from harness_lab.outcome import Shortfall

FIELDS: Final = {"maxIterations": "calls", "maxTokens": "fresh", "maxUsd": "cost", "deadlineMs": "lasts_s"}
NAMES: Final = {"fresh": "tokens", "tokens": "tokens", "calls": "iterations", "cost": "usd"}
"""Channels, as tangle calls them; its tokens are the newly presented ones, in its first era all of them."""
USES: Final = {
    "calls": "iterations", "input": "tokens.input", "output": "tokens.output", "fresh_input": "tokens.freshInput",
    "cache_read": "tokens.cacheRead", "cache_write": "tokens.cacheWrite", "cost_usd": "usd",
    "tokens_known": "tokensKnown", "split_known": "cacheBreakdownKnown", "cost_known": "usdKnown",
}  # fmt: skip
"""Parts of a use: what our errors call them, and tangle's."""
SPENT: Final = {"iterations", "tokens", "usd", "ms", "tokensKnown", "usdKnown", "usdEstimated", "resources"}
COUNTS: Final = {
    "input", "output", "freshInput", "cacheRead", "cacheWrite", "tokensKnown", "cacheBreakdownKnown"
}  # fmt: skip
NEGATIVE: Final = "must be non-negative"


def era_of(case: Case) -> str:
    """Return the era that a case is of; the last if it names none."""
    era = case.get("era", "E3")
    if era not in ("E1", "E2", "E3"):
        raise UnknownShape(f"the era {era!r}")
    return str(era)


def token_channel(era: str) -> int:
    """Return the channel in which an era counts tokens: all of them in the first, then the newly presented ones."""
    return 2 if era == "E1" else 3


def ask_of(budget: Mapping[str, Any], era: str = "E3") -> Amounts:
    """Return an ask, or a pool's limits, by channel."""
    unknown = set(budget) - {*FIELDS, "resources"}
    if unknown:
        raise UnknownShape(f"a budget with {', '.join(sorted(unknown))}")
    usd = budget.get("maxUsd")
    ask = [budget.get("maxIterations"), None, None, None, None if usd is None else nusd(usd)]
    ask[token_channel(era)] = budget.get("maxTokens")
    return tuple(ask)


def resources_of(budget: Mapping[str, Any]) -> dict[str, Quantity]:
    """Return the named resources of a budget."""
    named = budget.get("resources", {}).items()
    return {name: Quantity(unit=limit["unit"], amount=limit["limit"]) for name, limit in named}


def pool_of(root: Mapping[str, Any], era: str, preset: str | None) -> ReservationPool:
    """Return a pool of a root's budget."""
    return ReservationPool(ask_of(root, era), resources=resources_of(root), rules=preset)


def spend_of(spent: Mapping[str, Any]) -> Spend:
    """Return what was used, and what of it is known."""
    tokens = spent["tokens"]
    odd = (set(spent) - SPENT) | (set(tokens) - COUNTS)
    if odd:
        raise UnknownShape(f"a use with {', '.join(sorted(odd))}")
    known = [flag for flag in (spent.get("tokensKnown", True), tokens.get("tokensKnown", True)) if flag is not True]
    resources = spent.get("resources", {}).items()
    return Spend(
        calls=spent["iterations"],
        input=tokens["input"],
        output=tokens["output"],
        fresh_input=tokens.get("freshInput"),
        cache_read=tokens.get("cacheRead"),
        cache_write=tokens.get("cacheWrite"),
        tokens_known=known[0] if known else True,
        split_known=tokens.get("cacheBreakdownKnown"),
        cost_nusd=nusd(spent["usd"]),
        cost_known=spent.get("usdKnown", True),
        estimated_nusd=nusd(spent.get("usdEstimated", 0)),
        resources={name: Quantity(unit=r["unit"], amount=r["amount"], known=r["known"]) for name, r in resources},
    )


def field_of(error: InputError) -> str:
    """Return the field of a budget that an error is about, as tangle calls it."""
    channel = error.what.partition("(")[2].rstrip(")") or error.what
    ours = {"tokens": "fresh", "cost_usd": "cost"}.get(channel, channel)
    return next((field for field, name in FIELDS.items() if name == ours), error.what)


def complaint(error: InputError) -> str:
    """Spell an error about an ask, or a use, as tangle does."""
    what, _, name = error.what.partition(" ")
    if what == "resource":
        return f"root must declare {name}" if "declares" in error.expected else f"{name} must be declared as the root's"
    if error.what == "cache classes":
        return "cache classes must sum to input"
    use = USES.get(error.what)
    if use is not None and error.what.endswith("known"):
        return f"{use} must be false when present"
    return f"{use or field_of(error)} {NEGATIVE}"


def fault_text(fault: BudgetFault) -> str:
    """Spell what a pool would not let pass in silence."""
    return "; ".join([*map(_overspent, fault.overspent), *map(_unknown, fault.unknown)])


def reason_text(reason: str) -> str:
    """Spell a settlement's reason: where it tells of an unknown spend, in tangle's words."""
    told = [part.partition(": unknown spend under a limit") for part in reason.split("; ")]
    return "; ".join(_unknown(channel) if found else channel for channel, found, _ in told)


def _unknown(channel: str) -> str:
    if channel == "cost":
        return "unknown dollar cost under a dollar-capped budget"
    return f"{channel.replace(':', ' ')}: unknown usage under an enforced limit"


def _overspent(over: Overspend) -> str:
    held, spent = told(over.channel, over.held), told(over.channel, over.spent)
    if over.channel == "cost":
        return f"spent ${spent} > reserved ${held}"
    return f"spent {spent} {NAMES.get(over.channel, over.channel)} > reserved {held}"


def overspent(over: tuple[Overspend, ...]) -> dict[str, Any] | None:
    """Return channels that were used beyond what was held."""
    facts = [
        {
            "channel": NAMES.get(o.channel, o.channel),
            "reserved": told(o.channel, o.held),
            "spent": told(o.channel, o.spent),
        }
        for o in over
    ]
    return {"overspent": facts} if facts else None


def shortfall(short: Shortfall, held: int | None = None) -> dict[str, Any]:
    """Return one channel that fell short."""
    closed = short.code == "spend-unknown"
    fact = {
        "channel": NAMES.get(short.channel, short.channel),
        "requested": told(short.channel, short.asked),
        "free": 0 if closed else told(short.channel, short.free),
    }
    if held is not None:
        fact["held"] = told(short.channel, held)
    return fact | ({"closedByUnknownSpend": True} if closed else {})


def told(channel: str, amount: int | None) -> float | int | None:
    """Return an amount as the cases tell it: money in dollars."""
    if amount is None or channel != "cost":
        return amount
    whole, part = divmod(amount, NUSD_PER_USD)
    return amount / NUSD_PER_USD if part else whole

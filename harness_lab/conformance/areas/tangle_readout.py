"""What is left in a pool of tangle's cases, what is held, and what is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.conformance.areas.tangle_values import told
from harness_lab.conformance.areas.tangle_words import apart
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.outcome import CALLS, CHANNELS, COST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.budget import Account, ReservationPool


def readout(pool: ReservationPool, tokens: int) -> dict[str, Any]:
    """Return a pool's readout; `tokens` is the channel in which they are counted."""
    accounts = pool.root.accounts
    cost = accounts[COST]
    named = zip(pool.units, accounts[len(CHANNELS) :], strict=True)
    return {
        "tokensLeft": accounts[tokens].free,
        "reservedTokens": accounts[tokens].held,
        "tokensKnown": not accounts[tokens].unknown,
        "cacheBreakdownKnown": pool.split_known,
        "iterationsLeft": accounts[CALLS].free,
        "usdCapped": cost.limit >= 0,
        "usdKnown": not cost.unknown,
        "usdLeft": 0 if cost.free is None else told("cost", cost.free),
        "resources": {name: _resource(account, pool.units[name]) for name, account in named},
    }


def _resource(account: Account, unit: str) -> dict[str, Any]:
    return {
        "unit": unit,
        "limit": account.limit,
        "remaining": account.free,
        "reserved": account.held,
        "committed": account.spent,
        "known": not account.unknown,
    }


def checked(op: Mapping[str, Any], read: Mapping[str, Any], stands: Mapping[str, str], held: int) -> dict[str, Any]:
    """Return nothing where everything is as a check says, else what is otherwise."""
    unknown = set(op) - {"op", "readout", "waiters", "openReservations"}
    if unknown:
        raise UnknownShape(f"a check of {', '.join(sorted(unknown))}")
    wrong: dict[str, Any] = {}
    for name, value in op.get("readout", {}).items():
        wrong |= apart(name, value, read.get(name))
    wrong |= {who: stands.get(who) for who, how in op.get("waiters", {}).items() if stands.get(who) != how}
    if op.get("openReservations", held) != held:
        wrong["openReservations"] = held
    return {f"check.{name}": value for name, value in wrong.items()}

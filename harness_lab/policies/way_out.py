"""What a refusal advises, tried out: a larger ask may not fit another limit, and a smaller one may be below a floor.

Without it a caller that does as it is told goes round in circles: a floor says "larger", then the pool says "smaller".
Source: our own; that a refusal reports floor and pool both is agent-runtime's rule for an ask that misses both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness_lab.outcome import CHANNELS
from harness_lab.policies.asks import SpawnAsk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness_lab.clock import Time
    from harness_lab.outcome import Shortfall
    from harness_lab.policies.protocol import Ask, Module


def tried(ask: Ask, short: tuple[Shortfall, ...], modules: Sequence[Module], now: Time) -> tuple[Shortfall, ...]:
    """Return what falls short for an ask, and what would fall short the other way if its advice were followed.

    Parameters
    ----------
    ask : SpawnAsk or StepAsk
        The ask that is refused; only a child's has a size that could be another.
    short : tuple of Shortfall
        What falls short for it.
    modules : sequence of Module
        Who is asked; that changes nothing.
    now : Time
        The instant.
    """
    if type(ask) is not SpawnAsk:
        return short
    more = [found for one in short for found in _against(ask, one, modules, now)]
    known = {(one.code, one.channel) for one in short}
    return (*short, *(found for found in more if (found.code, found.channel) not in known))


def _against(ask: SpawnAsk, one: Shortfall, modules: Sequence[Module], now: Time) -> Iterator[Shortfall]:
    """Yield what stands against the size that a shortfall advises, in its own channel."""
    size = {"larger": one.limit, "smaller": one.free}.get(one.helps)
    if size is None or one.channel not in CHANNELS:
        return
    channel = CHANNELS.index(one.channel)
    other = SpawnAsk(
        ask.parent, ask.path, (*ask.budget[:channel], size, *ask.budget[channel + 1 :]), ask.floor_key,
        awaited=ask.awaited, resume=ask.resume, together=ask.together,
    )  # fmt: skip
    for module in modules:
        for found in module.short(other, now):
            if found.channel == one.channel and found.helps != one.helps:
                yield replace(found, detail=found.detail or "for the least that this path has worked with")

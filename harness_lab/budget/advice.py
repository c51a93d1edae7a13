"""What to do about a refusal, as one sentence that a model can act on.

A refusal says which limits fell short; whoever asked, a model as a rule, tries again. What it reads decides in which
direction: without figures it shrinks what was never short.

Source: our own, on the codes of all systems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness_lab.outcome import Code, amount_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.outcome import Refusal, Shortfall

EXACT: Final = frozenset({"calls"})
"""Channels whose use is known before: the whole of what is left may be asked for. A share of tokens or of money that is
the last of it leaves nothing for whoever gave it, and work may use more than its share."""

_OTHER: Final[dict[Code, str]] = {
    Code.MAX_DEPTH: "no agent may start below this one: do the work here, or give it back",
    Code.MAX_CALLS: "no further agent may start in this run: do the work here, or go on with what there is",
    Code.MAX_CONCURRENT: "as many agents as may work at once do: try again when one has ended",
    Code.DEADLINE: "its time is over: go on with what there is",
    Code.CANCELLED: "the run was stopped, and nothing may start any more",
    Code.PARENT_ENDED: "whoever would have started it has ended, and nothing may start any more",
    Code.KEY_CONFLICT: "this key was used for another task before: choose another key",
    Code.KEY_IN_USE: "work with this key is being done: wait for its result",
    Code.KEY_IN_DOUBT: "nobody knows how the work with this key ended: find out, or ask to have it done again",
    Code.BELOW_RUNTIME_FLOOR: "less has never been enough for this path: ask for more, a smaller ask fails likewise",
    Code.WAITED_TOO_LONG: "it waited as long as it may: try again later",
}


def advice(refusal: Refusal, *, fields: Mapping[str, str] | None = None) -> str:
    """Return what to do about a refusal, one sentence for each limit that fell short.

    Parameters
    ----------
    refusal : Refusal
        The answer.
    fields : mapping of str to str, optional
        What the asker calls the channels (the parameters of its tool); the channels' own names where left out.

    Examples
    --------
    >>> from harness_lab.budget import ReservationPool
    >>> from harness_lab.usage import amounts
    >>> print(advice(ReservationPool(amounts(calls=58)).reserve(amounts(calls=100)), fields={"calls": "max_steps"}))
    budget-exhausted: of max_steps the conserved pool has 58 left and 100 were asked for: at most 58 fits.
    """
    stuck, names = refusal.no_size_fits, fields or {}
    said = [f"{short.code}: {_sentence(short, names)}." for short in refusal.shortfalls if short.channel not in stuck]
    return " ".join([*(_no_size(refusal, channel, names) for channel in stuck), *said])


def _no_size(refusal: Refusal, channel: str, fields: Mapping[str, str]) -> str:
    """Say that less fits the pool, and more the path, and nothing both."""
    here = [short for short in refusal.shortfalls if short.channel == channel]
    codes = " and ".join(short.code for short in here)
    free = min(max(0, short.free or 0) for short in here if short.helps == "smaller")
    needs = max(short.limit or 0 for short in here if short.helps == "larger")
    name = fields.get(channel, channel)
    return (
        f"{codes}: no ask of {name} fits: this path has never worked with less than {needs}, and {free} are left: "
        "take a path that needs less, or do the work here."
    )


def _sentence(short: Shortfall, fields: Mapping[str, str]) -> str:
    if not short.channel or short.code in _OTHER:
        said = _OTHER.get(short.code, "a limit does not let it start")
        return f"{said} ({short.detail})" if short.detail else said
    name = fields.get(short.channel, short.channel)
    if short.code is Code.SPEND_UNKNOWN:
        return f"of {name} an unknown amount was used, so the conserved pool admits no further spawn at any budget"
    if short.code is Code.UNBUDGETED:
        return f"the conserved pool has no limit of {name} to give from: leave it out, or have the root declare one"
    free = max(0, short.free or 0)
    left = f"of {name} the conserved pool has {_figure(short, free)} left"
    asked = "" if short.asked is None else f" and {_figure(short, short.asked)} were asked for"
    return f"{left}{asked}: {_way_out(short, free)}"


def _way_out(short: Shortfall, free: int) -> str:
    if short.helps == "wait":
        return "it fits once others have given back what they hold; until then less fits"
    if free == 0:
        return "nothing fits any more, whatever is asked for"
    if short.channel in EXACT or short.channel.startswith("resource:"):
        return f"at most {_figure(short, free)} fits"
    return f"ask for well under {_figure(short, free)}, it has to last for whatever comes after as well"


def _figure(short: Shortfall, amount: int) -> str:
    return amount_text(short.channel, amount) if short.channel in ("cost", "time") else str(amount)

"""Where our delegation and Bernstein's differ: named axes, one preset for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness_lab.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationRules:
    """One choice on every axis.

    Parameters
    ----------
    name : str
        Name of the preset.
    values : {"json", "python"}
        What may be hashed: JSON values alone, or whatever Python's encoder writes (NaN as a bare word, other objects as
        their text, so that a path and its string collide). Both give the same bytes for JSON values.
    sealing : {"by-position", "anywhere"}
        Which mappings of a schema count as objects that must be closed: those in the place of a schema, or every one
        with a key ``properties``, a property of that name included.
    plan : {"whole", "node-by-node"}
        Whether a plan is anchored whole or not at all, or earlier nodes stay anchored when a later one is rejected.
    existing_journal : {"refuse", "restart"}
        What the plain constructor does with a journal that has rows: refuses, or begins a second chain behind them.
    existing_ledger : {"remember", "forget"}
        Whether a ledger that is opened on a file counts what the file says was spent.
    negative_cost : {"refuse", "clamp"}
        A cost below zero: an error, or zero.
    zero_limit : {"nothing", "no-limit"}
        Whether a spend limit of 0 lets nothing pass or does not exist.
    reroute : tuple of (str, str)
        Part of a model's name, and the cheaper model to suggest for it once the ledger warns; first hit wins.
    reroute_default : str or None
        The suggestion for a model that none of these names; None: no suggestion.
    reroute_to_itself : bool
        Whether a model may be suggested for itself.
    """

    name: str
    values: Literal["json", "python"] = "json"
    sealing: Literal["by-position", "anywhere"] = "by-position"
    plan: Literal["whole", "node-by-node"] = "whole"
    existing_journal: Literal["refuse", "restart"] = "refuse"
    existing_ledger: Literal["remember", "forget"] = "remember"
    negative_cost: Literal["refuse", "clamp"] = "refuse"
    zero_limit: Literal["nothing", "no-limit"] = "nothing"
    reroute: tuple[tuple[str, str], ...] = ()
    reroute_default: str | None = None
    reroute_to_itself: bool = False


OURS = DelegationRules(name="harness-lab")
"""Our own choices: what a user would expect."""

BERNSTEIN_3_23 = DelegationRules(
    name="bernstein-3.23",
    values="python",
    sealing="anywhere",
    plan="node-by-node",
    existing_journal="restart",
    existing_ledger="forget",
    negative_cost="clamp",
    zero_limit="no-limit",
    reroute=(("opus", "sonnet"), ("sonnet", "haiku"), ("gpt-5", "gpt-5-mini")),
    reroute_default="haiku",
    reroute_to_itself=True,
)
"""Bernstein 3.23.0 as it behaves."""

PRESETS = {rules.name: rules for rules in (OURS, BERNSTEIN_3_23)}


def preset(name: str) -> DelegationRules:
    """Return the rules of a preset.

    Raises
    ------
    InputError
        If there is none of that name.

    Examples
    --------
    >>> preset("bernstein-3.23").plan
    'node-by-node'
    """
    if name not in PRESETS:
        raise InputError("preset", expected=f"one of {', '.join(PRESETS)}", got=name)
    return PRESETS[name]

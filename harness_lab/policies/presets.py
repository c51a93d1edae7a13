"""Named compositions: how other systems bound a tree of agents, to compare with or to begin from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from harness_lab.errors import InputError
from harness_lab.policies.at_limit import AtLimit
from harness_lab.policies.spec import PolicySpec, compose, iteration_budget, tree_limits

if TYPE_CHECKING:
    from collections.abc import Mapping

PRESETS: Final[dict[str, PolicySpec]] = {
    policy.name: policy
    for policy in (
        # TanStack AI, pull request 1520: starts of the tree, children at once of each parent, refused at once, none
        # given back. A harness has these three limits unless it names its own; there is no time limit by default.
        tree_limits(2, 3, 12, concurrency="parent", give_back=False, name="tanstack-1520"),
        # hermes-agent 0.19.0: flat delegation, three children of a parent, no time limit (a child that has one is left
        # behind when it is over). Each agent counts its own calls. Code turns give the budget's unit back and not the
        # loop's, so they are not free. At the limit there is one more call, without tools.
        compose(
            tree_limits(1, 3, concurrency="parent", on_timeout="detach", give_back=False),
            iteration_budget(90, max_child_iterations=50, max_refunds=0),
            name="hermes-0.19",
            at_limit=AtLimit(then="wrap-up"),
        ),
        # The same in March 2026: children draw on their parent's 90 calls, each at most 50 of them; two levels, a time
        # limit, and a hint at 70 % of the budget (the second one, at 90 %, has no counterpart).
        compose(
            tree_limits(2, 3, timeout_s=300, concurrency="parent", on_timeout="detach", give_back=False),
            iteration_budget(90, max_child_iterations=50, max_refunds=0, whose="tree"),
            name="hermes-shared-2026-03",
            at_limit=AtLimit(then="wrap-up", warn_at=0.7),
        ),
        # The cost-integrity skill: children do not delegate, and programmatic turns are free without a bound. It names
        # no number of its own; 50 is what a child of hermes-agent has. Its off-by-one is not reproduced.
        compose(tree_limits(1), iteration_budget(50, max_refunds="unbounded"), name="skill"),
    )
}
"""The presets by name. Prices, pools and run rules have their own (``AgentRules``, ``POOL_RULES``, ``delegation``)."""


def preset(name: str, **modules: Mapping[str, Any]) -> PolicySpec:
    """Return a preset, maybe with other parameters.

    Parameters
    ----------
    name : {"tanstack-1520", "hermes-0.19", "hermes-shared-2026-03", "skill"}
        The system that is followed.
    **modules : mapping
        Parameters of one of its modules that differ, by the module's kind.

    Raises
    ------
    InputError
        If there is no such preset, module or parameter, or a value is not allowed.

    Examples
    --------
    >>> preset("hermes-0.19", tree_limits={"max_depth": 2}).module("tree_limits").max_depth
    2
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise InputError("preset", expected=f"one of {', '.join(PRESETS)}", got=name)
    policy = PRESETS[name]
    for kind, changes in modules.items():
        policy = policy.with_module(kind, **changes)
    return policy


def from_preset(table: Mapping[str, Any]) -> PolicySpec:
    """Read a table that begins from a preset: ``preset``, maybe ``name`` and ``max_wait_s``, and tables of modules.

    Parameters
    ----------
    table : mapping
        As it stands in an experiment file; a module's table names the parameters that differ.

    Raises
    ------
    InputError
        As :func:`preset`, and if there is a key that means nothing.
    """
    rest = {key: value for key, value in table.items() if not isinstance(value, dict)}
    unknown = sorted(set(rest) - {"preset", "name", "max_wait_s"})
    if unknown:
        raise InputError("policy", expected="preset, maybe name, max_wait_s and tables of its modules", got=unknown)
    policy = preset(rest["preset"], **{key: value for key, value in table.items() if isinstance(value, dict)})
    named = {key: rest[key] for key in ("name", "max_wait_s") if key in rest}
    return replace(policy, **named)

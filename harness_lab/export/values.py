"""The amounts in a policy: what each limits, and over what it is counted."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from harness_lab.export.targets.amounts import SAFE_INTEGER
from harness_lab.floors import FloorTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.policies import PolicySpec

Quantity = Literal[
    "calls", "tool-calls", "input", "tokens", "fresh", "cost", "time", "depth", "children", "starts", "floor"
]
"""What is counted: model calls, tool calls, prompt tokens, all tokens, newly presented tokens, dollars, seconds, levels
below the root, children at once, children started, tokens of a path's floor."""

Scope = Literal["tree", "node", "root", "child", "parent", "period", "path"]
"""Over what: a run's whole tree, each node, the root alone, each child, the children of each parent, a period of a
group, an execution path."""

SCOPES: Final[dict[Scope, str]] = {
    "tree": "the run's whole tree",
    "node": "each agent on its own",
    "root": "the main agent alone",
    "child": "each child on its own",
    "parent": "the children of one parent",
    "period": "a period of a group",
    "path": "an execution path",
}

_CHANNELS: Final[dict[str, Quantity]] = {
    "calls": "calls",
    "input": "input",
    "tokens": "tokens",
    "fresh": "fresh",
    "cost_usd": "cost",
}
_FIXED: Final[dict[str, tuple[Quantity, Scope]]] = {
    "shared_ledger.max_steps": ("calls", "tree"),
    "shared_ledger.max_cost_usd": ("cost", "tree"),
    "shared_ledger.max_seconds": ("time", "tree"),
    "tree_limits.max_depth": ("depth", "tree"),
    "tree_limits.max_calls": ("starts", "tree"),
    "tree_limits.timeout_s": ("time", "child"),
    "runtime_floors.table": ("floor", "path"),
}

_ENDLESS: Final = ("shared_ledger.max_steps", "iteration_budget.max_iterations")
"""Parameters that have to be given: no limit is a number that no run reaches."""
ABOUT: Final = {
    "tree_limits.on_timeout": "timeout_s",
    "tree_limits.timeout_from": "timeout_s",
    "tree_limits.concurrency": "max_concurrent",
    "tree_limits.lend": "max_concurrent",
    "tree_limits.give_back": "max_calls",
}
"""Parameters that say how a limit answers, and so nothing where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One parameter of a policy that says something: it is neither None nor what it would be anyhow.

    Parameters
    ----------
    name : str
        ``module.parameter``.
    amount : object
        Its value.
    quantity : str or None
        What it limits; None: it is no amount, but says how the module answers.
    scope : str or None
        Over what it is counted.
    """

    name: str
    amount: Any
    quantity: Quantity | None = None
    scope: Scope | None = None

    def __str__(self) -> str:
        rows = self.amount.rows if isinstance(self.amount, FloorTable) else None
        return f"{self.name} = {self.amount if rows is None else f'{len(rows)} rows'}"


def values_of(policy: PolicySpec) -> tuple[Value, ...]:
    """Return every value of a policy that differs from its default, in order."""
    found = [value for module in policy.modules for value in _of_module(module)]
    if policy.max_wait_s is not None:
        found.append(Value(name="max_wait_s", amount=policy.max_wait_s))
    if policy.at_limit is not None:
        found += [Value(name=f"at_limit.{name}", amount=amount) for name, amount in _changed(policy.at_limit)]
    return tuple(found)


def childless(policy: PolicySpec) -> bool:
    """Whether no child can ever start, so that the tree is its root."""
    limits = policy.module("tree_limits")
    return limits is not None and 0 in (limits.max_depth, limits.max_calls, limits.max_concurrent)


def same_scopes(policy: PolicySpec, scope: Scope) -> frozenset[Scope]:
    """Return the scopes that are counted alike under a policy."""
    limits = policy.module("tree_limits")
    if childless(policy) and scope in ("tree", "node", "root"):
        return frozenset({"tree", "node", "root"})
    if limits is not None and limits.max_depth == 1 and scope in ("tree", "parent"):
        return frozenset({"tree", "parent"})
    return frozenset({scope})


def _of_module(module: Any) -> Iterator[Value]:
    for name, amount in _changed(module):
        label = f"{module.kind}.{name}"
        quantity, scope = _meaning(module, name, label)
        if label in _ENDLESS and amount >= SAFE_INTEGER:
            continue
        if label in ABOUT and getattr(module, ABOUT[label]) is None:
            continue
        if module.kind == "meter":  # a policy may hold several, told apart by whose they are
            if name in ("whose", "counts"):
                continue
            label = f"meter:{module.whose}.{name}" if quantity is not None else label
        yield Value(name=label, amount=amount, quantity=quantity, scope=scope)


def _meaning(module: Any, name: str, label: str) -> tuple[Quantity | None, Scope | None]:
    if label in _FIXED:
        return _FIXED[label]
    if label == "tree_limits.max_concurrent":
        return "children", module.concurrency
    if label == "iteration_budget.max_iterations":
        apart = module.whose == "node" and module.max_child_iterations is not None
        return module.counts, "root" if apart else module.whose
    if label == "iteration_budget.max_child_iterations":
        return module.counts, "child"
    if name not in _CHANNELS:
        return None, None
    period: Scope = "period" if module.kind in ("period_budget", "durable_account") else "tree"
    return _CHANNELS[name], getattr(module, "whose", period)


def _changed(spec: Any) -> Iterator[tuple[str, Any]]:
    for field in fields(spec):
        amount = getattr(spec, field.name)
        usual = field.default_factory() if field.default_factory is not MISSING else field.default
        if field.name not in ("kind", "observer", "name") and amount is not None and amount != usual:
            yield field.name, amount

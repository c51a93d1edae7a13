"""Policies as data: what experiments and exports hold, and the presets that build them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from harness_lab.clock import Time, instant, ns
from harness_lab.errors import InputError
from harness_lab.floors import FloorTable
from harness_lab.policies.at_limit import AtLimit, ComposedAtLimit, check_at_limit
from harness_lab.policies.compose import Composed
from harness_lab.policies.durable_account import DurableAccountSpec
from harness_lab.policies.hard_cap import CallHoldsSpec
from harness_lab.policies.iteration_budget import Counts, IterationBudgetSpec, Whose
from harness_lab.policies.opened import OpenPolicy, Scope, check_order, name_run, scope_of
from harness_lab.policies.period_budget import PeriodBudgetSpec
from harness_lab.policies.reservation_pool import Grants, Inside, ReservationPoolSpec
from harness_lab.policies.runtime_floors import RuntimeFloorsSpec
from harness_lab.policies.shared_ledger import SharedLedgerSpec, UnknownUsage
from harness_lab.policies.tree_limits import Concurrency, OnTimeout, TimeoutFrom, TreeLimitsSpec

if TYPE_CHECKING:
    from harness_lab.budget._pots import Cap
    from harness_lab.budget.durable_store import Synchronous
    from harness_lab.budget.period import Carry
    from harness_lab.budget.windows import Every
    from harness_lab.floors.preflight import Stale
    from harness_lab.policies.protocol import ModuleSpec

_START = Time(0)

MODULES: dict[str, type[Any]] = {
    "shared_ledger": SharedLedgerSpec,
    "reservation_pool": ReservationPoolSpec,
    "tree_limits": TreeLimitsSpec,
    "iteration_budget": IterationBudgetSpec,
    "runtime_floors": RuntimeFloorsSpec,
    "period_budget": PeriodBudgetSpec,
    "durable_account": DurableAccountSpec,
    "call_holds": CallHoldsSpec,
}
"""Module specifications by kind."""
ADDED: dict[str, type[Any]] = {}
"""Kinds that a storey above adds when it is imported: somebody else's limiters, which no schema of ours promises."""
_ABOVE: Final = {"adapter": "harness_lab.adapters"}
"""Those kinds, and what is imported once one of them is named."""


def module_kinds(named: Iterable[object] = ()) -> dict[str, type[Any]]:
    """Return module specifications by kind, with those of a storey above of which one is named."""
    for kind in named:
        if isinstance(kind, str) and kind in _ABOVE and kind not in ADDED:
            import_module(_ABOVE[kind])
    return {**MODULES, **ADDED}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A policy as data: frozen and serialisable; state lives only in what :meth:`start` makes.

    Parameters
    ----------
    name : str
        Name in tables and pictures.
    modules : tuple of ModuleSpec
        In the order in which shortfalls are reported. Empty: nothing is limited.
    max_wait_s : float or None
        How long an ask may wait for what only time can give, seconds; None: it is refused at once.
    at_limit : AtLimit or None
        What happens at a limit, and before it; None: the node stops.

    Raises
    ------
    InputError
        If waiting could deadlock, or two modules are of one kind.
    """

    name: str
    modules: tuple[ModuleSpec, ...] = ()
    max_wait_s: float | None = None
    at_limit: AtLimit | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError("name of the policy", expected="some text", got=self.name)
        check_order(self.modules)
        if self.at_limit is not None:
            check_at_limit(self.at_limit, self.modules)
        kinds = [module.kind for module in self.modules if not getattr(module, "many", False)]
        if len(set(kinds)) < len(kinds):
            raise InputError("modules", expected="at most one of a kind", got=kinds)
        if self.max_wait_s is None:
            return
        if ns(self.max_wait_s, what="max_wait_s") < 0:
            raise InputError("max_wait_s", expected="seconds >= 0 or None", got=self.max_wait_s)
        for module in self.modules:
            if isinstance(module, TreeLimitsSpec) and module.may_deadlock_when_queued:
                raise InputError(
                    "max_wait_s",
                    expected="concurrency='parent', lend=True or max_depth=1 with a queue",
                    got=f"concurrency='tree', max_depth={module.max_depth}",
                    hint="A parent keeps its slot while it waits, so every slot may be held by one that waits",
                )

    def start(self, run: str = "", groups: Mapping[str, str] | None = None, now: Time = _START) -> Composed:
        """Make a policy with fresh state for one run.

        Raises
        ------
        InputError
            If its state outlives a run: :meth:`open` it once, and start runs from that.
        """
        if self.scope != "run":
            hint = "policy = spec.open(); policy.start(run, groups, now) for each run"
            raise InputError("policy", expected="one whose state lasts one run", got=self.scope, hint=hint)
        instant("now", now)
        wait = self.wait_ns
        modules = [module.build(now) for module in self.modules]
        name_run(modules, run)
        if self.at_limit is not None:
            return ComposedAtLimit(modules, max_wait_ns=wait, at_limit=self.at_limit)
        return Composed(modules, max_wait_ns=wait)

    @property
    def wait_ns(self) -> int | None:
        """How long an ask may wait, nanoseconds; None: it is refused at once."""
        wait = None if self.max_wait_s is None else ns(self.max_wait_s)
        tree = self.module("tree_limits")
        if wait is not None and tree is not None and tree.timeout_from == "arrival" and tree.timeout_s is not None:
            wait = min(wait, ns(tree.timeout_s))  # nobody waits for a start that would be too late
        return wait

    @property
    def scope(self) -> Scope:
        """How long the state lasts: one run, or the widest scope of its modules."""
        return scope_of(self.modules)

    def open(self) -> OpenPolicy:
        """Make or connect to the state that outlives a run; runs started from it share that state."""
        return OpenPolicy(self)

    def module(self, kind: str) -> Any:
        """Return the module specification of a kind, None without one."""
        return next((module for module in self.modules if module.kind == kind), None)

    def with_module(self, kind: str, **changes: Any) -> PolicySpec:
        """Return a copy in which parameters of one module are changed.

        Raises
        ------
        InputError
            If the policy has no module of that kind, or the module no such parameter.
        """
        found = self.module(kind)
        if found is None:
            raise InputError("module", expected=f"one of {[m.kind for m in self.modules]}", got=kind)
        known = {f.name for f in fields(found)} - {"kind"}
        if unknown := sorted(set(changes) - known):
            raise InputError(f"parameters of {kind}", expected=f"some of {', '.join(sorted(known))}", got=unknown)
        changed = replace(found, **changes)
        return replace(self, modules=tuple(changed if m is found else m for m in self.modules))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON or TOML; :meth:`from_dict` reads them back."""
        modules = [{k: v for k, v in module.to_dict().items() if v is not None} for module in self.modules]
        wait = {} if self.max_wait_s is None else {"max_wait_s": self.max_wait_s}
        at_limit = {} if self.at_limit is None else {"at_limit": self.at_limit.to_dict()}
        return {"name": self.name, "modules": modules} | wait | at_limit

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PolicySpec:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If a module or one of its parameters does not exist, or a value is not allowed.
        """
        unknown = sorted(set(data) - {"name", "modules", "max_wait_s", "at_limit"})
        if unknown or "name" not in data:
            raise InputError(
                "policy", expected="name, modules and maybe max_wait_s, at_limit", got=unknown or sorted(data)
            )
        entries = data.get("modules", ())
        if not isinstance(entries, (list, tuple)):
            raise InputError("modules", expected="a list of modules", got=entries)
        modules = tuple(_module(entry) for entry in entries)
        at_limit = None if data.get("at_limit") is None else AtLimit.from_dict(data["at_limit"])
        return cls(name=data["name"], modules=modules, max_wait_s=data.get("max_wait_s"), at_limit=at_limit)


def _module(entry: Mapping[str, Any]) -> ModuleSpec:
    kind = entry.get("kind") if isinstance(entry, Mapping) else entry
    known_kinds = module_kinds([kind])
    if not isinstance(kind, str) or kind not in known_kinds:
        raise InputError("kind of module", expected=f"one of {', '.join(known_kinds)}", got=kind)
    made = known_kinds[kind]
    values = {key: value for key, value in entry.items() if key != "kind"}
    known = {f.name for f in fields(made)} - {"kind", "observer"}
    unknown = sorted(set(values) - known)
    if unknown:
        raise InputError(f"parameters of {kind}", expected=f"some of {', '.join(sorted(known))}", got=unknown)
    if "table" in values:
        values["table"] = FloorTable.from_dicts(values["table"])
    required = [f.name for f in fields(made) if f.default is MISSING and f.default_factory is MISSING]
    missing = [name for name in required if name not in values]
    if missing:
        raise InputError(f"parameters of {kind}", expected=", ".join(required), got=sorted(values))
    spec: ModuleSpec = made(**values)
    return spec


def unlimited(*, name: str = "unlimited") -> PolicySpec:
    """Return a policy that limits nothing: what would have happened without one."""
    return PolicySpec(name=name)


def shared_ledger(
    max_steps: int,
    max_cost_usd: float | None = None,
    max_seconds: float | None = None,
    *,
    unknown_usage: UnknownUsage = "release",
    name: str = "shared ledger",
) -> PolicySpec:
    """Return one ledger for the tree, checked before each call and charged after it (:class:`SharedLedgerSpec`)."""
    spec = SharedLedgerSpec(
        max_steps=max_steps, max_cost_usd=max_cost_usd, max_seconds=max_seconds, unknown_usage=unknown_usage
    )
    return PolicySpec(name=name, modules=(spec,))


def reservation_pool(
    *,
    calls: int | None = None,
    input: int | None = None,
    tokens: int | None = None,
    fresh: int | None = None,
    cost_usd: float | None = None,
    inside: Inside = "stop",
    grants: Grants = "as-asked",
    unknown_usage: UnknownUsage = "release",
    floors: FloorTable | None = None,
    name: str = "reservation pool",
) -> PolicySpec:
    """Return a pool that holds each child's ask at spawn and refunds at close (:class:`ReservationPoolSpec`).

    With `floors`, an ask is held against its path's floor too; both answers are in the refusal.
    """
    pool = ReservationPoolSpec(
        calls=calls,
        input=input,
        tokens=tokens,
        fresh=fresh,
        cost_usd=cost_usd,
        inside=inside,
        grants=grants,
        unknown_usage=unknown_usage,
    )
    gate: tuple[ModuleSpec, ...] = () if floors is None else (RuntimeFloorsSpec(table=floors),)
    return PolicySpec(name=name, modules=(*gate, pool))


def tree_limits(
    max_depth: int | None = None,
    max_concurrent: int | None = None,
    max_calls: int | None = None,
    timeout_s: float | None = None,
    *,
    concurrency: Concurrency = "tree",
    lend: bool = False,
    on_timeout: OnTimeout = "cancel",
    timeout_from: TimeoutFrom = "start",
    give_back: bool = True,
    max_wait_s: float | None = None,
    name: str = "tree limits",
) -> PolicySpec:
    """Return limits on depth, children at once, starts and time of children (:class:`TreeLimitsSpec`)."""
    spec = TreeLimitsSpec(
        max_depth=max_depth,
        max_concurrent=max_concurrent,
        max_calls=max_calls,
        timeout_s=timeout_s,
        concurrency=concurrency,
        lend=lend,
        on_timeout=on_timeout,
        timeout_from=timeout_from,
        give_back=give_back,
    )
    return PolicySpec(name=name, modules=(spec,), max_wait_s=max_wait_s)


def iteration_budget(
    max_iterations: int,
    *,
    max_child_iterations: int | None = None,
    max_refunds: int | Literal["unbounded"] | None = None,
    counts: Counts = "calls",
    whose: Whose = "node",
    name: str = "iteration budget",
) -> PolicySpec:
    """Return a count of model or tool calls with bounded refunds (:class:`IterationBudgetSpec`)."""
    spec = IterationBudgetSpec(
        max_iterations=max_iterations,
        max_child_iterations=max_child_iterations,
        max_refunds=max_refunds,
        counts=counts,
        whose=whose,
    )
    return PolicySpec(name=name, modules=(spec,))


def runtime_floors(table: FloorTable, *, stale: Stale = "warn", name: str = "runtime floors") -> PolicySpec:
    """Return floors alone (:class:`RuntimeFloorsSpec`)."""
    return PolicySpec(name=name, modules=(RuntimeFloorsSpec(table=table, stale=stale),))


def period_budget(
    *,
    calls: int | None = None,
    input: int | None = None,
    tokens: int | None = None,
    fresh: int | None = None,
    cost_usd: float | None = None,
    by: str | tuple[str, ...] = (),
    every: Every | None = None,
    rolling_s: float | None = None,
    zone: str = "UTC",
    day: int = 1,
    carry: Carry = "none",
    carry_windows: int = 1,
    cap: Cap = "soft",
    unknown_usage: UnknownUsage = "release",
    name: str = "",
) -> PolicySpec:
    """Return what a group may use in a rolling or calendar window (:class:`PeriodBudgetSpec`); opened, then started."""
    spec = PeriodBudgetSpec(
        calls=calls,
        input=input,
        tokens=tokens,
        fresh=fresh,
        cost_usd=cost_usd,
        by=by,
        every=every,
        rolling_s=rolling_s,
        zone=zone,
        day=day,
        carry=carry,
        carry_windows=carry_windows,
        cap=cap,
        unknown_usage=unknown_usage,
        name=name,
    )
    return PolicySpec(name=spec.name, modules=(spec,))


def durable_account(
    path: str,
    *,
    calls: int | None = None,
    input: int | None = None,
    tokens: int | None = None,
    fresh: int | None = None,
    cost_usd: float | None = None,
    periods: tuple[PolicySpec, ...] = (),
    hold_s: float = 900.0,
    unknown_usage: Literal["charge-hold", "release"] = "charge-hold",
    if_missing: Literal["refuse", "create"] = "refuse",
    synchronous: Synchronous = "full",
    busy_s: float = 5.0,
    name: str = "durable account",
) -> PolicySpec:
    """Return one cap for many processes, in a file (:class:`DurableAccountSpec`); last in a composition.

    `periods` are policies made by :func:`period_budget`: they are kept in the same file.
    """
    spec = DurableAccountSpec(
        path=path,
        calls=calls,
        input=input,
        tokens=tokens,
        fresh=fresh,
        cost_usd=cost_usd,
        periods=tuple(module for policy in periods for module in policy.modules),  # type: ignore[misc]
        hold_s=hold_s,
        unknown_usage=unknown_usage,
        if_missing=if_missing,
        synchronous=synchronous,
        busy_s=busy_s,
    )
    return PolicySpec(name=name, modules=(spec,))


def compose(*policies: PolicySpec, name: str | None = None, at_limit: AtLimit | None = None) -> PolicySpec:
    """Return one policy of the modules of many, in order; waiting is bounded by the shortest bound named.

    What happens at a limit is `at_limit`, else what the first policy says that says anything.
    """
    named = [policy.at_limit for policy in policies if policy.at_limit is not None]
    waits = [policy.max_wait_s for policy in policies if policy.max_wait_s is not None]
    modules = tuple(module for policy in policies for module in policy.modules)
    label = name if name is not None else " + ".join(policy.name for policy in policies)
    axis = at_limit if at_limit is not None else next(iter(named), None)
    return PolicySpec(name=label, modules=modules, max_wait_s=min(waits, default=None), at_limit=axis)

"""Workload, provider and policy as the arrays that the fast engine reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from harness_lab import draws
from harness_lab.clock import NS_PER_S, ns
from harness_lab.providers.tables import Table
from harness_lab.simulate.fast import layout as at
from harness_lab.usage import optional_nusd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from harness_lab.policies import PolicySpec
    from harness_lab.providers import MockProvider, ModelProfile
    from harness_lab.simulate.workload import AgentProfile, Spawn, Workload
    from harness_lab.stats.distributions import Distribution

    Ints = NDArray[np.int64]


class Constants(NamedTuple):
    """What a simulation reads and never writes.

    Attributes
    ----------
    values : ndarray of int64
        See :mod:`harness_lab.simulate.fast.layout`.
    tables : ndarray of int64
        (tables, 6, 4096): quantiles and their distances, of the body and of the two end cells.
    agents, models : tuple of str
        Names by number.
    asks : tuple of tuple
        What is asked for a node, by the number of the rule that started it; the root's comes last.
    """

    values: Ints
    tables: Ints
    agents: tuple[str, ...]
    models: tuple[str, ...]
    asks: tuple[tuple[int | None, ...], ...]


class _Tables:
    """Draw tables, each made once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, float], int] = {}
        self._made: list[Any] = []

    def number(self, distribution: Distribution, scale: float = 1.0) -> int:
        key = (repr(distribution.to_dict()), scale)
        if key not in self._numbers:
            self._numbers[key] = len(self._made)
            self._made.append(Table(distribution, scale).cells())
        return self._numbers[key]

    def stacked(self) -> Ints:
        return np.array(self._made, np.int64)


def constants(workload: Workload, provider: MockProvider) -> Constants:
    """Make the constants of a world; those of a policy are put in by :func:`with_policy`."""
    tables = _Tables()
    agents, models = tuple(workload.agents), tuple(provider.models)
    rules = [rule for name in agents for rule in workload.agents[name].spawns]
    tiers: list[int] = []
    model_rows = [_model(provider, name, tables, tiers) for name in models]
    afters: list[int] = []
    agent_rows, first = [], 0
    for name in agents:
        profile = workload.agents[name]
        agent_rows.append(_agent(profile, models.index(profile.model), first, tables))
        first += len(profile.spawns)
    parts = [[value for row in rows for value in row] for rows in (agent_rows, model_rows)]
    rule_at = at.CONSTANTS + sum(map(len, parts))
    after_at = rule_at + len(rules) * at.RULE_SIZE
    rule_rows = [_rule(rule, agents.index(rule.agent), tables, afters, after_at) for rule in rules]
    head = np.zeros(at.CONSTANTS, np.int64)
    head[at.ROOT] = agents.index(workload.root)
    head[at.ROOT_ASK : at.ROOT_ASK + 5] = _ints(workload.budget)
    head[at.AGENTS] = at.CONSTANTS
    head[at.MODELS] = at.CONSTANTS + len(parts[0])
    head[at.RULES] = rule_at
    head[at.TIERS] = after_at + len(afters)
    body = [*parts[0], *parts[1], *(value for row in rule_rows for value in row), *afters, *tiers]
    asks = (*(rule.budget for rule in rules), workload.budget)
    return Constants(np.concatenate([head, np.array(body, np.int64)]), tables.stacked(), agents, models, asks)


def with_policy(values: Ints, policy: PolicySpec) -> Ints:
    """Return constants with the parameters of a policy in them."""
    made = values.copy()
    wait = policy.start()._max_wait
    made[at.MAX_WAIT] = -1 if wait is None else wait
    put = {"shared_ledger": _ledger, "reservation_pool": _pool, "tree_limits": _tree}
    kinds = {"shared_ledger": at.LEDGER_KIND, "reservation_pool": at.POOL_KIND, "tree_limits": at.TREE_KIND}
    for place, module in enumerate(policy.modules):
        made[at.MODULES + place] = kinds[module.kind]
        put[module.kind](made, module)
    return made


def _ledger(made: Ints, spec: Any) -> None:
    made[at.LEDGER_STEPS] = spec.max_steps
    made[at.LEDGER_COST] = _or_none(optional_nusd(spec.max_cost_usd))
    made[at.LEDGER_TIME] = -1 if spec.max_seconds is None else ns(spec.max_seconds)
    made[at.LEDGER_HOLDS] = spec.unknown_usage == "charge-hold"


def _pool(made: Ints, spec: Any) -> None:
    made[at.POOL : at.POOL + 5] = _ints(spec.limits())
    made[at.POOL_HOLDS] = spec.unknown_usage == "charge-hold"
    made[at.POOL_RECORDS] = spec.inside == "record"


def _tree(made: Ints, spec: Any) -> None:
    limits = spec.limits()
    made[at.MAX_DEPTH] = _or_none(limits.max_depth)
    made[at.MAX_CONCURRENT] = _or_none(limits.max_concurrent)
    made[at.MAX_STARTS] = _or_none(limits.max_calls)
    made[at.TIMEOUT] = -1 if limits.timeout_s is None else ns(limits.timeout_s)
    made[at.PER_PARENT] = spec.concurrency == "parent"
    made[at.LENDS] = spec.lend
    made[at.FROM_ARRIVAL] = spec.timeout_from == "arrival"
    made[at.GIVES_BACK] = spec.give_back


def _agent(profile: AgentProfile, model: int, first_rule: int, tables: _Tables) -> Sequence[int]:
    row = [0] * at.AGENT_SIZE
    row[at.AGENT_MODEL] = model
    row[at.AGENT_CALLS] = tables.number(profile.calls)
    row[at.AGENT_STARTUP] = tables.number(profile.startup_tokens)
    row[at.AGENT_GROWTH] = tables.number(profile.growth_tokens)
    row[at.AGENT_TOOL] = tables.number(profile.tool_s, NS_PER_S)
    row[at.AGENT_BACKOFF] = ns(profile.backoff_s)
    row[at.AGENT_FAILURE] = draws.chance(profile.failure_rate)
    row[at.AGENT_SHARED] = profile.shared_tokens
    row[at.AGENT_ATTEMPTS] = profile.max_attempts
    row[at.AGENT_RULE] = first_rule
    row[at.AGENT_RULES] = len(profile.spawns)
    return row


def _model(provider: MockProvider, name: str, tables: _Tables, tiers: list[int]) -> Sequence[int]:
    profile: ModelProfile = provider.models[name]
    priced = provider.prices.models.get(name, ())
    row = [0] * at.MODEL_SIZE
    row[at.MODEL_OUTPUT] = tables.number(profile.output_tokens)
    row[at.MODEL_LATENCY] = tables.number(profile.latency_s, NS_PER_S)
    row[at.MODEL_NS_PER_TOKEN] = round(profile.seconds_per_output_token * NS_PER_S)
    row[at.MODEL_ERROR] = draws.chance(profile.error_rate)
    row[at.MODEL_UNREPORTED] = draws.chance(profile.unreported_rate)
    row[at.MODEL_READ_PPM] = round(profile.cache_share * 1_000_000)
    row[at.MODEL_WRITE_PPM] = round(profile.cache_write_share * 1_000_000)
    row[at.MODEL_MAX_OUTPUT] = profile.max_output_tokens
    row[at.MODEL_TIER] = len(tiers)
    row[at.MODEL_TIERS] = len(priced)
    for tier in priced:
        tiers += [tier.above_input_tokens, *tier.rates()]
    return row


def _rule(rule: Spawn, agent: int, tables: _Tables, afters: list[int], after_at: int) -> Sequence[int]:
    row = [0] * at.RULE_AFTER
    row[at.RULE_AGENT] = agent
    row[at.RULE_CHANCE] = draws.chance(rule.chance)
    if isinstance(rule.count, int):
        row[at.RULE_MOST], row[at.RULE_COUNT] = rule.count, -1
    else:
        row[at.RULE_MOST] = Table(rule.count).draw(draws.MASK)
        row[at.RULE_COUNT] = tables.number(rule.count)
    named = (after_at + len(afters), -1 if rule.after is None else len(rule.after))
    afters.extend(rule.after or ())
    return [*row, *named, *_ints(rule.budget)]


def _ints(values: Sequence[int | None]) -> list[int]:
    return [_or_none(value) for value in values]


def _or_none(value: int | None) -> int:
    return -1 if value is None else value

"""The one table of cases that we deliberately answer otherwise, or that do not apply to a library in Python.

A row covers cases by what they say, not by what they are called: `id` is its example among the cases that come with the
package. ``docs/deviations.md`` lists the same ids, and a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.conformance.shapes import Case

Kind = Literal["deviating", "not_applicable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One row of the table.

    Parameters
    ----------
    area, id : str
        The area, and a case that comes with the package and is covered.
    reason : str
        Why ours is another answer.
    applies : callable
        Whether a case is one of those that the row is about.
    differs : frozenset of str
        Names of the answer in which ours may be another; a difference in any other name is a failure.
    kind : {"deviating", "not_applicable"}
        Whether ours differs, or there is nothing to ask.
    how : callable
        Whether what came instead is what the row says: a refusal that names the field, and not some other answer.
    """

    area: str
    id: str
    reason: str
    applies: Callable[[Case], bool]
    differs: frozenset[str] = frozenset()
    kind: Kind = "deviating"
    how: Callable[[Mapping[str, Any]], bool] = lambda _found: True


def _row(
    area: str,
    id: str,
    reason: str,
    applies: Callable[[Case], bool],
    *differs: str,
    how: Callable[[Mapping[str, Any]], bool] = lambda _found: True,
) -> Deviation:
    return Deviation(area=area, id=id, reason=reason, applies=applies, differs=frozenset(differs), how=how)


def _refused(*fields: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether ours is a refusal of one of some fields."""
    return lambda found: str(found.get("raises", "")).startswith(tuple(f"InputError: {field}" for field in fields))


def _aside(area: str, id: str, reason: str, applies: Callable[[Case], bool]) -> Deviation:
    return Deviation(area=area, id=id, reason=reason, applies=applies, kind="not_applicable")


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _negative(values: Any) -> bool:
    return any(_number(value) and value < 0 for value in values)


def _not_finite(values: Any) -> bool:
    """Whether a value is no finite number; in a file of cases it may be written as text."""
    floats = [float(value) for value in values if _number(value) or value in ("nan", "inf", "-inf")]
    return any(not isfinite(value) for value in floats)


def _loose(config: Mapping[str, Any]) -> bool:
    """Whether a budget's config has a value that is of another kind than its limit."""
    limits = [config.get(name) for name in ("max_steps", "max_cost_usd", "max_seconds")]
    cut = [config.get(name) for name in ("max_steps", "max_seconds")]
    odd = any(value is not None and not _number(value) for value in limits)
    return odd or any(isinstance(value, float) and not value.is_integer() for value in cut)


def _mode(case: Case) -> Mapping[str, Any]:
    """Return the mode that a case resolves."""
    entry: Mapping[str, Any] = case["given"]["config"]["modes"][case["when"]["mode"]]
    return entry if case["area"] == "mode" else {}


def _odd_list(case: Case, *names: str) -> bool:
    """Whether one of a mode's lists is no list."""
    return any(name in _mode(case) and not isinstance(_mode(case)[name], list) for name in names)


def _odd_entry(case: Case) -> bool:
    """Whether a list of a mode has an entry that is no name."""
    lists = [value for value in _mode(case).values() if isinstance(value, list)]
    return any(not isinstance(entry, str) for entries in lists for entry in entries)


def _drifts(values: Any) -> bool:
    """Whether a sum of binary fractions is another than the exact one."""
    total, exact = 0.0, 0
    for value in values:
        total += value
        exact += round(value * 10**9)
    return total != exact / 10**9


PRISM: Final = "prism-budgets"
LIMITS: Final = ("max_steps", "max_cost_usd", "max_seconds")
MALFORMED: Final = ("tools", "skills", "requires_approval", "subagents", "error_code", "message")

PRISM_ROWS: Final = (
    _row(PRISM, "LEDG-16", "a negative count or cost, or one not finite, is refused: as a zero it hides a fault",
         lambda c: c["area"] == "ledger" and (_negative(c["when"]["values"]) or _not_finite(c["when"]["values"])),
         "raises", "steps", "cost_usd", "unmetered_runs", "exhaustion", how=_refused("cost_usd", "steps")),
    _row(PRISM, "LEDG-18", "money is counted in whole nano-dollars, so ten dimes are a dollar and reach the cap",
         lambda c: c["area"] == "ledger" and _drifts(c["when"]["values"]), "cost_usd", "exhaustion"),
    _row(PRISM, "LEDG-29", "an empty cancel reason reads cancelled: a stop always has a reason to show",
         lambda c: c["area"] == "ledger" and "" in c["when"]["reasons"], "exhaustion"),
    _row(PRISM, "BCFG-06", "a value of another kind is a mistake in the config, not to be guessed; seconds are not cut",
         lambda c: c["area"] == "budget_config" and _loose(c["given"]["config"]),
         "raises", "max_steps", "max_cost_usd", "max_seconds",
         how=lambda found: found.keys() == {"max_seconds"} or _refused(*LIMITS)(found)),
    _row(PRISM, "BCFG-08", "a negative limit, or one that is not finite, is refused: it cannot be meant",
         lambda c: c["area"] == "budget_config"
         and (_negative(c["given"]["config"].values()) or _not_finite(c["given"]["config"].values())),
         "raises", "max_steps", "max_cost_usd", "max_seconds", how=_refused(*LIMITS)),
    _row(PRISM, "NEST-21-OLD", "the remainder formula was a fault and is repaired upstream; the child has what is left",
         lambda c: c["area"] == "nested_budget_superseded", "max_steps", "exhaustion"),
    _row(PRISM, "SUBD-06", "an empty scope means the name: an empty address part lets children share a conversation",
         lambda c: c["area"] == "subagent_declaration" and c["given"]["config"]["scope"] == "", "scope"),
    _row(PRISM, "MODE-17", "an entry of a list that is no name is malformed: dropped, a gate on it would vanish",
         _odd_entry, *MALFORMED),
    _row(PRISM, "MODE-18", "a tool list that is no list is malformed, not an empty one",
         lambda c: c["runtimes"] != ["php"] and _odd_list(c, "tools", "skills"), *MALFORMED),
    _row(PRISM, "MODE-19", "the message says which list: one line should be enough to repair it",
         lambda c: c["runtimes"] == ["php"] and _odd_list(c, "tools", "skills"), "message"),
    _row(PRISM, "MODE-20", "an approval list that is no list is malformed: read as empty, every gate would vanish",
         lambda c: c["runtimes"] != ["php"] and _odd_list(c, "requires_approval"), *MALFORMED),
    _row(PRISM, "RUN-12", "a failed call may have been billed: it counts as a step, and its cost is unknown",
         lambda c: c["area"] == "runtime" and "client_raises" in c["given"], "ledger_steps"),
    _row(PRISM, "RUN-18", "the run record's status is exhausted: completed hides that a limit cut it off",
         lambda c: c["area"] == "runtime" and c["then"]["finish_reason"] == "budget_exhausted", "run_status"),
    _row(PRISM, "RUN-30", "an empty tool list offers none, as in the other two languages",
         lambda c: c["area"] == "runtime" and c["given"]["requested_tools"] == [], "tools"),
    _row(PRISM, "SUBR-05", "the parent's model gets the error's class: its text may hold anything; the call counts",
         lambda c: c["area"] == "subagent_run" and "client_raises" in c["given"], "text", "ledger_steps"),
    _row(PRISM, "SUBR-17", "a child that could make no call is refused before it has a session and a prompt",
         lambda c: c["area"] == "subagent_run" and c["given"]["subagent_budget"]["max_steps"] == 0, "text"),
    _row(PRISM, "CAP-01", "a run that its cap stopped is exhausted, not failed: no retry would help it",
         lambda c: c["when"]["op"] == "before_each_model_call", "run_failure_reason"),
    _row(PRISM, "CAP-10", "an observer is told the call's place in its run; a settlement names its call",
         lambda c: c["when"]["op"] == "observer_contract", "reserving_args", "settled_args", "settlement_fields"),
)  # fmt: skip

POOL: Final = "tangle-pool-and-floors"
PLACES: Final = range(64)
"""Operations of one case, counted, in which a row may say that ours answers otherwise."""


def _ops(case: Case, name: str) -> list[Mapping[str, Any]]:
    return [op for op in case["when"] if op["op"] == name] if case["area"] == "pool" else []


def _says_yes(case: Case) -> bool:
    """Whether a use carries a flag that says that its tokens are known."""
    spends = [op["spent"] for name in ("observe", "reconcile") for op in _ops(case, name)]
    return any(spent.get("tokensKnown") is True or spent["tokens"].get("tokensKnown") is True for spent in spends)


def _counts_refused(case: Case) -> bool:
    """Whether a case counts reservations that are open beside one that was refused."""
    checks = [op for op in _ops(case, "check") if "openReservations" in op]
    return any("refused" in op.get("waiters", {}).values() for op in checks)


def _short_and_below(case: Case) -> bool:
    given, asked = case["given"], case["when"][0]["budget"]["maxTokens"]
    return bool(case["area"] == "floor" and given["root"]["maxTokens"] < asked < given["floor"])


TANGLE_ROWS: Final = (
    _row(POOL, "pool-root-invalid-4", "whole numbers are exact beyond 2^53 here",
         lambda c: c["area"] == "pool"
         and any(_number(v) and 2**53 - 1 < v <= 2**62 for v in c["given"]["root"].values()),
         "throws", "field"),
    _row(POOL, "charge-malformed-spend-1", "a flag that says that a count is known says what leaving it out says",
         _says_yes, "readout.tokensLeft", *(f"op_results[{i}].throws" for i in PLACES)),
    _row(POOL, "wait-refused-after-last-settles-short", "a refused ask is no reservation: nothing of it stays open",
         _counts_refused, *(f"op_results[{i}].check.openReservations" for i in PLACES)),
    _row(POOL, "cost-negative-tokens", "a negative count is refused with one line: it cannot be meant",
         lambda c: c["area"] == "cost" and _negative([c["given"]["inputTokens"]]),
         "raises", "usd", "usdKnown", "provenance", how=_refused("input_fresh")),
    _row(POOL, "floor-checked-after-pool",
         "both answers are given, the floor's first: a pool that is short asks for less, which never helps here",
         _short_and_below, "reason"),
    _row(POOL, "leak-no-winner-still-returns-tree",
         "a leak has the name that its driver gave the child; the case names it in its answer alone",
         lambda c: c["area"] == "never-settled" and "assignment" in c["then"]["leak"], "leak.assignment"),
    _row(POOL, "deadline-teardown-unacknowledged",
         "at the time limit whoever waits is told; a child that does not end keeps its slot until it has",
         lambda c: c["area"] == "deadline" and c["given"]["teardown"] == "never answers", "raises"),
    _row(POOL, "slots-force-recovered",
         "work that a restart finds stands in line for a slot: a limit that a restart can break is none",
         lambda c: c["area"] == "concurrency" and any(op.get("force") for op in c["when"]), "working"),
)  # fmt: skip

TREES: Final = "tree-limits"


def _tree_op(case: Case) -> str:
    return str(case["when"]["op"])


TREE_ROWS: Final = (
    _row(TREES, "a-harness-agent-own-tree", "a harness that runs as a child stands under the outer limits",
         lambda c: _tree_op(c) == "inner harness starts its own children", "inner_children_counted_by_outer"),
    _row(TREES, "a-router-children-unlimited", "children that a router picks are counted and refused like any other",
         lambda c: _tree_op(c).startswith("router picks"), "ran", "refused"),
    _row(TREES, "a-code-start-ignores-own-refusal", "a start from code that a limit refuses is refused",
         lambda c: _tree_op(c) == "ctx.agents.run(agent)", "runs"),
    _row(TREES, "a-code-start-no-timer", "a child that code started has the same time limit",
         lambda c: _tree_op(c).startswith("ctx.agents.run(agent that takes"), "completed"),
    _row(TREES, "a-tool-timeout-promise-child-detached",
         "what runs and spends is counted as running: the slot is free once the work has ended",
         lambda c: bool(c["given"]["child"]["ignores_abort"]) and c["given"]["child"]["kind"] == "promise",
         "slot_free_at_ms"),
    _aside(TREES, "a-tool-nested-plain-chat-escapes", "a second, imported chat() of another runtime",
           lambda c: _tree_op(c) == "child starts a grandchild" and "imported chat()" in c["given"]["child"]),
)  # fmt: skip

ITERATIONS: Final = "iteration-budget"


def _uses_the_last_unit(case: Case) -> bool:
    turns = sum(source != "programmatic" for source in case["when"]["charge"])
    return bool(turns >= case["given"]["remaining"])


def _too_many_in_a_reply(case: Case) -> bool:
    calls = case["when"]["tool_calls_in_one_reply"]
    return bool(calls.count("delegate_task") > case["given"]["max_concurrent_children"])


ITERATION_ROWS: Final = (
    _row(ITERATIONS, "c-budget-negative", "a negative budget is refused: it cannot be meant",
         lambda c: _negative([c["given"]["max_total"]]), "raises", "results", "used", "remaining"),
    _row(ITERATIONS, "c-skill-last-unit-raises", "N units allow N calls: the charge that uses the last one is no error",
         _uses_the_last_unit, "results", "remaining"),
    _row(ITERATIONS, "c-turn-cap-on-delegate-calls",
         "a batch of more children than may run is refused whole: a dropped call looks like one that ran",
         _too_many_in_a_reply, "raises", "kept", "dropped_silently"),
    _row(ITERATIONS, "c-deleg-child-hit-cap-with-summary", "the status is exhausted: completed hides the limit",
         lambda c: c["given"]["child_result"]["completed"] is False, "results"),
    _aside(ITERATIONS, "c-code-sandbox-limits", "a list of another system's constants",
           lambda c: _tree_op(c) == "defaults of execute_code"),
    _aside(ITERATIONS, "c-loop-refund-sites", "a list of places in another system's code",
           lambda c: _tree_op(c) == "list refunds"),
)  # fmt: skip

DELEGATION_ROWS: Final = (
    _row("delegation", "b-ledger-float-drift", "money is whole nano-dollars: ten charges of 0.1 reach a limit of 1.0",
         lambda c: _tree_op(c) == "record" and _drifts(c["when"]["costs"]), "after_each"),
)  # fmt: skip

PUBLIC: Final = "public-cases"


def _operation(name: str) -> Callable[[Case], bool]:
    return lambda case: _tree_op(case) == name


PUBLIC_ROWS: Final = (
    _row(PUBLIC, "A-50", "a missing split leaves the price unknown for a limit; repriced records have a default rate",
         _operation("price cache writes"), "without_the_split"),
    _aside(PUBLIC, "A-14-open", "nothing is admitted that could not be checked: there is no way to fail open",
           _operation("fail open")),
    _aside(PUBLIC, "A-20-estimated", "no estimate stands in for usage that was not reported: it stays unknown",
           _operation("estimate usage")),
    _aside(PUBLIC, "A-51-marginal", "a tier reprices the whole request, as every price list that is read here has it",
           _operation("marginal tiers")),
)  # fmt: skip

DEVIATIONS: Final[tuple[Deviation, ...]] = (
    *PRISM_ROWS,
    *TANGLE_ROWS,
    *TREE_ROWS,
    *ITERATION_ROWS,
    *DELEGATION_ROWS,
    *PUBLIC_ROWS,
)
"""Every row; the first that covers a case counts."""

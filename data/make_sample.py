"""Make the synthetic settlements that ship in this folder, and the truth behind them.

Run ``python data/make_sample.py`` to write ``synthetic_runs.parquet``, ``synthetic_runs.calls.parquet``,
``synthetic_messy.csv`` and ``synthetic_truth.json``. Nothing in them was ever recorded; ``sample_world.py`` says how
they come about, and the seed makes them the same each time.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sample_world import (
    MAX_CALLS,
    PATHS,
    REPO_SD,
    RUNS,
    UNKNOWN_USAGE,
    USER_SD,
    AgentPath,
    Ints,
    Tree,
    draw_ceilings,
    draw_needs,
    draw_tree,
    normal,
    stop_at,
)

from harness_lab.settlements import Settlements, context_digest
from harness_lab.settlements.context import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

SEED = 20_260_301
FIRST_START_NS = 1_772_438_400_000_000_000  # 2026-03-02 08:00 UTC
RUN_GAP_NS = 2_160_000_000_000  # one run every 36 minutes
TRUTH_DRAWS = 200_000
TRUTH_BLOCK = 5_000
QUANTILES = (0.5, 0.8, 0.9)
MESSY_ROWS = 60


def path_columns(rng: np.random.Generator, number: int, tree: Tree) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return node and call columns of all nodes of one path."""
    path, mine = PATHS[number], np.flatnonzero(tree.path == number)
    needs = draw_needs(rng, path, tree.effect[mine])
    ceiling_calls, ceiling_cost = draw_ceilings(rng, path, len(mine))
    limit = stop_at(needs, ceiling_calls, ceiling_cost)
    made = np.minimum(needs.ends_at, limit)
    stopped, failed = limit < needs.ends_at, (needs.ends_at <= limit) & needs.fails
    silent = rng.random(len(mine)) < UNKNOWN_USAGE
    happened = np.arange(MAX_CALLS) < made[:, None]
    nodes = {
        "row": mine,
        "agent": np.full(len(mine), path.agent),
        "backend": np.full(len(mine), path.backend),
        "model": np.full(len(mine), path.model),
        "context": np.full(len(mine), context_digest(path.context)),
        "context_fields": np.full(len(mine), canonical(path.context)),
        "outcome": np.select([stopped, failed], ["exhausted", "failed"], "completed"),
        "cause": np.select(
            [stopped, failed & needs.infrastructure, failed], ["limit", "infrastructure", "model"], "none"
        ),
        "stopped_by": np.select([stopped & (ceiling_cost > 0), stopped], ["cost-exhausted", "steps-exhausted"], ""),
        "calls": made,
        "ceiling_calls": ceiling_calls,
        "ceiling_cost": ceiling_cost,
        "silent": silent,
        "delivered": draw_delivery(rng, made, completed=~stopped & ~failed),
        "duration_ns": (needs.latency_ns * happened).sum(axis=1),
        "first_ns": needs.latency_ns[:, 0],
    }
    sums = {"input_fresh": needs.fresh, "cache_read": needs.read, "cache_write": needs.write, "output": needs.output}
    nodes |= {name: (values * happened).sum(axis=1) for name, values in (sums | {"cost_nusd": needs.cost}).items()}
    at, call = np.nonzero(happened)
    calls = {name: values[at, call] for name, values in (sums | {"cost_nusd": needs.cost}).items()}
    waited = np.cumsum(needs.latency_ns, axis=1) - needs.latency_ns
    calls |= {"row": mine[at], "call": call, "duration_ns": needs.latency_ns[at, call], "after_ns": waited[at, call]}
    return nodes, calls | {"unreported": silent[at] & (call == made[at] - 1)}


def draw_delivery(rng: np.random.Generator, made: Ints, *, completed: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Draw whether the result was good: less likely with more calls, never if not completed, 15 % unknown."""
    good = rng.random(len(made)) < np.clip(0.92 - 0.015 * made, 0.3, 1.0)
    known = rng.random(len(made)) >= 0.15
    return or_none(completed & good, known)


def make_settlements(seed: int = SEED) -> Settlements:
    """Return the synthetic settlements with their call rows."""
    rng = np.random.Generator(np.random.PCG64(seed))
    tree = draw_tree(rng)
    parts = [path_columns(rng, number, tree) for number in range(len(PATHS))]
    nodes, calls = (joined([part[which] for part in parts]) for which in (0, 1))
    starts, waits = schedule(tree, nodes)
    return Settlements.from_columns(node_table(tree, nodes, starts, waits), call_table(tree, nodes, calls, starts))


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the parts' columns end to end, ordered by row (and by call within it)."""
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(columns["row"], kind="stable")
    return {name: values[order] for name, values in columns.items()}


def schedule(tree: Tree, nodes: dict[str, Any]) -> tuple[Ints, Ints]:
    """Return start and waiting time of every node: children start after the lead's first call, and it waits."""
    begin = FIRST_START_NS + tree.run * RUN_GAP_NS
    lead_first = nodes["first_ns"][tree.node == 0][tree.run]
    longest = np.zeros(RUNS, dtype=np.int64)
    children = tree.node > 0
    np.maximum.at(longest, tree.run[children], nodes["duration_ns"][children])
    return begin + np.where(children, lead_first, 0), np.where(children, 0, longest[tree.run])


def names(prefix: str, numbers: Ints, digits: int) -> list[str]:
    """Return names such as ``run-0007``."""
    return [f"{prefix}-{number:0{digits}d}" for number in numbers.tolist()]


def or_none(values: NDArray[Any], keep: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Return `values` with None where `keep` is false."""
    known: NDArray[np.object_] = values.astype(object)
    known[~keep] = None
    return known


def node_table(tree: Tree, nodes: dict[str, Any], starts: Ints, waits: Ints) -> dict[str, Any]:
    """Return the columns of the nodes table."""
    known, child = ~nodes["silent"], tree.node > 0
    has_cost, has_calls = nodes["ceiling_cost"] > 0, nodes["ceiling_calls"] > 0
    figures = ("input_fresh", "cache_read", "cache_write", "output", "cost_nusd")
    kept = ("agent", "backend", "model", "context", "context_fields", "outcome", "cause", "calls", "delivered")
    over = (nodes["cost_nusd"] > nodes["ceiling_cost"]) & has_cost
    return {
        **{name: nodes[name] for name in kept},
        **{name: or_none(nodes[name], known) for name in figures},
        "run": names("run", tree.run, 4),
        "record_unit": "node",
        "node": tree.node.astype(str),
        "parent": or_none(np.full(len(child), "0"), child),
        "path": or_none(np.array([f"0.{slot - 1}.0" for slot in tree.node.tolist()]), child),
        "depth": child.astype(np.int64),
        "served_model": nodes["model"],
        "context_inferred": False,
        "stopped_by": or_none(nodes["stopped_by"], nodes["stopped_by"] != ""),
        "overspent": or_none(over, known),
        "starts": np.where(child, 0, np.bincount(tree.run)[tree.run] - 1),
        "cost_source": or_none(np.full(len(child), "simulated"), known),
        "start_ns": starts,
        "duration_ns": nodes["duration_ns"] + waits,
        "wait_ns": waits,
        "ask_calls": or_none(nodes["ceiling_calls"], has_calls & child),
        "ask_cost": or_none(nodes["ceiling_cost"], has_cost & child),
        "ceiling_calls": or_none(nodes["ceiling_calls"], has_calls),
        "ceiling_cost": or_none(nodes["ceiling_cost"], has_cost),
        "usage_known": known,
        "user": names("user", tree.user, 2),
        "repo": names("repo", tree.repo, 2),
        "client_version": "synthetic 1",
        "source": "synthetic, made by data/make_sample.py",
    }


def call_table(tree: Tree, nodes: dict[str, Any], calls: dict[str, Any], starts: Ints) -> dict[str, Any]:
    """Return the columns of the calls table."""
    row, known = calls["row"], ~calls["unreported"]
    figures = ("input_fresh", "cache_read", "cache_write", "output", "cost_nusd")
    return {
        **{name: or_none(calls[name], known) for name in figures},
        "run": names("run", tree.run[row], 4),
        "node": tree.node[row].astype(str),
        "call": calls["call"],
        "attempt": 0,
        "kind": "model",
        "status": "completed",
        "model": nodes["model"][row],
        "served_model": nodes["model"][row],
        "cost_source": or_none(np.full(len(row), "simulated"), known),
        "start_ns": starts[row] + calls["after_ns"],
        "duration_ns": calls["duration_ns"],
    }


def truth(draws: int = TRUTH_DRAWS, seed: int = SEED + 1) -> list[dict[str, Any]]:
    """Return what is true of every path without limits, with its method and Monte-Carlo error."""
    rng = np.random.Generator(np.random.PCG64(seed))
    return [record for path in PATHS for record in path_truth(rng, path, draws)]


def path_truth(rng: np.random.Generator, path: AgentPath, draws: int) -> Iterator[dict[str, Any]]:
    """Yield the truths of one path: analytic where the parameters give them, else from fresh draws without limits."""
    key = {"agent": path.agent, "backend": path.backend, "model": path.model, "context": context_digest(path.context)}
    smallest_task = round(path.task[0] * float(np.exp(path.task[1] * normal(np.zeros(1))[0])))
    exact = {"mc_error": 0.0, "method": "parameter"}
    yield {**key, "quantity": "startup_cost", "unit": "tokens", "value": path.fixed + smallest_task, **exact}
    yield {
        **key,
        "quantity": "share",
        "outcome": "failed",
        "among": "all",
        "unit": "share",
        "value": path.fails,
        **exact,
    }
    share = {"quantity": "share", "outcome": "completed", "among": "all", "unit": "share"}
    yield {**key, **share, "value": round(1 - path.fails, 12), **exact}
    cost, calls, fails = unlimited(rng, path, draws)
    method = {"method": f"{draws:,} draws without limits, fresh user and repository each"}
    error = float(calls.std(ddof=1) / np.sqrt(draws))
    mean = {"quantity": "mean_calls", "among": "all", "unit": "calls", "value": float(calls.mean())}
    yield {**key, **mean, "mc_error": error, **method}
    for column, values in (("cost_nusd", cost), ("calls", calls)):
        for q in QUANTILES:
            value, error = quantile(values, fails, q)
            what = {"quantity": "quantile", "column": column, "q": q, "among": "all"}
            yield {**key, **what, "value": value, "mc_error": error, **method}


def unlimited(rng: np.random.Generator, path: AgentPath, draws: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return spend and calls at the end, and whether it was a failure, of nodes that no limit touches."""
    parts = []
    for first in range(0, draws, TRUTH_BLOCK):
        nodes = min(TRUTH_BLOCK, draws - first)
        effect = USER_SD * normal(rng.random(nodes)) + REPO_SD * normal(rng.random(nodes))
        needs = draw_needs(rng, path, effect)
        spent = np.cumsum(needs.cost, axis=1)[np.arange(nodes), needs.ends_at - 1]
        parts.append((spent, needs.ends_at, needs.fails))
    cost, calls, fails = (np.concatenate(part) for part in zip(*parts, strict=True))
    return cost, calls, fails


def quantile(values: Ints, fails: NDArray[np.bool_], q: float) -> tuple[int, float]:
    """Return the smallest value by which a share `q` of all nodes had completed, and its Monte-Carlo standard error.

    Failures never complete, so they count as infinite. The error is half the width between the order statistics one
    binomial standard deviation to either side.
    """
    ends = np.sort(np.where(fails, np.iinfo(np.int64).max, values))
    count = len(ends)
    at = int(np.ceil(q * count)) - 1
    step = int(np.ceil(np.sqrt(count * q * (1 - q))))
    return int(ends[at]), float(ends[at + step] - ends[at - step]) / 2


MESSY_FIELDS = (
    "run",
    "node",
    "agent",
    "backend",
    "model",
    "outcome",
    "input_total",
    "cache_read",
    "output",
    "cost_usd",
    "start",
)


def messy_lines(table: Settlements) -> list[list[str]]:
    """Return rows as people have them: five bad in five ways, one of an outcome nobody knows, and one comes twice."""
    leads = table.where(agent="lead").nodes.iloc[: MESSY_ROWS - 1]
    rows = [messy_row(lead) for lead in leads.to_dict("records")]
    place = {name: number for number, name in enumerate(MESSY_FIELDS)}
    rows[7][place["input_total"]] = "-41210"
    rows[16][place["cost_usd"]] = "inf"
    rows[25][place["outcome"]] = "maybe"
    rows[34][place["output"]] = "many"
    rows[43][place["cache_read"]] = "999999999"
    rows[52] = rows[52][:6]
    return [list(MESSY_FIELDS), *rows, rows[3]]


def messy_row(lead: Mapping[Any, Any]) -> list[str]:
    """Return one lead as text; what is unknown is left empty."""
    start = str(np.datetime64(int(lead["start_ns"]), "ns").astype("datetime64[s]")) + "Z"
    known = bool(lead["usage_known"])
    cost = f"{int(lead['cost_nusd']) / 1e9:.9f}" if known else ""
    counts = [str(lead[name]) if known else "" for name in ("input_total", "cache_read", "output")]
    return [
        *(str(lead[name]) for name in ("run", "node", "agent", "backend", "model", "outcome")),
        *counts,
        cost,
        start,
    ]


def main() -> None:
    """Write all files beside this one."""
    here = Path(__file__).parent
    table = make_settlements()
    table.to_parquet(here / "synthetic_runs.parquet")
    with (here / "synthetic_messy.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(messy_lines(table))
    lines = ",\n".join(json.dumps(record) for record in truth())
    (here / "synthetic_truth.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()

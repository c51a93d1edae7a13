"""Cases of TanStack AI's subagent limits: the counter itself, and children started by tools, code and routers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents.groups import Agents, Operation, StartRefused
from harness_lab.agents.harness_agent import HarnessAgent
from harness_lab.agents.ports import Child, Children, Rest
from harness_lab.clock import NS_PER_S, Time
from harness_lab.conformance.areas import tree_groups, tree_time
from harness_lab.conformance.areas.tree_play import MS, Tree, limits_of, ran, tried
from harness_lab.conformance.shapes import Area, UnknownShape, differences, dispatched, operation
from harness_lab.limits import HARNESS_DEFAULTS, SubagentBudget
from harness_lab.outcome import Refusal
from harness_lab.policies import COMPLETED, Grant, SpawnAsk, tree_limits
from harness_lab.providers import MockProvider
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.agents.ports import Brain
    from harness_lab.agents.record import NodeRecord
    from harness_lab.conformance.shapes import Answer, Case

SPELLING: Final = {"maxDepth": "max_depth", "maxConcurrent": "max_concurrent", "maxCalls": "max_calls"}
UNDER: Final = "preset"
"""Where a case that is carried out carries the preset under which it is."""
_NO_MODEL: Final = MockProvider(models={}).compile()
NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NTH: Final = ("first", "second", "third", "fourth", "fifth", "sixth")
MOST: Final = 200
"""Children that are started at most where a limit should stop them earlier."""


def counter(case: Case) -> Answer:
    """Reserve starts, make views of children and ask how long a child may live."""
    views = {"root": SubagentBudget.root(limits_of(case["given"]["limits"]))}
    results = [_count(views, op) for op in case["when"]["ops"]]
    return {"results": results, "calls": views["root"].calls}


def _count(views: dict[str, SubagentBudget], op: Mapping[str, Any]) -> Any:
    view = views[op["on"]]
    if op["op"] == "reserve":
        return view.reserve(op["active"])
    if op["op"] == "child":
        deadline = op.get("deadline")
        views[op["as"]] = view.child(None if deadline is None else Time(deadline * MS))
        return None
    if op["op"] != "childTimeout":
        raise UnknownShape(f"a counter's operation {op['op']!r}")
    left = view.child_timeout(Time(op["now"] * MS))
    return None if left is None else round(left * 1000)


def tool_calls(case: Case) -> Answer:
    """Start a child for each tool call of one reply."""
    given, names = case["given"], case["when"]["tool_calls"]
    tree = Tree(given["limits"], case.get(UNDER))
    (agent, does), *_ = given["agents"].items()

    async def body(root: Agents) -> dict[str, Any]:
        return {name: tried(root, agent) for name in names}

    told = tree.play(body, **{agent: tree.code(does["duration_ms"], does["returns"])})
    refused = {name: text for name, text in told.items() if isinstance(text, str)}
    last = next(iter(refused.values()), None)
    return {
        "ran": ran(told.values()),
        "refused": refused,
        "refused_outcome": {"subagentRunId": "", "text": "", "error": last},  # a refused start is no run and no text
        "start_event_for_refused": any(isinstance(told[name], Operation) for name in refused),
        "parent_run_continues": len(told) == len(names),
    }


def timed_calls(case: Case) -> Answer:
    """Start a child for each tool call at its time."""
    given, when = case["given"], case["when"]["tool_calls_at_ms"]
    tree = Tree(given["limits"], case.get(UNDER))
    (agent, does), *_ = given["agents"].items()

    async def body(root: Agents) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for name, at in sorted(when.items(), key=lambda pair: pair[1]):
            await tree.runtime.sleep(max(0, at - tree.now()) * MS)
            told[name] = tried(root, agent)
        for started in told.values():
            if isinstance(started, Operation):
                await started.settled()
        return told

    told = tree.play(body, **{agent: tree.code(does["duration_ms"], does["returns"])})
    values = {name: text if isinstance(text, str) else text.value for name, text in told.items()}
    return {**values, "calls": ran(told.values())}


def in_a_row(case: Case) -> Answer:
    """Start children one after the other, until one more than the limit allows."""
    limits = case["given"].get("limits") or case["given"]["subagents.limits"]
    so_far = case["given"].get("calls_so_far", limits["maxCalls"])
    tree = Tree(limits, case.get(UNDER))
    told = tree.play(lambda root: _one_by_one(root, so_far + 1), w=tree.code(0))
    last = told[-1] if isinstance(told[-1], str) else None
    each = {f"{nth}_result": one for nth, one in zip(NTH, told, strict=False) if isinstance(one, str)}
    return {**each, "error": last, "ran": ran(told)}


def below_code(case: Case) -> Answer:
    """Start children from an agent that code started: it and they are of one tree."""
    limits = case["given"].get("root_limits") or case["given"]["limits"]
    tree, told, started = Tree(limits, case.get(UNDER)), [], []
    named, *_ = case["then"].get("runs_created", ["lead"])  # a note: a case has the name in its answer alone

    async def lead(below: Agents, _task: Any) -> None:
        started.append(named)
        most = 2 if "second" in case["then"] else MOST
        told.extend(await _one_by_one(below, most))

    refused = tree.play(lambda root: root.run("lead"), lead=lead, w=tree.code(1))
    names = [*started, *("w" for one in told if not isinstance(one, str))]
    texts = [text for text in told if isinstance(text, str)]
    words = ["runs" if isinstance(one, Operation) else one for one in told]
    return {
        "limits_in_force": _in_force(texts),
        "first": words[0] if words else str(refused),
        "second": words[1] if len(words) > 1 else None,
        "throws": texts[0] if texts else None,
        "runs_created": names,
    }


async def _one_by_one(below: Agents, most: int) -> list[Any]:
    told: list[Any] = []
    while len(told) < most and not (told and isinstance(told[-1], str)):
        told.append(tried(below, "w"))
        if isinstance(told[-1], Operation):
            await told[-1].settled()
    return told


def _number(words: str, after: str) -> int:
    """Return the number that stands behind a word, in figures or written out."""
    found = re.search(rf"{after} (\w+)", words)
    told = found[1] if found else ""
    if told in NUMBERS:
        return NUMBERS.index(told)
    if not told.isdigit() or int(told) > MOST:
        raise UnknownShape(f"the number in {words!r}")
    return int(told)


def _in_force(texts: list[str]) -> dict[str, int]:
    found = re.findall(r"\((\w+) (\d+)\)", " ".join(texts))
    return {name: int(limit) for name, limit in found}


def routed(case: Case) -> Answer:
    """Start children at once, as a router does."""
    many = _number(operation(case), "picks")
    tree = Tree(case["given"]["limits"], case.get(UNDER))

    async def body(root: Agents) -> list[Any]:
        return [tried(root, "w") for _ in range(many)]

    told = tree.play(body, w=tree.code(5))
    return {"ran": ran(told), "refused": len(told) - ran(told)}


def new_runs(case: Case) -> Answer:
    """Start children in several runs, each with a tree of its own."""
    given, count = case["given"], 0
    for _ in range(given["user_turns"]):
        tree = Tree(given["limits"], case.get(UNDER))
        count += ran(tree.play(lambda root: _one_by_one(root, given["children_per_turn"]), w=tree.code(1)))
    return {"ran": count}


def defaults(case: Case) -> Answer:
    """Read the limits that a harness has, by default or as they are given."""
    theirs = case["given"]["subagents.limits"]
    limits = HARNESS_DEFAULTS if theirs is None else limits_of(theirs)
    told = {name: getattr(limits, ours) for name, ours in SPELLING.items()}
    if limits.timeout_s is not None:
        told["timeoutMs"] = round(limits.timeout_s * 1000)
    return {
        "limits": {name: value for name, value in told.items() if value is not None},
        "depth_limited": limits.max_depth is not None,
        "concurrency_limited": limits.max_concurrent is not None,
    }


def code_start(case: Case) -> Answer:
    """Start an agent from code."""
    tree = Tree(case["given"]["limits"], case.get(UNDER))
    took = re.search(r"(\d+) ms", operation(case))
    told = tree.play(lambda root: root.run("w"), w=tree.code(int(took[1]) if took else 1))
    return {"runs": not isinstance(told, StartRefused), "completed": told == "ok"}


def resumed(case: Case) -> Answer:
    """Take a child that paused up again."""
    limits = {"timeoutMs": 9000, **case["given"]["limits"]}
    timeout = limits["timeoutMs"] * MS
    most = limits["maxCalls"]
    policy = tree_limits(max_calls=most, timeout_s=timeout / NS_PER_S).start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
    first = policy.spawn(SpawnAsk(top.ticket, ((0, 0, 0),), amounts()), Time(0)) if isinstance(top, Grant) else top
    if not isinstance(top, Grant) or not isinstance(first, Grant):
        return {"refused": True}
    before = policy.modules[0].running  # type: ignore[attr-defined]
    later = Time(timeout // 2)
    again = policy.spawn(SpawnAsk(top.ticket, ((0, 0, 0),), amounts(), resume=first.ticket), later)
    more = [policy.spawn(SpawnAsk(top.ticket, ((0, i, 0),), amounts()), later) for i in range(1, most + 1)]
    full = isinstance(again, Grant) and again.deadline == later + timeout
    counted = policy.modules[0].running > before  # type: ignore[attr-defined]
    return {
        "refused": isinstance(again, Refusal),
        "calls": most - sum(isinstance(answer, Grant) for answer in more),
        "timer": "restarts in full" if full else "goes on",
        "active": "counted while it runs" if counted else "not counted",
    }


def cancelled(case: Case) -> Answer:
    """Cancel an agent that has started another, and that ends normally all the same."""
    tree = Tree({})
    kept: list[Operation] = []
    family = re.match(r"(\w+) -> (\w+)", case["given"].get("tree", ""))
    top, below_it = family.groups() if family else ("lead", "waiter")
    if operation(case) not in (f"cancel {top}", "cancel then resolve"):
        raise UnknownShape(f"the operation {operation(case)!r}")

    async def lead(below: Agents, _task: Any) -> str:
        kept.append(below.start(below_it))
        try:
            await tree.runtime.sleep(NS_PER_S)
        except BaseException:
            tree.log.append((tree.now(), f"{top} aborted"))
        return "resolved after the signal"

    async def body(root: Agents) -> Any:
        kept.append(root.start(top))
        await tree.runtime.sleep(MS)
        kept[0].cancel()
        return await kept[0].settled()

    how = tree.play(body, **{top: lead, below_it: tree.code(1000, name=below_it)})
    ends = [str(started.end.outcome) if started.end is not None else "running" for started in kept]
    order = [what.removesuffix(" aborted") for _, what in tree.log]
    return {"abort_order": order, "statuses": ends, "status": ends[0], "error": str(how.error)}


def inner_harness(case: Case) -> Answer:
    """Let a whole harness run as a child and start a child of its own, under its parent's limits."""
    tree, nodes = Tree(case["given"]["outer_limits"], case.get(UNDER)), Nodes()

    def brain(_task: Any) -> Brain:
        yield Children([Child(agent="w", budget=amounts(), call=0, slot=0, brain=leaf)])
        return COMPLETED

    def leaf() -> Brain:
        yield Rest(MS)
        return COMPLETED

    inner = HarnessAgent(name="inner", description="a whole harness", model=_NO_MODEL, brain=brain, sink=nodes)
    tree.play(lambda root: root.run("inner"), inner=inner)
    refused = [record for record in nodes.records if record.refusal is not None]
    slots = tree.policy.modules[0].peak  # type: ignore[attr-defined]
    return {"inner_children_counted_by_outer": bool(refused) or slots > 1}


class Nodes:
    """Keeps records of nodes."""

    def __init__(self) -> None:
        self.records: list[NodeRecord] = []

    def node(self, record: NodeRecord) -> None:
        """Take a node that has ended, or that never started."""
        self.records.append(record)

    def call(self, *_: Any) -> None:
        """Take a call; nobody reads it."""


BY_FIELD: Final[dict[str, Callable[[Case], Answer]]] = {
    "ops": counter,
    "tool_calls": tool_calls,
    "tool_calls_at_ms": timed_calls,
    "body": tree_groups.group,
}
BY_OPERATION: Final[dict[str, Callable[[Case], Answer]]] = {
    "child starts children through ctx.chat": below_code,
    "run": tree_time.timed,
    "timeout": tree_time.timed,
    "resume the same tool call": resumed,
    "single tool with sessionId of a finished child": in_a_row,
    "read limits": defaults,
    "one code-started agent starts two children through tools": below_code,
    "cancel then resolve": cancelled,
    "inner harness starts its own children": inner_harness,
}
BY_PATTERN: Final[dict[str, Callable[[Case], Answer]]] = {
    r"ctx\.agents\.run\(\w+( that takes \d+ ms)?\)": code_start,
    r"router picks \w+ agents in parallel": routed,
    r"\w+ root runs": new_runs,
    r"model calls \w+ \w+ (times )?in one turn": in_a_row,
    r"inside a code-started agent: ctx\.agents\.start\(\w+\)": below_code,
    r"cancel \w+": cancelled,
}
"""Operations with a name or a number in them."""


def _answer(case: Case, preset: str | None) -> Answer:
    case = {**case, UNDER: preset}
    what = str(case["when"].get("op"))
    patterned = [answer for pattern, answer in BY_PATTERN.items() if re.fullmatch(pattern, what)]
    return dispatched(case, BY_FIELD, {**BY_OPERATION, **dict(zip([what], patterned, strict=False))})


AREA: Final = Area(
    name="tree-limits",
    parts=frozenset({"tree-limits"}),
    answer=_answer,
    presets=lambda _case: (None, "tanstack-1520"),
    compare=differences,
)

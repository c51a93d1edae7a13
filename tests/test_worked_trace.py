"""The worked trace of docs/worked-trace.md, line by line: the page's own code is run and must give the page's lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.outcome import INPUT, Refusal
from harness_lab.policies import SpawnAsk, path_text
from harness_lab.simulate import Experiment, SimRuntime, VirtualLoop
from harness_lab.simulate.engine import ENGINES
from harness_lab.simulate.rows import Rows

PAGE = Path(__file__).parents[1] / "docs" / "worked-trace.md"
SHOWN = (
    "node",
    "agent",
    "outcome",
    "stopped_by",
    "overspent",
    "calls",
    "starts",
    "input_total",
    "cost_nusd",
    "ask_input",
)


def block(kind: str) -> str:
    """Return the content of the page's only code block of a kind."""
    found = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return str(found[0])


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    names: dict[str, Any] = {}
    exec(compile(block("python"), str(PAGE), "exec"), names)  # noqa: S102 - our own page
    made: Experiment = names["experiment"]
    return made


class Traced:
    """A policy that writes down each question with its answer and the balances after it."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.lines, self.refusals = policy, [], []
        self.tick, self.cancel, self.outbox = policy.tick, policy.cancel, policy.outbox

    def spawn(self, ask: Any, now: int) -> Any:
        answer = self.policy.spawn(ask, now)
        self._write(now, "spawn", ask, answer)
        return answer

    def admit(self, ask: Any, now: int) -> Any:
        answer = self.policy.admit(ask, now)
        self._write(now, "admit", ask, answer)
        return answer

    def settle(self, step: Any, use: Any, now: int) -> None:
        self.policy.settle(step, use, now)
        self._write(now, "settle", step.ask, f"used {use.spent[INPUT]:,}")

    def close(self, node: Any, use: Any, end: Any, now: int) -> None:
        self.policy.close(node, use, end, now)
        self._write(now, "close", node.ask, str(end.outcome))

    def _write(self, now: int, question: str, ask: Any, answer: Any) -> None:
        path = ask.path if isinstance(ask, SpawnAsk) else ask.node.path
        words = answer if isinstance(answer, str) else "granted"
        if isinstance(answer, Refusal):
            words = ", ".join(str(short.code) for short in answer.shortfalls)
            self.refusals.append(f"{path_text(path)}: {answer}")
        _, pool, tree = self.policy.modules
        free, held, spent = (amounts[INPUT] for amounts in (pool.pool.free(), pool.pool.held(), pool.pool.spent()))
        head = f"{now // 10**9:>3}  {question:<6}  {path_text(path):<8}  {words:<20}"
        self.lines.append(f"{head}  {free:>7,}  {held:>6,}  {spent:>6,}  {tree.running:>7}".rstrip())


def traced(experiment: Experiment, engine: str) -> Traced:
    world, policy = experiment.world(), Traced(experiment.policies[0].start())
    loop = VirtualLoop()
    runtime: Any = SimRuntime() if engine == "kernel" else AsyncioRuntime(loop)
    run = Harness(runtime, policy, world.model, Rows()).run(
        world.agent.name, world.budget, lambda: world.agent.brain(0)
    )
    if engine == "kernel":
        runtime.kernel.spawn(run)
        runtime.kernel.run()
    else:
        loop.run_until_complete(run)
    return policy


@pytest.mark.parametrize("engine", ENGINES)
def test_every_question_answer_and_balance_is_as_the_page_says(experiment: Experiment, engine: str) -> None:
    assert traced(experiment, engine).lines == block("trace").splitlines()[1:]


def test_every_refusal_says_what_the_page_says(experiment: Experiment) -> None:
    assert traced(experiment, "kernel").refusals == block("refusals").splitlines()


def test_the_rows_of_the_table_are_as_the_page_says(experiment: Experiment) -> None:
    nodes = experiment.run(backend="serial").settlements.nodes
    told = [[_cell(row[name]) for name in SHOWN] for row in nodes.to_dict("records")]
    assert told == [re.split(r"\s{2,}", line.strip()) for line in block("rows").splitlines()[1:]]
    assert re.split(r"\s{2,}", block("rows").splitlines()[0].strip()) == list(SHOWN)


def _cell(value: Any) -> str:
    return "-" if pd.isna(value) else str(value)

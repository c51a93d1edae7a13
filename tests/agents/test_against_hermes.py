"""Held against the real hermes-agent 0.19.0, where an environment that has it is at hand.

``python3 -m venv ENV && ENV/bin/pip install --no-deps -r tests/agents/hermes.txt`` and
``HARNESS_LAB_HERMES_PYTHON=ENV/bin/python``. Without, the recorded answers of 0.19.0 stand (the behaviour cases).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.agents.delegating import LEAF_BLOCKED, DelegationRules, normal_role
from harness_lab.budget.iteration import IterationBudget
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

PYTHON = os.environ.get("HARNESS_LAB_HERMES_PYTHON", "")
PEER = Path(__file__).with_name("hermes_peer.py")
pytestmark = pytest.mark.skipif(not PYTHON, reason="HARNESS_LAB_HERMES_PYTHON names no Python with hermes-agent 0.19.0")
NUMBERS: tuple[object, ...] = (None, 0, 1, 2, 3, 7, -4, "2", " 5 ", "x", "", 2.7, True, [], "1_0")


def _ask(folder: Path, cases: list[dict[str, Any]]) -> list[Any]:
    there = {"PATH": os.environ["PATH"], "HOME": str(folder), "HERMES_HOME": str(folder / "hermes")}
    command, asked = [PYTHON, str(PEER)], json.dumps({"cases": cases})
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, cwd=folder, env=there)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_the_counter_moves_alike(tmp_path: Path) -> None:
    luck = random.Random(3)  # noqa: S311 - cases, not secrets
    cases: list[dict[str, Any]] = [
        {"kind": "budget", "max_total": luck.randrange(6), "moves": "".join(luck.choices("ccr", k=luck.randrange(20)))}
        for _ in range(2000)
    ]
    for case, theirs in zip(cases, _ask(tmp_path, cases), strict=True):
        counter = IterationBudget(case["max_total"], max_refunds="unbounded")
        moves: dict[str, Callable[[], object]] = {"c": counter.consume, "r": counter.refund}
        ours = [[moves[move](), counter.used, counter.remaining] for move in case["moves"]]
        assert ours == theirs, case


def test_roles_mean_the_same(tmp_path: Path) -> None:
    roles = [None, "", "leaf", "LEAF", " orchestrator", "Orchestrator\n", "boss", "orchestrator!", 3, True, ["x"]]
    theirs = _ask(tmp_path, [{"kind": "role", "role": role} for role in roles])
    assert [normal_role(role) for role in roles] == theirs


def test_a_config_reads_the_same(tmp_path: Path) -> None:
    luck = random.Random(5)  # noqa: S311 - cases, not secrets
    switches = (True, False, "true", "False", "off", " ON ", "no", 1, 0, None)
    names = {"max_spawn_depth": NUMBERS, "max_concurrent_children": NUMBERS, "orchestrator_enabled": switches}
    configs = [{n: luck.choice(v) for n, v in names.items() if luck.random() < 0.9} for _ in range(2000)]
    theirs = _ask(tmp_path, [{"kind": "config", "config": config} for config in configs])
    for config, answer in zip(configs, theirs, strict=True):
        ours = DelegationRules.hermes(config)
        assert [ours.max_depth, ours.max_children, ours.orchestrators] == answer, config


def _request(luck: random.Random) -> dict[str, Any]:
    kinds = [{"goal": "a"}, {"goal": "a"}, {"goal": " "}, {"goal": "b", "role": "orchestrator"}, {}, "text", None]
    tasks: Any = luck.choices(kinds, weights=(9, 9, 1, 5, 1, 1, 1), k=luck.randrange(5))
    shape = luck.randrange(5)
    tasks = json.dumps(tasks) if shape == 1 else luck.choice(["", "[", "{}", "3"]) if shape == 2 else tasks
    request = {"goal": luck.choice([None, "", "  ", "do it"]), "tasks": None if shape == 3 else tasks}
    return {name: value for name, value in request.items() if luck.random() < 0.9}


def _refusal(rules: DelegationRules, case: dict[str, Any]) -> str | None:
    try:
        rules.decide(case["request"], depth=case["depth"])
    except InputError as refused:
        return str(refused)
    return None


def test_the_gate_lets_the_same_through(tmp_path: Path) -> None:
    luck = random.Random(7)  # noqa: S311 - cases, not secrets
    cases: list[dict[str, Any]] = [
        {
            "kind": "gate",
            "config": {"max_spawn_depth": luck.randrange(4), "max_concurrent_children": luck.randrange(5)},
            "paused": luck.random() < 0.05,
            "depth": luck.randrange(4),
            "request": _request(luck),
        }
        for _ in range(3000)
    ]
    allowed = 0
    for case, theirs in zip(cases, _ask(tmp_path, cases), strict=True):
        rules = DelegationRules.hermes({**case["config"], "paused": case["paused"]})
        told = _refusal(rules, case)
        assert (told is None) == (theirs is None), (case, theirs, told)
        allowed += told is None
        for start in ("Delegation spawning is paused", "Delegation depth limit reached", "Too many tasks"):
            assert (start in (theirs or "")) == (start in (told or "")), (case, theirs, told)
    assert 100 < allowed < 2900


def test_a_leaf_is_denied_the_same_tools(tmp_path: Path) -> None:
    script = "import json; from tools.delegate_tool import DELEGATE_BLOCKED_TOOLS as d; print(json.dumps(sorted(d)))"
    there = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HERMES_HOME": str(tmp_path / "hermes")}
    done = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path, env=there)
    assert sorted(LEAF_BLOCKED) == json.loads(done.stdout)

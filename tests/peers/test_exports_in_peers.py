"""Exports are loaded by the real packages, where environments that have them are at hand.

``tests/peers/install FOLDER`` makes them, ``HARNESS_LAB_PEERS=FOLDER`` names them. Without, every test is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.clock import Time
from harness_lab.export import AgentLimits, Provenance, TunedConfig, export
from harness_lab.export.writers import target_of
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.outcome import Refusal
from harness_lab.policies import (
    SpawnAsk,
    StepAsk,
    Use,
    compose,
    iteration_budget,
    period_budget,
    reservation_pool,
    runtime_floors,
    shared_ledger,
    tree_limits,
)
from harness_lab.pricing import Price, PriceTable
from harness_lab.usage import TokenCounts, amounts

if TYPE_CHECKING:
    from harness_lab.policies import PolicySpec

HERE = Path(__file__).parent
PEERS = os.environ.get("HARNESS_LAB_PEERS", "")
HOSTILE = "a\"b'c`d\\e\n\r\t*/ ?> </script> ${x} $(rm) #{y} \u2028\x7f\x85 模块 \U0001f600 ---\n"
PROVENANCE = Provenance(date="2026-01-31", harness_lab="0.1.0")
ROW = FloorRow(key=FloorKey(backend=HOSTILE, model="m"), floor=31_211)
POLICIES: tuple[PolicySpec, ...] = (
    compose(shared_ledger(20, 0.8137, 300), tree_limits(2, 3, 12, 180.5), name=HOSTILE),
    compose(shared_ledger(0, 0.0), tree_limits(1, 1, 1, 0.001), reservation_pool(tokens=0, input=0)),
    compose(shared_ledger(2**53 - 2, 9e9), tree_limits(2**31 - 1, 2**31 - 1), reservation_pool(tokens=2**62)),
    compose(iteration_budget(7), tree_limits(1, 4, None, 45), reservation_pool(cost_usd=1e-9)),
    compose(shared_ledger(12, 1e-07), tree_limits(0)),
    compose(reservation_pool(calls=31, input=5, tokens=7, cost_usd=5e-324), runtime_floors(FloorTable((ROW,)))),
    tree_limits(3),
)
AGENTS = (AgentLimits(name=HOSTILE, max_calls=5, model="m", disallowed_tools=("Bash",)),)


def python_of(name: str) -> Path:
    """Return the interpreter of an environment, or skip."""
    named = os.environ.get(f"HARNESS_LAB_{name.upper()}_PYTHON", "")
    found = Path(named) if named else Path(PEERS, name, "bin", "python")
    if not (named or PEERS) or not found.exists():
        pytest.skip(f"HARNESS_LAB_PEERS names no folder with an environment {name!r} (tests/peers/install makes it)")
    return found


def ask(name: str, script: str, cases: list[Any], folder: Path) -> list[Any]:
    """Let a script in an environment answer cases."""
    there = {"PATH": os.environ["PATH"], "HOME": str(folder), "HERMES_HOME": str(folder / "hermes")}
    command = [str(python_of(name)), str(HERE / script)]
    asked = json.dumps({"cases": cases})
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, cwd=folder, env=there)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def told(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def loaded(target: str, folder: Path) -> list[tuple[dict[str, Any], Any]]:
    """Export every policy in every form, and return what was written with what the package holds."""
    written = [export(policy, target, form=form) for form in target_of(target).forms for policy in POLICIES]
    cases = [{"kind": target, "form": one.form, "text": one.text, "files": dict(one.files)} for one in written]
    answers = ask("agents", "load_agents.py", cases, folder)
    return [(told(one.settings), answer) for one, answer in zip(written, answers, strict=True)]


def runs(target: str, limits: tuple[int, ...], folder: Path, **more: Any) -> list[Any]:
    """Return what a run that would never end gets to do under limits of model calls."""
    written = [export(compose(shared_ledger(limit), tree_limits(0)), target) for limit in limits]
    cases = [{"kind": target, "form": one.form, "text": one.text, "run": True, **more} for one in written]
    return ask("agents", "load_agents.py", cases, folder)


def admitted(policy: PolicySpec, used: Use, most: int = 60) -> int:
    """Return how many calls a policy admits of one agent that is never done."""
    started = policy.start()
    root = started.spawn(SpawnAsk(None, (), amounts()), now=Time(0)).ticket  # type: ignore[union-attr]
    for call in range(most):
        answer = started.admit(StepAsk(root, call=call, attempt=0, bound=amounts()), now=Time(0))
        if isinstance(answer, Refusal):
            return call
        started.settle(answer.ticket, used, now=Time(0))
    return most


def test_pydantic_ai_holds_every_limit(tmp_path: Path) -> None:
    for values, answer in loaded("pydantic-ai", tmp_path):
        assert answer["held"] == values


def test_pydantic_ai_makes_as_many_requests_as_were_exported(tmp_path: Path) -> None:
    assert [one["calls"] for one in runs("pydantic-ai", (0, 1, 7, 55), tmp_path)] == [0, 1, 7, 55]


def test_what_is_read_back_admits_what_pydantic_ai_admits(tmp_path: Path) -> None:
    policies = [shared_ledger(n) for n in (0, 1, 9)]
    policies += [reservation_pool(tokens=n) for n in (0, 9, 10, 11, 25)] + [reservation_pool(input=n) for n in (7, 8)]
    written = [export(policy, "pydantic-ai") for policy in policies]
    cases = [{"kind": "pydantic-ai", "form": "python", "text": one.text, "run": True} for one in written]
    used = Use(amounts(calls=1, input=8, tokens=10, fresh=10))
    theirs = [answer["calls"] for answer in ask("agents", "load_agents.py", cases, tmp_path)]
    assert [admitted(one.read_back(), used) for one in written] == theirs


def test_openai_agents_hold_every_limit(tmp_path: Path) -> None:
    for values, answer in loaded("openai-agents", tmp_path):
        assert told(answer["held"]) == values


def test_openai_agents_take_as_many_turns_as_were_exported(tmp_path: Path) -> None:
    assert [one["calls"] for one in runs("openai-agents", (0, 1, 7), tmp_path)] == [0, 1, 7]


@pytest.mark.parametrize("needs", [1, 4, 5])
def test_a_langgraph_agent_makes_as_many_model_calls_as_were_exported(tmp_path: Path, needs: int) -> None:
    (answer,) = runs("langgraph", (4,), tmp_path, needs=needs)
    assert (answer["calls"], answer["done"]) == (min(needs, 4), needs <= 4)


def test_litellm_reads_every_budget(tmp_path: Path) -> None:
    for values, answer in loaded("litellm", tmp_path):
        assert answer["held"] == values
    policy = compose(period_budget(cost_usd=0.8137, by="key", every="day"), period_budget(cost_usd=5, by="team"))
    (answer,) = ask(
        "agents", "load_agents.py", [{"kind": "litellm", "files": export(policy, "litellm").files}], tmp_path
    )
    day, ever = answer["budgets"]
    assert (day["max_budget"], day["seconds"], ever["max_budget"], ever["seconds"]) == (0.8137, 86_400, 5, None)


def test_litellms_own_limiters_admit_what_was_exported(tmp_path: Path) -> None:
    policies = (shared_ledger(7), shared_ledger(0), shared_ledger(50, 1.0), shared_ledger(50, 0.0))
    cases = [{"kind": "litellm", "files": dict(export(p, "litellm").files), "run": True} for p in policies]
    answers = ask("agents", "load_agents.py", cases, tmp_path)
    assert [answer["admitted"] for answer in answers] == [7, 0, 4, 0]


def test_litellm_prices_a_call_as_the_config_does(tmp_path: Path) -> None:
    cheap, plain = ({"cache_read": 0.3}, {})
    prices = PriceTable(
        {name: (Price.usd_per_million(input=3.0, output=15.0, **more),) for name, more in (("m", cheap), ("n", plain))}
    )
    config = TunedConfig(shared_ledger(5, 0.5), provenance=PROVENANCE, prices=prices)
    (costs,) = ask(
        "agents", "load_agents.py", [{"kind": "litellm", "files": dict(export(config, "litellm").files)}], tmp_path
    )
    used = TokenCounts(input_fresh=600, cache_read=400, output=100)
    assert costs == [pytest.approx((prices.cost(name, used) or 0) / 1e9) for name in ("m", "n")]


def test_what_is_read_back_admits_what_litellm_admits(tmp_path: Path) -> None:
    policies = [shared_ledger(n, usd) for n in (0, 3, 50) for usd in (None, 0.0, 0.25, 0.3, 1.0)]
    written = [export(policy, "litellm") for policy in policies]
    cases = [{"kind": "litellm", "files": dict(one.files), "run": True} for one in written]
    theirs = [answer["admitted"] for answer in ask("agents", "load_agents.py", cases, tmp_path)]
    used = Use(amounts(calls=1, cost_usd=0.25))
    assert [admitted(one.read_back(), used) for one in written] == theirs


def test_the_claude_agent_sdk_passes_every_limit_on(tmp_path: Path) -> None:
    for values, answer in loaded("claude-agent-sdk", tmp_path):
        flags = {"--max-turns": "max_turns", "--max-budget-usd": "max_budget_usd"}
        passed = {flags[key]: float(value) for key, value in answer["flags"].items()}
        assert passed == {key: value for key, value in values.items() if key in flags.values()}
        env = {key.removeprefix("env."): value for key, value in values.items() if key.startswith("env.")}
        assert answer["env"] == env
        assert (answer["denied"] == "Agent") == ("disallowed_tools" in values)


def test_the_claude_agent_sdk_defines_every_agent(tmp_path: Path) -> None:
    config = TunedConfig(tree_limits(1), provenance=PROVENANCE, agents=AGENTS)
    case = {"kind": "claude-agent-sdk", "form": "python", "text": export(config, "claude-agent-sdk").text}
    (answer,) = ask("agents", "load_agents.py", [case], tmp_path)
    assert answer["agents"] == {HOSTILE: 5}


def test_claude_code_reads_flags_settings_and_agents(tmp_path: Path) -> None:
    configs = [TunedConfig(policy, provenance=PROVENANCE, agents=AGENTS) for policy in POLICIES[:5]]
    cases = [{"kind": "claude-code", "files": dict(export(config, "claude-code").files)} for config in configs]
    wrong = {"kind": "claude-code", "files": {"claude-flags.txt": "--max-budget-usd 0"}}
    *answers, refused = ask("agents", "load_agents.py", [*cases, wrong], tmp_path)
    assert "must be a number greater than 0" in refused["said"]
    assert all("Not logged in" in answer["said"] for answer in answers), answers


def test_hermes_holds_every_limit(tmp_path: Path) -> None:
    written = [export(policy, "hermes") for policy in POLICIES]
    answers = ask("hermes", "load_hermes.py", [one.text for one in written], tmp_path)
    for one, answer in zip(written, answers, strict=True):
        assert {key: answer[key] for key in one.settings} == one.settings


def test_bernstein_holds_every_limit(tmp_path: Path) -> None:
    written = [export(policy, "bernstein") for policy in POLICIES]
    answers = ask("bernstein", "load_bernstein.py", [one.text for one in written], tmp_path)
    for one, answer in zip(written, answers, strict=True):
        assert {key: answer[key] for key in one.settings} == one.settings


def test_crewais_own_source_has_the_settings_and_makes_as_many_calls(tmp_path: Path) -> None:
    written = [export(iteration_budget(n), "crewai") for n in (0, 3, 25)]
    limits = [one.settings["agents"]["agent"]["max_iter"] for one in written]
    times = [export(tree_limits(timeout_s=s), "crewai").settings["agents"]["agent"] for s in (1.0, 180.5)]
    seconds = [told["max_execution_time"] for told in times]
    case = {"max_iter": limits, "max_execution_time": [*seconds, 0]}
    (answer,) = ask("crewai", "load_crewai.py", [case], tmp_path)
    assert answer["fields"]["max_iter"] == {"type": "int", "default": 25}
    assert answer["fields"]["max_execution_time"] == {"type": "int | None", "default": None}
    assert answer["accepts"] == [True, True, False]
    used = Use(amounts(calls=1))
    assert answer["calls"] == [admitted(one.read_back(), used) + 1 for one in written]  # one more, for an answer


@pytest.mark.parametrize("form", ["json", "python"])
def test_prism_holds_every_limit(form: str) -> None:
    from prism_harness import RunBudget  # type: ignore[import-untyped]

    for policy in POLICIES:
        written = export(policy, "prism", form=form)
        names: dict[str, Any] = {}
        if form == "python":
            exec(written.text, names)  # noqa: S102 - that is what loading it means
        budget = RunBudget.from_config(names["RUN_BUDGET"] if names else json.loads(written.text))
        held = {key: getattr(budget, key) for key in ("max_steps", "max_cost_usd", "max_seconds")}
        assert told(held) == written.settings


def test_codex_loads_the_config(tmp_path: Path) -> None:
    codex = Path(PEERS, "node", "node_modules", ".bin", "codex")
    if not PEERS or not codex.exists():
        pytest.skip("HARNESS_LAB_PEERS names no folder with codex in it (tests/peers/install makes it)")
    texts = [export(TunedConfig(p, provenance=PROVENANCE), "codex").text for p in POLICIES]
    for number, text in enumerate([*texts, "[agents]\nmax_concurrent_threads_per_session = 0\n"]):
        home = tmp_path / str(number)
        home.mkdir()
        (home / "config.toml").write_text(text, "utf-8")
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home)}
        command = [str(codex), "mcp", "list"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=home)
        assert (done.returncode == 0) == (number < len(texts)), (text, done.stderr[-500:])


def test_generated_typescript_compiles(tmp_path: Path) -> None:
    compiler = Path(PEERS, "node", "node_modules", ".bin", "tsc")
    if not PEERS or not compiler.exists():
        pytest.skip("HARNESS_LAB_PEERS names no folder with typescript in it (tests/peers/install makes it)")
    for number, policy in enumerate(POLICIES):
        folder = tmp_path / str(number)
        shutil.copytree(HERE / "types", folder)
        for target in ("prism", "tanstack", "tangle"):
            written = export(policy, target, form="typescript")
            (folder / written.file).write_text(written.text, "utf-8")
    command = [str(compiler), "--strict", "--noEmit", "--target", "es2022", "--module", "esnext"]
    sources = [str(path) for path in sorted(tmp_path.glob("*/check.ts"))]
    options = ["--moduleResolution", "bundler", "--ignoreConfig"]
    done = subprocess.run([*command, *options, *sources], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:]


def test_generated_php_has_no_syntax_error_and_says_the_same(tmp_path: Path) -> None:
    php = shutil.which("php")
    if php is None:
        pytest.skip("no PHP here")
    for policy in POLICIES:
        written = export(policy, "prism", form="php")
        file = tmp_path / "budget.php"
        file.write_text(written.text, "utf-8")
        subprocess.run([php, "-l", str(file)], check=True, capture_output=True)
        script = f"echo json_encode(require '{file}');"
        said = subprocess.run([php, "-r", script], check=True, capture_output=True, text=True).stdout
        assert json.loads(said) == written.settings

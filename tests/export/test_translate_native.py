"""Limits are read as people state them: files of their system, code of their own, or a plain list of settings."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.export import TARGETS, AgentLimits, Provenance, TunedConfig, export
from harness_lab.export.translation.native import limits_of
from harness_lab.export.writers import target_of
from harness_lab.policies import compose, iteration_budget, shared_ledger, tree_limits

if TYPE_CHECKING:
    from pathlib import Path

PROVENANCE = Provenance(date="2026-01-31", harness_lab="0.1.0")
OWN = {
    ("langgraph", "app.py"): (
        'graph.invoke(state, config={"recursion_limit": 25, "tags": [name]})',
        {"recursion_limit": 25},
    ),
    ("langgraph", "limits.toml"): ("[langgraph]\nrecursion_limit = 25", {"recursion_limit": 25}),
    ("openai-agents", "run.py"): ("result = await Runner.run(agent, text, max_turns=5)", {"max_turns": 5}),
    ("pydantic-ai", "limits.py"): (
        "from pydantic_ai import UsageLimits\nmine = UsageLimits(request_limit=8, total_tokens_limit=None)",
        {"request_limit": 8, "total_tokens_limit": None},
    ),
    ("claude-agent-sdk", "main.py"): (
        "options = ClaudeAgentOptions(model=MODEL, max_turns=9, max_budget_usd=0.5)",
        {"max_turns": 9, "max_budget_usd": 0.5},
    ),
    ("claude-code", "limits.toml"): ("max-turns = 9\n", {"--max-turns": 9}),
    ("claude-code", "settings.json"): (
        '{"env": {"CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": "4"}, "model": "x"}',
        {"CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": 4},
    ),
    ("codex", "config.toml"): (
        'model = "m"\n[agents]\nmax_depth = 2\n[tools]\nweb = true', {"agents.max_depth": 2},
    ),
    ("hermes", "config.yaml"): (
        "# mine\nmodel: x\nagent: {max_turns: 60}\ndelegation:\n  max_iterations: 20   # each\n",
        {"agent.max_turns": 60, "delegation.max_iterations": 20},
    ),
    ("crewai", "agents.yaml"): (
        "researcher:\n  role: >\n    Senior researcher\n  max_iter: 12\nwriter:\n  llm: m\n",
        {"agents": {"researcher": {"max_iter": 12}, "writer": {"llm": "m"}}},
    ),
    ("bernstein", "bernstein.yaml"): (
        "goal: Ship it\nbudget: 20.5\nmax_agents: 4\n",
        {"budget": 20.5, "max_agents": 4},
    ),
    ("litellm", "limits.json"): ('{"max_iterations": 25}', {"max_iterations": 25}),
    ("litellm", "litellm-agent.json"): ('{"litellm_params": {"max_iterations": 25}}', {"max_iterations": 25}),
    ("tanstack", "limits.toml"): ("maxDepth = 2\ntimeoutMs = 60000", {"maxDepth": 2, "timeoutMs": 60_000}),
    ("tangle", "limits.toml"): (
        "maxIterations = 9\n[runtimeFloors]\npi = 31211", {"budget.maxIterations": 9, "runtimeFloors": {"pi": 31_211}},
    ),
    ("prism", "limits.toml"): ("max_steps = 40\nmax_cost_usd = 0.5", {"max_steps": 40, "max_cost_usd": 0.5}),
}  # fmt: skip


@pytest.mark.parametrize(("system", "file"), OWN)
def test_files_as_people_write_them_are_read(tmp_path: Path, system: str, file: str) -> None:
    text, expected = OWN[system, file]
    (tmp_path / file).write_text(text)
    assert limits_of(target_of(system), tmp_path / file) == expected


@pytest.mark.parametrize("target", ["claude-code", "codex", "litellm", "crewai", "prism", "toml", "env", "pydantic-ai"])
def test_a_folder_that_was_exported_is_read_as_it_was_written(tmp_path: Path, target: str) -> None:
    agents = [AgentLimits(name="own", max_calls=3, model="m")]
    policy = compose(shared_ledger(40, 0.5), tree_limits(1, 3), iteration_budget(20))
    written = export(TunedConfig(policy, provenance=PROVENANCE, agents=agents), target)
    for path, text in written.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert limits_of(target_of(target), tmp_path) == written.settings


HOSTILE = "a\"b'c`d\\e\n\r\t*/ ?> </script> ${x} \u2028\x7f\x85 模块 \U0001f600 ---\n"
FORMS = [(name, form) for name, target in TARGETS.items() for form in target.forms]
limits = st.integers(0, 2**53) | st.sampled_from([0, 1, 2**31 - 1])


@pytest.mark.parametrize(("target", "form"), FORMS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    calls=limits,
    usd=st.floats(0, 9e9),
    depth=limits,
    name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
)
@example(calls=0, usd=0.0, depth=0, name=HOSTILE)
def test_what_is_written_for_a_system_can_be_translated_from_it(
    tmp_path: Path, target: str, form: str, calls: int, usd: float, depth: int, name: str
) -> None:
    policy = compose(shared_ledger(calls, usd), tree_limits(depth), iteration_budget(calls), name=name)
    config = TunedConfig(policy, provenance=PROVENANCE, agents=[AgentLimits(name=name, max_calls=calls, model=name)])
    written = export(config, target, form=form)
    folder = tmp_path / hashlib.sha256(f"{calls} {usd} {depth} {name}".encode()).hexdigest()
    for path, text in written.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    told = {key: value for key, value in written.settings.items() if value is not None}
    if not told:
        return
    read = limits_of(target_of(target), folder, form=form)
    assert {key: value for key, value in read.items() if value is not None} == told


def test_two_answers_to_one_question_are_refused(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("Runner.run(a, max_turns=5)\nRunner.run(b, max_turns=6)")
    with pytest.raises(InputError, match=r"expected one max_turns, got \[5, 6\]"):
        limits_of(target_of("openai-agents"), tmp_path / "run.py")


def test_an_amount_that_is_no_literal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("Runner.run(a, max_turns=int(os.environ['N']))")
    with pytest.raises(InputError, match="expected a literal"):
        limits_of(target_of("openai-agents"), tmp_path / "run.py")


@pytest.mark.parametrize(
    ("system", "said", "match"),
    [
        ("langgraph", {"recursion_limits": 25}, "expected one of recursion_limit, got 'recursion_limits'"),
        ("langgraph", {"recursion_limit": -1}, "expected a number of super-steps"),
        ("langgraph", {"recursion_limit": True}, "expected a number of super-steps"),
        ("langgraph", {"recursion_limit": "many"}, "expected a number of super-steps"),
        ("langgraph", {"recursion_limit": float("inf")}, "expected a number of super-steps"),
        ("langgraph", {"recursion_limit": 2.5}, "expected a whole number of super-steps"),
        ("openai-agents", {"max_turns": 2.5}, "expected a whole number of turns"),
        ("prism", {"max_seconds": 1e30}, "expected a finite number below"),
        ("langgraph", {"recursion_limit": [25]}, "expected a number of super-steps"),
        ("langgraph", {}, r"expected settings of LangGraph \(recursion_limit\), got 'none of them'"),
        ("claude-code", {"max-turns": 0}, "0 is taken as no limit; left out it limits nothing"),
        ("bernstein", {"budget": 0}, "0 is no limit there"),
        ("hermes", {"child_timeout_seconds": 10}, "less is taken as 30"),
        ("toml", {"max_steps": 4}, "none: it takes whole policies"),
    ],
)
def test_what_no_system_could_be_told_is_refused_in_one_line(system: str, said: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match) as refused:
        limits_of(target_of(system), said)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("file", "text", "match"),
    [
        ("limits.toml", "recursion_limit = ", "expected TOML"),
        ("limits.json", "[25]", "expected a mapping"),
        ("app.py", "graph.invoke(state)", "or recursion_limit by name"),
        ("app.py", "def (", "expected Python"),
        ("notes.txt", "25", "expected a file of LangGraph"),
        ("missing.toml", None, "expected limits: a file or folder"),
    ],
)
def test_a_file_that_says_no_limit_is_refused_in_one_line(
    tmp_path: Path, file: str, text: str | None, match: str
) -> None:
    if text is not None:
        (tmp_path / file).write_text(text)
    with pytest.raises(InputError, match=match) as refused:
        limits_of(target_of("langgraph"), tmp_path / file)
    assert "\n" not in str(refused.value)


def test_an_empty_folder_says_what_would_have_been_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"claude-flags.txt, .claude/settings.json, .claude/agents/\*.md"):
        limits_of(target_of("claude-code"), tmp_path)


def test_a_language_that_the_system_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "limits.toml").write_text("max_steps = 4")
    with pytest.raises(InputError, match="json, python, typescript, php"):
        limits_of(target_of("prism"), tmp_path / "limits.toml", form="cobol")


def test_yaml_whose_few_lines_mean_more_than_memory_holds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("a: &a [x, x]\nb: &b [*a, *a]\nagent: {max_turns: 4}\n")
    with pytest.raises(InputError, match="an alias"):
        limits_of(target_of("hermes"), tmp_path / "config.yaml")

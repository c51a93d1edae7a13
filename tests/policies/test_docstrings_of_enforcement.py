"""Docstrings of the enforcement rooms say what their signatures and bodies do: parameters, errors, sources."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "harness_lab"
ROOMS = ("budget", "floors", "limits", "pricing", "policies", "agents", "delegation")
FILES = [path for room in ROOMS for path in sorted((ROOT / room).glob("*.py"))]
SECTION = re.compile(r"^(Parameters|Attributes|Returns|Yields|Raises|Notes|Examples)\n-+$", re.MULTILINE)
SAID_ELSEWHERE = "raises what"
HELPERS = {
    "_unknown": "UnknownTicket",
    "not_authorized": "AgentError",
    "not_permitted": "AgentError",
    "not_available": "AgentError",
}
"""Functions that make an error, and which."""
FREE = {
    "preset": "its parameters are a table's names",
    "RunJournal.resume": "options are those of the constructor",
    "resume": "options are those of the constructor",
    "LateReply": "a Reply, whose parameters are said there",
    "SchemaViolation": "its message is the peer's",
}
RULES = re.compile(
    r"source|prism-harness|tangle|TanStack|hermes|bernstein|RFC \d+|genai-prices|LiteLLM|skill|our own", re.IGNORECASE
)
RULED = [
    *(ROOT / room / name for room in ("budget", "limits", "floors", "pricing") for name in ("_rules.py",)),
    *(
        ROOT / "budget" / f"{n}.py"
        for n in ("run", "pool", "period", "durable", "iteration", "lease", "scope", "spend")
    ),
    *(ROOT / "policies" / f"{n}.py" for n in ("at_limit", "hard_cap", "iteration_budget", "reservation_pool")),
    *(
        ROOT / "policies" / f"{n}.py"
        for n in ("runtime_floors", "shadow", "shared_ledger", "tree_limits", "call_costs")
    ),
    *(ROOT / "floors" / f"{n}.py" for n in ("preflight", "table")),
    *(ROOT / "pricing" / f"{n}.py" for n in ("bounds", "request_size")),
    *(ROOT / "agents" / f"{n}.py" for n in ("approvals", "delegating", "driver", "envelope", "groups", "tools")),
    *(ROOT / "delegation" / f"{n}.py" for n in ("audit", "charges", "journal", "plan", "savings")),
]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sections(node: ast.AST) -> dict[str, str]:
    parts = SECTION.split(inspect.cleandoc(ast.get_docstring(node) or ""))  # type: ignore[arg-type]
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def names(section: str) -> set[str]:
    heads = [line.split(" : ")[0] for line in section.splitlines() if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def arguments(function: Function) -> set[str]:
    given = function.args
    return {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)} - {"self", "cls"}


def raised(function: Function) -> set[str]:
    calls = [n.exc.func for n in ast.walk(function) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)]
    found = {call.id for call in calls if isinstance(call, ast.Name)}
    return {HELPERS.get(name, name) for name in found}


def sets(function: Function) -> bool:
    return any(ast.unparse(decorator).endswith(".setter") for decorator in function.decorator_list)


def public(path: Path) -> list[tuple[str, ast.ClassDef | Function]]:
    found: list[tuple[str, ast.ClassDef | Function]] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or node.name.startswith("_"):
            continue
        found.append((node.name, node))
        inside = node.body if isinstance(node, ast.ClassDef) else []
        found += [
            (f"{node.name}.{n.name}", n)
            for n in inside
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and not n.name.startswith("_") and not sets(n)
        ]
    return found


def made_by(node: ast.ClassDef) -> tuple[set[str], set[str], bool]:
    """Return what a class is made from, what making it raises, and whether it is a value of fields."""
    start = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name in ("__init__", "__post_init__")]
    errors = set().union(*(raised(n) for n in start))
    value = any("dataclass" in ast.unparse(d) for d in node.decorator_list)
    fields = {ast.unparse(n.target) for n in node.body if isinstance(n, ast.AnnAssign)} if value else set()
    hidden = {n for n in fields if n == "kind" or n.startswith("_")}
    unset = {
        ast.unparse(n.target)
        for n in node.body
        if isinstance(n, ast.AnnAssign) and ("ClassVar" in ast.unparse(n.annotation) or "init=False" in ast.unparse(n))
    }
    init = [arguments(n) for n in start if n.name == "__init__"]
    return (fields - hidden - unset if value else set().union(*init)), errors, value


def problems_of(name: str, node: ast.ClassDef | Function) -> list[str]:
    doc, said = ast.get_docstring(node) or "", sections(node)
    if not doc:
        return ["has no docstring"]
    found = []
    documented = names(said.get("Parameters", ""))
    if isinstance(node, ast.ClassDef):
        given, errors, value = made_by(node)
        silent = {n for n in given if not re.search(rf"\b{n}\b", doc)} if value else set()
        silent |= given - documented if documented and not value else set()
    else:
        given, errors = arguments(node), raised(node)
        silent = given - documented if documented else set()
        found += [f"documents {n}, which it does not take" for n in documented - given]
    found += [f"does not say what {n} is" for n in sorted(silent)]
    if SAID_ELSEWHERE not in doc:
        found += [f"raises {e} and does not say when" for e in sorted(errors - names(said.get("Raises", "")))]
    return [] if name in FREE else found


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_docstrings_match_signatures_and_name_what_is_raised(path: Path) -> None:
    found = [f"{name} {problem}" for name, node in public(path) for problem in problems_of(name, node)]
    assert found == []


@pytest.mark.parametrize("path", RULED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_module_with_rules_says_where_they_come_from(path: Path) -> None:
    assert RULES.search(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")


def test_what_is_excepted_is_still_there() -> None:
    there = {name for path in FILES for name, _ in public(path)}
    assert set(FREE) <= there


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def f(a):\n    '''Do.\n\n    Parameters\n    ----------\n    b : int\n        It.\n    '''", "documents b"),
        ("def f(a):\n    '''Do.'''\n    raise InputError('x')", "raises InputError"),
        ("@dataclass\nclass F:\n    '''A value.'''\n    width: int", "does not say what width is"),
        ("def f(a):\n    return a", "has no docstring"),
    ],
)
def test_the_check_can_fail(source: str, problem: str) -> None:
    (node,) = ast.parse(source).body
    assert isinstance(node, (ast.ClassDef, ast.FunctionDef))
    assert problem in problems_of(node.name, node)[0]

"""Runs inside an environment that has crewai's files: holds settings against its source; not a test itself.

The package cannot be imported without some hundred others, so the fields of its agents, and the functions that decide
about them, are taken out of its own files one by one.
"""

from __future__ import annotations

import ast
import json
import sys
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

FIELDS = {"max_iter": "agents/agent_builder/base_agent.py", "max_execution_time": "agent/core.py"}
FUNCTIONS = {"has_reached_max_iterations": "utilities/agent_utils.py", "validate_max_execution_time": "agent/utils.py"}


def tree(file: str) -> ast.Module:
    """Return a file of the package."""
    return ast.parse(Path(str(distribution("crewai").locate_file(f"crewai/{file}"))).read_text("utf-8"))


def field(name: str) -> dict[str, Any]:
    """Return an agent's field: its type, and what it is if nothing is said."""
    for node in ast.walk(tree(FIELDS[name])):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            given = node.value.keywords if isinstance(node.value, ast.Call) else []
            default = next((ast.literal_eval(word.value) for word in given if word.arg == "default"), None)
            return {"type": ast.unparse(node.annotation), "default": default}
    raise LookupError(name)


def function(name: str) -> Any:
    """Return one function of the package, by itself."""
    found = next(n for n in tree(FUNCTIONS[name]).body if isinstance(n, ast.FunctionDef) and n.name == name)
    scope: dict[str, Any] = {}
    exec(compile(ast.Module([found], []), name, "exec"), scope)  # noqa: S102 - the package's own code
    return scope[name]


def calls(limit: int) -> int:
    """Return the model calls of an agent that never ends: those below its limit, and one more for an answer."""
    reached = function("has_reached_max_iterations")
    return next(made for made in range(limit + 2) if reached(made, limit)) + 1


def accepts(seconds: int) -> bool:
    """Whether a limit of time is taken."""
    try:
        function("validate_max_execution_time")(seconds)
    except ValueError:
        return False
    return True


def main() -> None:
    """Answer what is asked."""
    asked = json.load(sys.stdin)["cases"][0]
    answer = {
        "version": version("crewai"),
        "fields": {name: field(name) for name in FIELDS},
        "calls": [calls(limit) for limit in asked["max_iter"]],
        "accepts": [accepts(seconds) for seconds in asked["max_execution_time"]],
    }
    json.dump([answer], sys.stdout)


if __name__ == "__main__":
    main()

"""Runs inside an environment that has a package: runs scenarios as anyone would, and says where they print otherwise.

Not a test itself; needs nothing but the package. Reads a stored report (docs/conformance/NAME.json) from standard input
and writes ``[ran, [[id, line, expected, printed], ...]]``. What a line prints is written behind it as a comment.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
MARK = "  # "


def differing(name: str, scenario: str) -> list[list[Any]]:
    """Run one scenario and return the lines that print something else than they say."""
    lines, found = scenario.splitlines(), []

    def told(*values: object) -> None:
        number = next(at for at in _lines_of(name) if MARK in lines[at - 1])
        said = " ".join(map(str, values)).partition("\n")[0]
        expected = lines[number - 1].partition(MARK)[2]
        if said != expected:
            found.append([name, number, expected, said])

    exec(compile(scenario, name, "exec"), {"print": told, "__name__": "scenario"})  # noqa: S102 - that is what it is for
    return found


def _lines_of(name: str) -> Iterator[int]:
    """Yield the lines of the scenario that are being run, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == name:
            yield frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]


def main() -> None:
    """Run every scenario of Python lines."""
    rows = json.load(sys.stdin)["rows"]
    scenarios = {row["id"]: row["scenario"] for row in rows if row["scenario"] and MARK in row["scenario"]}
    answer, sys.stdout = sys.stdout, sys.stderr
    found = [line for name, scenario in scenarios.items() for line in differing(name, scenario)]
    json.dump([len(scenarios), found], answer)


if __name__ == "__main__":
    main()

"""Pages of the documentation as programs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def run_page(name: str, *, quicker: tuple[str, str] = ("", "")) -> dict[str, Any]:
    """Run a page's Python from top to bottom as one program, and return what it named; `quicker` replaces a size."""
    program = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / name).read_text("utf-8"), re.DOTALL))
    assert quicker[0] in program
    code = compile(program.replace(*quicker) if quicker[0] else program, name, "exec", dont_inherit=True)
    found: dict[str, Any] = {"__name__": "page"}
    exec(code, found)  # noqa: S102 - the page is ours
    return found

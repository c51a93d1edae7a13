"""Runs in another Python: makes objects of a package that this one cannot have, and calls their methods.

Not imported here; :mod:`harness_lab.adapters.elsewhere` starts it. A question a line on standard input, an answer a
line on standard output, both JSON. It imports nothing of this package.
"""

from __future__ import annotations

import json
import logging
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

OBJECTS: dict[int, Any] = {}


def given(value: Any) -> Any:
    """Return what a value stands for: an object made before, a path, or itself."""
    if isinstance(value, dict) and "object" in value:
        return OBJECTS[value["object"]]
    return Path(value["path"]) if isinstance(value, dict) and "path" in value else value


def answered(asked: dict[str, Any]) -> Any:
    """Return the answer to a question."""
    named = {key: given(value) for key, value in asked.get("named", {}).items()}
    if "version" in asked:
        return version(asked["version"])
    if "make" in asked:
        module, _, name = asked["make"].partition(":")
        OBJECTS[asked["as"]] = getattr(import_module(module), name)(**named)
        return None
    if "drop" in asked:
        return OBJECTS.pop(asked["drop"], None) and None
    found = getattr(OBJECTS[asked["of"]], asked["call"])(*map(given, asked["given"]), **named)
    return found if isinstance(found, (bool, int, float, str, type(None))) else {"repr": repr(found)}


def main() -> None:
    """Answer until the input ends."""
    told, sys.stdout = sys.stdout, sys.stderr  # what the package prints is no answer
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        try:
            said = {"value": answered(json.loads(line))}
        except Exception as error:  # whatever the package raises is its answer
            said = {"raises": type(error).__name__, "text": str(error)}
        print(json.dumps(said), file=told, flush=True)


if __name__ == "__main__":
    main()

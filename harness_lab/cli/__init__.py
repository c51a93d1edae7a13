"""The command line: ``harness-lab``.

Exit codes: 0 answered; 1 answered, and the answer is no; 2 misuse, in one line.
"""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit; where a package that it needs is not installed, say in one line what to install."""
    try:
        from harness_lab.cli.app import main as run

        run(arguments)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "harness_lab":
            raise
        told = (
            f"the command line needs {error.name}, which is not installed; pip install harness-lab (without --no-deps)"
        )
        print(f"harness-lab: {told}", file=sys.stderr)
        sys.exit(2)


__all__ = ["main"]

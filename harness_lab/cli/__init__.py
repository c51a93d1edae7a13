"""The command line: ``harness-lab``.

Exit codes: 0 answered; 1 answered, and the answer is no; 2 misuse, in one line.
"""

from harness_lab.cli.app import main

__all__ = ["main"]

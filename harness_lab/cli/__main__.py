"""``python -m harness_lab.cli``: the command in an environment that has no script of that name."""

from harness_lab.cli import main

main()

"""The command where only the package itself is installed."""

from __future__ import annotations

import subprocess
import sys

BARE = (
    "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]; "
    "sys.path.insert(0, {root!r}); from harness_lab.cli import main; main(['--help'])"
)


def test_without_its_packages_the_command_says_in_one_line_what_to_install() -> None:
    import harness_lab

    root = harness_lab.__path__[0].removesuffix("harness_lab")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BARE.format(root=root)], capture_output=True, text=True, check=False
    )
    told = "harness-lab: the command line needs typer, which is not installed; pip install harness-lab"
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(told)

"""Tests that need other people's packages in their own process are run inside the environment that has them.

``HARNESS_LAB_PEERS`` names it, ``tests/peers/install`` makes it; without, they are skipped.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

PEERS = os.environ.get("HARNESS_LAB_PEERS", "")
HERE = Path(__file__).parent


@pytest.mark.parametrize("name", ["test_real_limiters", "test_real_loops", "test_real_simulated", "test_real_tokenops"])
def test_what_needs_the_packages_holds_where_they_are(name: str) -> None:
    python, bernstein = (Path(PEERS, environment, "bin", "python") for environment in ("agents", "bernstein"))
    if not PEERS or not python.exists():
        pytest.skip("HARNESS_LAB_PEERS names no folder with an environment 'agents' (tests/peers/install makes it)")
    inside = {**os.environ, "HARNESS_LAB_BERNSTEIN_PYTHON": str(bernstein) if bernstein.exists() else ""}
    options = ["-q", "-n0", "-p", "no:cacheprovider", "-W", "default"]  # what the packages leave open is not ours
    command = [str(python), "-m", "pytest", *options, str(HERE / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parents[1], env=inside)
    *_, told = done.stdout.strip().splitlines() or [""]
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-500:]
    assert " passed" in told
    assert "skipped" not in told or not bernstein.exists()

"""Runs inside an environment that has bernstein 3.23.0: loads exported configs as it does; not a test itself."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Answer what is asked."""
    from bernstein.core.config.seed_parser import parse_seed  # type: ignore[import-not-found]

    answers = []
    told = sys.stdout
    sys.stdout = sys.stderr
    for text in json.load(sys.stdin)["cases"]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bernstein.yaml"
            file.write_text(f"goal: nothing\n{text}", "utf-8")
            seed = parse_seed(file)
        held = {"budget": seed.budget_usd, "max_cost_per_agent": seed.max_cost_per_agent, "max_agents": seed.max_agents}
        answers.append(held)
    json.dump(answers, told)


if __name__ == "__main__":
    main()

"""Runs inside an environment that has hermes-agent 0.19.0: loads exported configs as it does; not a test itself."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Answer what is asked."""
    home = Path(os.environ["HERMES_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    from hermes_cli.config import load_config  # type: ignore[import-not-found]
    from tools import delegate_tool as peer  # type: ignore[import-not-found]

    answers = []
    for text in json.load(sys.stdin)["cases"]:
        (home / "config.yaml").write_text(text, "utf-8")
        config = load_config()
        peer._load_config = lambda config=config: config["delegation"]
        answers.append(
            {
                "agent.max_turns": config["agent"]["max_turns"],
                "delegation.max_iterations": config["delegation"]["max_iterations"],
                "delegation.max_spawn_depth": peer._get_max_spawn_depth(),
                "delegation.max_concurrent_children": peer._get_max_concurrent_children(),
                "delegation.child_timeout_seconds": peer._get_child_timeout(),
            }
        )
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()

"""From one's own ceiling to a tuned config: what `ceiling --write` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.cli.export import read_key
from harness_lab.cli.output import note

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.analyze import CeilingChoice
    from harness_lab.settlements import Settlements


def write_config(
    choice: CeilingChoice, records: Settlements, path: Path, *, into: Path | None, key_file: Path | None
) -> None:
    """Write a ceiling as a tuned config: alone, or in the last policy of an experiment file."""
    from harness_lab.export.tuned import config_of
    from harness_lab.simulate import load_experiment

    experiment = None if into is None else load_experiment(into)
    policy = None if experiment is None else experiment.policies[-1]
    config = config_of(choice, records, policy=policy, experiment=experiment)
    config.write(path, key=read_key(key_file))
    note(f"wrote {path}; next: harness-lab export {path} --target ...")

"""Scenarios: the same question asked of another workload or another provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_lab.errors import InputError

if TYPE_CHECKING:
    from harness_lab.providers import MockProvider
    from harness_lab.simulate.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A named world in which every policy of an experiment is simulated.

    Parameters
    ----------
    name : str
        The column `scenario` of its rows.
    workload : Workload or None
        What agents do there; None: what they do in the experiment.
    provider : MockProvider or None
        What answers them there; None: the experiment's.
    """

    name: str
    workload: Workload | None = None
    provider: MockProvider | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError("name of the scenario", expected="some text", got=self.name)

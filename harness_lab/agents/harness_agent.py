"""A whole harness as a child: its name and description are its tool's, and it stays inside its parent's limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_lab.agents.loop import Harness
from harness_lab.errors import HarnessLabError
from harness_lab.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_lab.agents.groups import Agents
    from harness_lab.agents.ports import Brain, Model
    from harness_lab.agents.record import Sink
    from harness_lab.policies.protocol import End


class HarnessStopped(HarnessLabError):
    """A harness that ran as a child did not complete.

    Attributes
    ----------
    name : str
        The harness.
    end : End
        How it ended.
    """

    def __init__(self, name: str, end: End) -> None:
        self.name, self.end = name, end
        super().__init__(name, end)

    def __str__(self) -> str:
        return f"harness {self.name} ended as {self.end.outcome} ({self.end.stopped_by or 'no limit'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessAgent:
    """A harness that can be started like any agent (:class:`~harness_lab.agents.groups.Agents`).

    Parameters
    ----------
    name, description : str
        What its tool is called and says.
    model : Model
        What answers its calls.
    brain : callable
        Makes its brain from the task.
    sink : Sink
        Takes its records.

    Notes
    -----
    Its calls, its children and theirs are asked of the parent's policy, below the parent's node: it has no tree of its
    own to step out into.
    """

    name: str
    description: str
    model: Model
    brain: Callable[[Any], Brain]
    sink: Sink

    async def __call__(self, below: Agents, task: Any) -> End:
        """Run the harness on a task.

        Raises
        ------
        HarnessStopped
            If it did not complete.
        """
        harness = Harness(below.runtime, below.policy, self.model, self.sink)
        end = await harness.run_within(below.node, self.name, self.brain(task))
        if end.outcome is not Outcome.COMPLETED:
            raise HarnessStopped(self.name, end)
        return end

"""A tree of agents in virtual time, under tree limits, with a log of what happened when."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from harness_lab.agents.groups import Agents, Operation, StartRefused
from harness_lab.clock import Time
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.limits import SubagentLimits, tool_error
from harness_lab.policies import Grant, SpawnAsk, preset, tree_limits
from harness_lab.simulate import SimRuntime
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

MS: Final = 1_000_000
"""Nanoseconds of a millisecond."""


def limits_of(theirs: Mapping[str, Any]) -> SubagentLimits:
    """Return limits from their spelling; what is not there is no limit."""
    timeout = theirs.get("timeoutMs")
    return SubagentLimits(
        max_depth=theirs.get("maxDepth"),
        max_concurrent=theirs.get("maxConcurrent"),
        max_calls=theirs.get("maxCalls"),
        timeout_s=None if timeout is None else timeout / 1000,
    )


class Tree:
    """A root under limits, its agents as code, and a log.

    Parameters
    ----------
    theirs : mapping
        The limits, in the spelling of the cases.
    under : str or None
        The preset whose other choices hold; ours if None.
    **choices : object
        Choices that the case makes itself.

    Attributes
    ----------
    log : list of (int, str)
        What happened, with its time in milliseconds.
    """

    def __init__(self, theirs: Mapping[str, Any], under: str | None = None, **choices: Any) -> None:
        limits = asdict(limits_of(theirs)) | choices
        self.runtime = SimRuntime()
        spec = tree_limits(**limits) if under is None else preset(under, tree_limits=limits)
        self.policy = spec.start()
        self.log: list[tuple[int, str]] = []

    def now(self) -> int:
        """Return the time, milliseconds."""
        return self.runtime.now() // MS

    def code(self, ms: float, value: Any = "ok", *, raises: str = "", name: str = "") -> Any:
        """Return an agent that takes some time and then has a value, or raises."""

        async def run(_below: Agents, _task: Any) -> Any:
            try:
                await self.runtime.sleep(round(ms * MS))
            except BaseException:
                self.log.append((self.now(), f"{name} aborted"))
                raise
            self.log.append((self.now(), f"{name} finished"))
            if raises:
                raise ValueError(raises)
            return value

        return run

    def play(self, body: Callable[[Agents], Awaitable[Any]], **agents: Any) -> Any:
        """Run a root's body to its end; return its value, or what it raised."""
        answer = self.policy.spawn(SpawnAsk(None, (), amounts()), Time(0))
        if not isinstance(answer, Grant):
            raise UnknownShape("a root that may not start")
        root = Agents(self.runtime, self.policy, answer.ticket, agents)
        out: list[Any] = []

        async def main() -> None:
            try:
                out.append(await body(root))
            except Exception as error:
                out.append(error)

        self.runtime.kernel.spawn(main(), "main")
        self.runtime.kernel.run()
        return out[0]


def tried(agents: Agents, name: str) -> Operation | str:
    """Start an agent as a tool does: a refusal is the tool's error text."""
    try:
        return agents.start(name)
    except StartRefused as error:
        return tool_error(error.refusal)


def ran(told: Iterable[Any]) -> int:
    """Return how many starts were not refused."""
    return sum(isinstance(one, Operation) for one in told)

"""Your own agent in virtual time: ordinary asyncio code, with our limits or your own limiter in it.

The agent is a coroutine function that is given a :class:`Seat`. It may use asyncio as it likes (``sleep``, ``gather``,
``timeout``, semaphores, a limiter of your own): all of it happens in virtual time, on a loop whose clock jumps.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Coroutine, Mapping
from importlib.metadata import version
from random import Random
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness_lab import draws
from harness_lab.agents import AsyncioRuntime, Harness
from harness_lab.agents.ports import Call
from harness_lab.agents.record import NodeRecord
from harness_lab.clock import NS_PER_S
from harness_lab.errors import HarnessLabError, InputError
from harness_lab.outcome import CHANNELS, Cause, Code, Outcome, Refusal
from harness_lab.policies import COMPLETED, End, PolicySpec, SpawnAsk
from harness_lab.settlements import Settlements
from harness_lab.simulate.explain import Timeline, with_agents
from harness_lab.simulate.limiter import policy_of
from harness_lab.simulate.plain import plain
from harness_lab.simulate.result import Result
from harness_lab.simulate.rows import Rows, calls_frame, nodes_frame
from harness_lab.simulate.trace import Traced, events_frame
from harness_lab.simulate.virtual_loop import VirtualLoop
from harness_lab.usage import Amounts, count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_lab.agents.ports import Reply, WorldModel
    from harness_lab.policies.protocol import Ticket
    from harness_lab.providers import MockProvider

Agent = Callable[["Seat"], Coroutine[Any, Any, Any]]
"""An agent: a coroutine function of one argument. What it returns goes to whoever started it; an ``End`` says how it
ended, anything else that it completed."""
_NOTHING: Amounts = (None,) * len(CHANNELS)
_LATE = {Code.TIME_EXHAUSTED: Outcome.TIMED_OUT, Code.DEADLINE: Outcome.TIMED_OUT, Code.CANCELLED: Outcome.CANCELLED}


class Refused(HarnessLabError):
    """A limit said no to a call of the agent; an agent that does not catch it ends there.

    Attributes
    ----------
    refusal : Refusal
        Every limit that fell short, and what would help.
    """

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(str(refusal))

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.refusal,))


class Seat:
    """What an agent is given: its model, its children, its luck.

    Attributes
    ----------
    path : tuple
        Its name in the tree.
    random : random.Random
        Its own luck, named by seed, run and path: the same under every policy, whatever other agents do.
    """

    __slots__ = ("_calls", "_children", "_harness", "_key", "_node", "_record", "path", "random")

    def __init__(self, harness: AgentHarness, node: Ticket, record: NodeRecord, key: int) -> None:
        self._harness = harness
        self._node = node
        self._record = record
        self._key = key
        self._calls = 0
        self._children = 0
        self.path = record.path
        self.random = Random(key)  # noqa: S311 - no secret

    @property
    def now_s(self) -> float:
        """Seconds of virtual time since the run began."""
        return self._harness.runtime.now() / NS_PER_S

    async def call(self, input_tokens: int, *, model: str | None = None, resent: int = 0) -> Reply:
        """Make one model call.

        Parameters
        ----------
        input_tokens : int
            Prompt tokens.
        model : str, optional
            Which model; the provider's first if None.
        resent : int
            The part of the prompt that was sent before, and that a cache may hold.

        Returns
        -------
        Reply
            ``status`` (``completed`` or ``failed``), token counts and cost as reported.

        Raises
        ------
        Refused
            If a limit says no; nothing was sent then.
        """
        name = self._harness.first_model if model is None else model
        prompt, again = count("input_tokens", input_tokens), count("resent", resent, maximum=input_tokens)
        call = Call(name, self._key, self._calls, 0, prompt, again)
        self._calls += 1
        told = await self._harness._call(self._node, self._record, call)
        if isinstance(told, Refusal):
            raise Refused(told)
        return told

    async def child(self, agent: Agent, *, name: str = "child", budget: Amounts = _NOTHING) -> tuple[End, Any]:
        """Run another agent below this one, and wait for it; start several with ``asyncio.gather``.

        Parameters
        ----------
        agent : coroutine function
            What it does.
        name : str
            The column `agent` of its row.
        budget : Amounts
            What is asked for it (:func:`harness_lab.usage.amounts`).

        Returns
        -------
        end : End
            How it ended; ``end.outcome`` is ``denied`` if a limit did not let it start.
        result : object
            What it returned; None if it did not end by itself.
        """
        place = (max(self._calls - 1, 0), self._children, 0)
        self._children += 1
        return await self._harness.below(self._node, self._record, place, agent, name, budget, self._key)


class AgentHarness(Harness):
    """The agent loop with a coroutine in the place of a brain."""

    __slots__ = ("first_model", "results")

    def __init__(self, *arguments: Any, first_model: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.first_model = first_model
        self.results: dict[Any, Any] = {}

    async def below(
        self, node: Ticket, above: NodeRecord, place: tuple[int, int, int], agent: Agent, name: str, budget: Amounts,
        key: int,
    ) -> tuple[End, Any]:  # fmt: skip
        """Start an agent below a node, and wait for it."""
        path = (*above.path, place)
        record = NodeRecord(above, path, name, budget, self.runtime.now())
        mine: Any = (agent, draws.child_key(key, *place))
        end = await self._start(SpawnAsk(node, path, budget), record, lambda: mine)
        return end, self.results.pop(path, None)

    async def _think(self, node: Ticket, record: NodeRecord, brain: Any) -> End:
        agent, key = brain
        try:
            told = self.results[record.path] = await agent(Seat(self, node, record, key))
        except Refused as refused:
            record.refusal = refused.refusal
            code = refused.refusal.code
            return End(_LATE.get(code, Outcome.EXHAUSTED), code, Cause.LIMIT)
        return told if isinstance(told, End) else COMPLETED


def simulate_agent(
    agent: Agent,
    *,
    provider: MockProvider,
    policies: Sequence[PolicySpec] | Mapping[str, Callable[[str], Any]],
    runs: int = 100,
    seed: int = 0,
    name: str = "own agent",
) -> Result:
    """Simulate an ordinary asyncio agent under several policies, or under your own limiters.

    Parameters
    ----------
    agent : coroutine function
        What the root does; it is given a :class:`Seat`.
    provider : MockProvider
        What answers its calls.
    policies : sequence of PolicySpec, or mapping of str to callable
        Our policies; or your own limiters by name: a callable makes one for a run. A limiter is any object with the
        four questions ``spawn``, ``admit``, ``settle`` and ``close``; :class:`harness_lab.simulate.Limiter` is a base
        for one that has not all of them.
    runs, seed : int
        Trees under each policy, and the name of their luck.
    name : str
        The column `agent` of the root, and `scenario`.

    Returns
    -------
    Result
        The same rows as of any experiment.

    Raises
    ------
    InputError
        If there is no policy, or a limiter lacks one of the four questions.
    """
    if count("runs", runs, maximum=10_000_000) == 0:
        raise InputError("runs", expected="at least 1", got=0)
    named: Any = policies
    starts = dict(named) if isinstance(policies, Mapping) else {spec.name: spec.start for spec in named}
    if not starts or not provider.models:
        raise InputError("policies and models", expected="at least one of each", got=(list(starts), []))
    frames = [_frame(agent, provider, policy, start, range(runs), seed, name) for policy, start in starts.items()]
    table = Settlements.from_columns(pd.concat(frames, ignore_index=True))
    manifest = {
        "experiment": name, "agent": getattr(agent, "__qualname__", repr(agent)), "seed": seed, "runs": runs,
        "runs_done": runs, "ended": "all runs", "policies": list(starts), "provider": plain(provider),
        "specs": {spec.name: plain(spec) for spec in named if isinstance(spec, PolicySpec)},
        "draws": draws.VERSION, "engine": "asyncio", "python": platform.python_version(),
        "harness_lab": version("harness-lab"),
    }  # fmt: skip
    return Result(settlements=table, manifest=manifest)


def explain_agent(
    agent: Agent, *, provider: MockProvider, policy: PolicySpec | Callable[[str], Any], run: int = 0, seed: int = 0,
    name: str = "own agent",
) -> Timeline:  # fmt: skip
    """Replay one run of your own agent alone, and keep everything that happened; see :func:`simulate_agent`.

    Parameters
    ----------
    agent, provider, seed, name
        As for :func:`simulate_agent`.
    policy : PolicySpec or callable
        Our policy, or what makes your limiter for a run.
    run : int
        Number of the run.
    """
    label = policy.name if isinstance(policy, PolicySpec) else getattr(policy, "__name__", "limiter")
    start = policy.start if isinstance(policy, PolicySpec) else policy
    traced, rows = Traced(policy_of(start(str(run)))), Rows()
    _play(agent, provider, provider.compile(), traced, run, seed, name, rows, keep_calls=True)
    nodes = nodes_frame(rows.nodes, policy=label, scenario=name, backend="mock")
    table = Settlements.from_columns(nodes, calls_frame(rows.calls, policy=label, scenario=name))
    events = with_agents(events_frame(traced.events), table)
    manifest = {"agent": getattr(agent, "__qualname__", repr(agent)), "seed": seed, "draws": draws.VERSION}
    return Timeline(
        run=str(run), policy=label, scenario=name, events=events, settlements=table, manifest=manifest
    )  # fmt: skip


def _frame(
    agent: Agent, provider: MockProvider, policy: str, start: Callable[[str], Any], runs: range, seed: int, name: str
) -> pd.DataFrame:
    model, rows = provider.compile(), Rows()
    for run in runs:
        _play(agent, provider, model, policy_of(start(str(run))), run, seed, name, rows)
    return nodes_frame(rows.nodes, policy=policy, scenario=name, backend="mock")


def _play(
    agent: Agent, provider: MockProvider, model: WorldModel, policy: Any, run: int, seed: int, name: str, rows: Rows, *,
    keep_calls: bool = False,
) -> None:  # fmt: skip
    rows.run = run
    loop, first = VirtualLoop(), next(iter(provider.models))
    runtime = AsyncioRuntime(loop)
    harness = AgentHarness(runtime, policy, model.fresh(), rows, keep_calls=keep_calls, first_model=first)
    root: Any = (agent, draws.run_key(seed, run))
    loop.run_until_complete(harness.run(name, _NOTHING, lambda: root))
    loop.run_on()

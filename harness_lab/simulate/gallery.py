"""Ten workloads that match patterns people run, each with a provider: to start from, or to try a policy on.

Sizes are of the order that published records show (a coding agent's first prompt of some 14,000 tokens, contexts that
are sent again with every call and mostly read from a cache); none is a measurement. Prices are round figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_lab.errors import InputError
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import MockProvider, ModelProfile, RateLimits
from harness_lab.simulate.arrivals import Arrivals
from harness_lab.simulate.config_errors import did_you_mean
from harness_lab.simulate.profile import AgentProfile, Retry, Spawn
from harness_lab.simulate.workload import Workload
from harness_lab.stats.distributions import Distribution
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from collections.abc import Callable

_DAY_S = 86_400
_DELIVERY = ((0.4, 0.0), (0.9, 0.5), (1.0, 0.85))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A named workload and what answers it.

    Parameters
    ----------
    name, what : str
        Its name, and what it is in one sentence.
    workload : Workload
        What the agents do.
    provider : MockProvider
        What answers them: models ``large`` and ``small``.
    """

    name: str
    what: str
    workload: Workload
    provider: MockProvider


def gallery() -> dict[str, str]:
    """Return the names of the workloads and what each is, in one sentence."""
    return {name: what for name, (what, _) in _SCENES.items()}


def from_gallery(name: str) -> Scene:
    """Return a named workload and its provider.

    Raises
    ------
    InputError
        If there is none of that name; the message has the nearest.

    Examples
    --------
    >>> scene = from_gallery("coding-agent")
    >>> scene.workload.root
    'coder'
    """
    if name not in _SCENES:
        near = did_you_mean(str(name), _SCENES)
        raise InputError("workload of the gallery", expected=f"one of {', '.join(_SCENES)}", got=name, hint=near)
    what, make = _SCENES[name]
    workload, provider = make()
    return Scene(name=name, what=what, workload=workload, provider=provider)


def _logn(median: float, s: float, high: float) -> Distribution:
    return Distribution.of("lognorm", s=s, scale=median, high=high)


def _provider(*, limits: RateLimits | None = None, error_rate: float = 0.01) -> MockProvider:
    models = {
        name: ModelProfile(
            output_tokens=_logn(400, 0.9, 16_000),
            latency_s=_logn(first, 0.5, 60),
            seconds_per_output_token=each,
            error_rate=error_rate,
            cache_share=0.95,
            cache_write_share=0.9,
            cache_ttl_s=300,
            max_output_tokens=16_000,
            limits=limits,
        )
        for name, first, each in (("large", 2.0, 0.015), ("small", 0.8, 0.006))
    }
    prices = {
        "large": (Price.usd_per_million(input=3, output=15, cache_read=0.3, cache_write=3.75),),
        "small": (Price.usd_per_million(input=0.4, output=2, cache_read=0.04, cache_write=0.5),),
    }
    return MockProvider(models=models, prices=PriceTable(prices))


def _coder(**changes: object) -> AgentProfile:
    values: dict[str, object] = {
        "model": "large",
        "calls": _logn(25, 0.7, 250),
        "startup_tokens": _logn(14_000, 0.2, 40_000),
        "growth_tokens": _logn(700, 1.0, 20_000),
        "tool_s": _logn(3, 1.0, 600),
        "shared_tokens": 12_000,
        "failure_rate": 0.05,
        "delivery": _DELIVERY,
    }
    return AgentProfile(**(values | changes))  # type: ignore[arg-type]


def _coding_agent() -> tuple[Workload, MockProvider]:
    return Workload(agents={"coder": _coder()}, root="coder"), _provider()


def _deep_research() -> tuple[Workload, MockProvider]:
    ask = amounts(tokens=400_000)
    lead = AgentProfile(
        model="large",
        calls=Distribution.of("uniform", loc=4, scale=5),
        startup_tokens=_logn(6_000, 0.2, 20_000),
        growth_tokens=_logn(2_500, 0.6, 30_000),
        spawns=(
            Spawn(agent="searcher", count=Distribution.of("uniform", loc=3, scale=3), after=(0,), budget=ask),
            Spawn(agent="searcher", count=2, after=(1, 2), chance=0.5, budget=ask),
        ),
        delivery=_DELIVERY,
    )
    searcher = AgentProfile(
        model="small",
        calls=_logn(9, 0.5, 60),
        startup_tokens=_logn(4_000, 0.2, 12_000),
        growth_tokens=_logn(3_500, 0.8, 40_000),
        tool_s=_logn(4, 0.8, 120),
        failure_rate=0.06,
    )
    return Workload(agents={"lead": lead, "searcher": searcher}, root="lead"), _provider()


def _reviewer_panel() -> tuple[Workload, MockProvider]:
    chair = AgentProfile(
        model="large",
        calls=Distribution.constant(3),
        startup_tokens=_logn(20_000, 0.4, 90_000),
        spawns=(Spawn(agent="reviewer", count=5, after=(0,), budget=amounts(tokens=150_000), max_attempts=2),),
        delivery=_DELIVERY,
    )
    reviewer = AgentProfile(
        model="small",
        calls=Distribution.of("uniform", loc=2, scale=4),
        startup_tokens=_logn(22_000, 0.4, 95_000),
        growth_tokens=_logn(600, 0.7, 8_000),
        shared_tokens=18_000,
        failure_rate=0.08,
    )
    return Workload(agents={"chair": chair, "reviewer": reviewer}, root="chair"), _provider()


def _map_reduce() -> tuple[Workload, MockProvider]:
    root = AgentProfile(
        model="large",
        calls=Distribution.constant(2),
        startup_tokens=_logn(3_000, 0.2, 9_000),
        growth_tokens=_logn(12_000, 0.3, 60_000),
        spawns=(Spawn(agent="mapper", count=24, after=(0,), budget=amounts(tokens=30_000), max_attempts=3),),
        delivery=_DELIVERY,
    )
    mapper = AgentProfile(
        model="small", calls=Distribution.constant(1), startup_tokens=_logn(9_000, 0.5, 25_000), failure_rate=0.03
    )
    return Workload(agents={"root": root, "mapper": mapper}, root="root"), _provider()


def _runaway_delegator() -> tuple[Workload, MockProvider]:
    boss = AgentProfile(
        model="large",
        calls=Distribution.of("uniform", loc=3, scale=4),
        startup_tokens=_logn(8_000, 0.2, 20_000),
        growth_tokens=_logn(900, 0.6, 9_000),
        spawns=(Spawn(agent="delegate", count=2, after=(0, 1), budget=amounts(tokens=200_000)),),
    )
    # each delegate starts 0.9 more on average, so trees end, but some grow very large
    delegate = AgentProfile(
        model="small",
        calls=Distribution.of("uniform", loc=2, scale=4),
        startup_tokens=_logn(8_000, 0.2, 20_000),
        growth_tokens=_logn(900, 0.6, 9_000),
        spawns=(Spawn(agent="delegate", count=3, after=(0,), chance=0.3, budget=amounts(tokens=200_000)),),
    )
    return Workload(agents={"boss": boss, "delegate": delegate}, root="boss"), _provider()


def _code_execution() -> tuple[Workload, MockProvider]:
    writer = AgentProfile(
        model="large",
        calls=_logn(5, 0.4, 30),
        startup_tokens=_logn(12_000, 0.2, 30_000),
        growth_tokens=_logn(1_500, 0.8, 15_000),
        tool_s=_logn(2, 0.8, 60),
        spawns=(Spawn(agent="program", after=(0, 2), budget=amounts(calls=40)),),
        delivery=_DELIVERY,
    )
    program = AgentProfile(
        model="small",
        calls=Distribution.constant(30),
        startup_tokens=Distribution.constant(600),
        tool_s=Distribution.constant(0.2),
    )
    return Workload(agents={"writer": writer, "program": program}, root="writer"), _provider()


def _retry_storm() -> tuple[Workload, MockProvider]:
    retry = Retry(layers=(3, 3), base_s=1, jitter="none", cap_s=30)
    root = AgentProfile(
        model="small",
        calls=Distribution.constant(2),
        startup_tokens=_logn(3_000, 0.2, 9_000),
        retry=retry,
        spawns=(Spawn(agent="worker", count=12, after=(0,), max_attempts=2),),
    )
    worker = AgentProfile(
        model="small", calls=Distribution.constant(4), startup_tokens=_logn(2_500, 0.2, 8_000), retry=retry
    )
    provider = _provider(limits=RateLimits(requests_per_minute=60, burst_s=5, retry_after_s=2), error_rate=0.1)
    return Workload(agents={"root": root, "worker": worker}, root="root"), provider


def _team_month() -> tuple[Workload, MockProvider]:
    hours = (0.0,) * 8 + (1, 2, 3, 3, 1, 2, 3, 3, 2, 1) + (0.3,) * 6
    arrivals = Arrivals(
        period_s=28 * _DAY_S,
        per_day=30,
        weekdays=(1, 1, 1, 1, 0.8, 0.1, 0.1),
        hours=hours,
        growth_per_week=0.1,
        users=8,
    )
    agents = {"coder": _coder(calls=_logn(12, 0.7, 120))}
    return Workload(agents=agents, root="coder", arrivals=arrivals), _provider()


def _pair_programming() -> tuple[Workload, MockProvider]:
    coder = _coder(calls=_logn(30, 0.6, 200), think_s=_logn(90, 1.0, 3_600), think_chance=0.3)
    return Workload(agents={"coder": coder}, root="coder"), _provider()


def _marathon() -> tuple[Workload, MockProvider]:
    coder = _coder(
        calls=_logn(180, 0.4, 800),
        growth_tokens=_logn(1_600, 0.8, 30_000),
        context_limit_tokens=160_000,
        compact_to_tokens=8_000,
    )
    return Workload(agents={"coder": coder}, root="coder"), _provider()


_SCENES: dict[str, tuple[str, Callable[[], tuple[Workload, MockProvider]]]] = {
    "coding-agent": (
        "One agent that edits and tests in a loop and sends its context again each time.",
        _coding_agent,
    ),
    "deep-research": ("A lead that fans out to searchers in two waves and writes up what they found.", _deep_research),
    "reviewer-panel": ("Five reviewers read the same change; those that fail are asked once more.", _reviewer_panel),
    "map-reduce": ("Twenty-four small jobs at once and one call that puts them together.", _map_reduce),
    "runaway-delegator": ("Delegates that delegate: most trees are small, a few are very large.", _runaway_delegator),
    "code-execution": ("One step writes a program that makes 30 calls of its own.", _code_execution),
    "retry-storm": ("Twelve workers behind a tight rate limit, with nested retries and no jitter.", _retry_storm),
    "team-month": (
        "Eight people for four weeks: office hours, quiet weekends, a tenth more each week.",
        _team_month,
    ),
    "pair-programming": (
        "A coding agent that asks a person now and then; caches go cold meanwhile.",
        _pair_programming,
    ),
    "marathon": ("A session of some 180 calls that compacts its context again and again.", _marathon),
}

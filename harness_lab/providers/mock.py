"""A stochastic mock provider: answers calls with drawn sizes, times, errors and gaps in what it reports.

What the provider *bills* (the truth) is kept apart from what it *reports*; enforcement sees only the report.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from harness_lab import draws
from harness_lab.agents.ports import Call, Reply, Runtime, WorldModel
from harness_lab.clock import NS_PER_S, ns
from harness_lab.errors import InputError
from harness_lab.outcome import Purpose
from harness_lab.pricing import PriceTable
from harness_lab.pricing import _rules as price_rules
from harness_lab.pricing.table import PUSD_PER_NUSD
from harness_lab.providers.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness_lab.providers.profile import ModelProfile
    from harness_lab.usage import Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class MockProvider:
    """A provider of several models.

    Parameters
    ----------
    models : mapping of str to ModelProfile
        How each model answers.
    prices : PriceTable
        What each model costs. A model without a price has unknown cost, never zero.
    billing : tuple of (float, PriceTable)
        What is really billed from an instant on: seconds from the start, ascending, and prices. Before the first, and
        for reports and worst cases always, `prices` hold. So a table that went out of date drifts from the bill.
    """

    models: Mapping[str, ModelProfile] = field(default_factory=dict)
    prices: PriceTable = field(default_factory=PriceTable)
    billing: tuple[tuple[float, PriceTable], ...] = ()

    def __post_init__(self) -> None:
        starts = [ns(at, what="billing") for at, _ in self.billing]
        if starts != sorted(set(starts)) or any(at < 0 for at in starts):
            raise InputError("billing", expected="ascending instants from 0", got=[at for at, _ in self.billing])

    def compile(self) -> WorldModel:
        """Make the draw tables; the result answers calls."""
        if not self.billing and all(profile.plain for profile in self.models.values()):
            return MockModel(self)
        from harness_lab.providers.lively import LivelyModel  # it builds on this module

        return LivelyModel(self)


class Answers:
    """One model's tables and thresholds as ints."""

    __slots__ = (
        "drawn",
        "error",
        "flat",
        "latency",
        "latency_table",
        "max_output",
        "ns_per_token",
        "output",
        "output_table",
        "read_ppm",
        "tiers",
        "unreported",
        "write_ppm",
    )

    def __init__(self, profile: ModelProfile, prices: PriceTable, model: str) -> None:
        self.output_table, self.latency_table = Table(profile.output_tokens), Table(profile.latency_s, NS_PER_S)
        self.output, self.latency = self.output_table.draw, self.latency_table.draw
        self.drawn: DrawnAnswers | None = None
        self.ns_per_token = round(profile.seconds_per_output_token * NS_PER_S)
        self.error = draws.chance(profile.error_rate)
        self.unreported = draws.chance(profile.unreported_rate)
        self.read_ppm = round(profile.cache_share * 1_000_000)
        self.write_ppm = round(profile.cache_write_share * 1_000_000)
        self.max_output = profile.max_output_tokens
        tiers = prices.models.get(model, ())
        self.tiers = tuple((tier.above_input_tokens, tier.rates()) for tier in tiers)
        self.flat = flat_rates(self.tiers)

    def split(self, call: Call) -> tuple[int, int, int]:
        """Return the prompt of a call as fresh tokens, tokens read from a cache and tokens written to it."""
        total = call.input_total
        if not (self.read_ppm or self.write_ppm):
            return total, 0, 0
        read = call.resent * self.read_ppm // 1_000_000
        write = (total - read) * self.write_ppm // 1_000_000
        return total - read - write, read, write

    def cost(self, fresh: int, read: int, write: int, output: int) -> int | None:
        """Return the cost of a call, nano-dollars; None without a price."""
        flat = self.flat
        if flat is not None:
            return fresh * flat[0] + read * flat[1] + write * flat[2] + output * flat[3]
        if not self.tiers:
            return None
        rates = self.tiers[0][1]
        for above, tier in self.tiers[1:]:
            if fresh + read + write > above:
                rates = tier
        pusd = price_rules.picodollars(fresh, read, write, 0, output, *rates)
        return price_rules.half_even(pusd, PUSD_PER_NUSD)

    def worst(self, prompt: int) -> int | None:
        """Return the cost of the worst case of a call, nano-dollars, rounded up; None without a price."""
        most, flat, worst = self.max_output, self.flat, -1
        if flat is not None:
            return flat[4] * prompt + flat[3] * most
        for above, (p_fresh, p_read, p_write, p_write_1h, p_output) in self.tiers:
            if above == 0 or above < prompt:
                worst = max(worst, max(p_fresh, p_read, p_write, p_write_1h) * prompt + p_output * most)
        return None if worst < 0 else price_rules.up(worst, PUSD_PER_NUSD)


def flat_rates(tiers: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[int, int, int, int, int] | None:
    """Return one tier's rates in whole nano-dollars a token: fresh, read, write, output, and the dearest of a prompt.

    None where there are several tiers, or where a rate has a fraction of a nano-dollar, which has to be rounded.
    """
    if len(tiers) != 1 or tiers[0][0] != 0 or any(rate % PUSD_PER_NUSD for rate in tiers[0][1]):
        return None
    fresh, read, write, write_1h, output = (rate // PUSD_PER_NUSD for rate in tiers[0][1])
    return fresh, read, write, output, max(fresh, read, write, write_1h)


class DrawnAnswers(NamedTuple):
    """The draws of many nodes' calls, made together; the same numbers as one at a time.

    Parameters
    ----------
    first : dict of int to int
        By a node's draw key: the place of its first call.
    calls : int
        Calls of a node that were drawn at most, first attempts only.
    output, latency : list of int
        Tokens, cut at the ceiling, and nanoseconds.
    failed : list of bool
        Whether the attempt fails.
    """

    first: dict[int, int]
    calls: int
    output: list[int]
    latency: list[int]
    failed: list[bool]


class MockModel:
    """Answers calls from tables; see :class:`MockProvider`."""

    knows_times = True
    __slots__ = ("_models", "_prices")

    def __init__(self, provider: MockProvider) -> None:
        self._prices = provider.prices
        self._models = {name: Answers(profile, provider.prices, name) for name, profile in provider.models.items()}

    def fresh(self) -> MockModel:
        """Return the model for a world of its own: this one, since it keeps no state."""
        return self

    def answers(self, model: str) -> Answers:
        """Return the tables of one model."""
        return self._models[model]

    def bound(self, call: Call) -> Amounts:
        """Return the worst case: the whole prompt at the dearest rate and the answer at its ceiling."""
        answers = self._models[call.model]
        prompt = call.input_total
        whole = prompt + answers.max_output
        return (1, prompt, whole, whole, answers.worst(prompt))

    def abandoned(self, call: Call, elapsed_ns: int) -> int | None:
        """Return what is billed for a dropped call: its prompt, and the part of the answer that had come."""
        answers = self._models[call.model]
        output, latency = self._size(answers, call)
        whole = latency + output * answers.ns_per_token
        return answers.cost(*answers.split(call), output * min(elapsed_ns, whole) // max(whole, 1))

    async def complete(self, runtime: Runtime, call: Call) -> Reply:
        """Answer a call after its latency."""
        latency, reply = self.timed(call)
        await runtime.sleep(latency)
        return reply

    def timed(self, call: Call) -> tuple[int, Reply]:
        """Return how long the answer to a call takes, nanoseconds, and the answer."""
        answers = self._models[call.model]
        key, index, attempt = call.key, call.call, call.attempt
        drawn = answers.drawn
        if drawn is not None and attempt == 0 and index < drawn.calls and (first := drawn.first.get(key)) is not None:
            output, latency, failed = (
                drawn.output[first + index],
                drawn.latency[first + index],
                drawn.failed[first + index],
            )
        else:
            output, latency = self._size(answers, call)
            failed = answers.error > 0 and draws.word(key, index, attempt, Purpose.ERROR) >> 32 < answers.error
        if failed:
            return latency // 10, Reply("failed", 0, 0, 0, 0, 0, 0)
        fresh, read, write = answers.split(call)
        cost = answers.cost(fresh, read, write, output)
        lost = answers.unreported and draws.word(key, index, attempt, Purpose.USAGE_REPORTED) >> 32 < answers.unreported
        reply = Reply("completed", fresh, read, write, output, None if lost else cost, cost, not lost)
        return latency + output * answers.ns_per_token, reply

    @staticmethod
    def _size(answers: Answers, call: Call) -> tuple[int, int]:
        key, index, attempt = call.key, call.call, call.attempt
        output = answers.output(draws.word(key, index, attempt, Purpose.OUTPUT))
        latency = answers.latency(draws.word(key, index, attempt, Purpose.LATENCY))
        return min(output, answers.max_output), latency

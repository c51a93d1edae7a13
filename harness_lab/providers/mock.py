"""A stochastic mock provider: answers calls with drawn sizes, times, errors and gaps in what it reports.

What the provider *bills* (the truth) is kept apart from what it *reports*; enforcement sees only the report.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
    from collections.abc import Mapping

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
        "error",
        "latency",
        "max_output",
        "ns_per_token",
        "output",
        "read_ppm",
        "tiers",
        "unreported",
        "write_ppm",
    )

    def __init__(self, profile: ModelProfile, prices: PriceTable, model: str) -> None:
        self.output = Table(profile.output_tokens).draw
        self.latency = Table(profile.latency_s, NS_PER_S).draw
        self.ns_per_token = round(profile.seconds_per_output_token * NS_PER_S)
        self.error = draws.chance(profile.error_rate)
        self.unreported = draws.chance(profile.unreported_rate)
        self.read_ppm = round(profile.cache_share * 1_000_000)
        self.write_ppm = round(profile.cache_write_share * 1_000_000)
        self.max_output = profile.max_output_tokens
        tiers = prices.models.get(model, ())
        self.tiers = tuple((tier.above_input_tokens, tier.rates()) for tier in tiers)

    def split(self, call: Call) -> tuple[int, int, int]:
        """Return the prompt of a call as fresh tokens, tokens read from a cache and tokens written to it."""
        read = call.resent * self.read_ppm // 1_000_000
        write = (call.input_total - read) * self.write_ppm // 1_000_000
        return call.input_total - read - write, read, write

    def cost(self, fresh: int, read: int, write: int, output: int) -> int | None:
        """Return the cost of a call, nano-dollars; None without a price."""
        if not self.tiers:
            return None
        rates = self.tiers[0][1]
        for above, tier in self.tiers[1:]:
            if fresh + read + write > above:
                rates = tier
        pusd = price_rules.picodollars(fresh, read, write, 0, output, *rates)
        return price_rules.half_even(pusd, PUSD_PER_NUSD)


class MockModel:
    """Answers calls from tables; see :class:`MockProvider`."""

    __slots__ = ("_models", "_prices")

    def __init__(self, provider: MockProvider) -> None:
        self._prices = provider.prices
        self._models = {name: Answers(profile, provider.prices, name) for name, profile in provider.models.items()}

    def fresh(self) -> MockModel:
        """Return the model for a world of its own: this one, since it keeps no state."""
        return self

    def bound(self, call: Call) -> Amounts:
        """Return the worst case: the whole prompt at the dearest rate and the answer at its ceiling."""
        answers = self._models[call.model]
        prompt, most = call.input_total, answers.max_output
        worst = self._worst(answers, prompt, most)
        return (1, prompt, prompt + most, prompt + most, worst)

    def abandoned(self, call: Call, elapsed_ns: int) -> int | None:
        """Return what is billed for a dropped call: its prompt, and the part of the answer that had come."""
        answers = self._models[call.model]
        output, latency = self._size(answers, call)
        whole = latency + output * answers.ns_per_token
        return answers.cost(*answers.split(call), output * min(elapsed_ns, whole) // max(whole, 1))

    async def complete(self, runtime: Runtime, call: Call) -> Reply:
        """Answer a call after its latency."""
        answers = self._models[call.model]
        output, latency = self._size(answers, call)
        key, index, attempt = call.key, call.call, call.attempt
        if answers.error and draws.word(key, index, attempt, Purpose.ERROR) >> 32 < answers.error:
            await runtime.sleep(latency // 10)
            return Reply("failed", 0, 0, 0, 0, 0, 0)
        await runtime.sleep(latency + output * answers.ns_per_token)
        fresh, read, write = answers.split(call)
        cost = answers.cost(fresh, read, write, output)
        lost = answers.unreported and draws.word(key, index, attempt, Purpose.USAGE_REPORTED) >> 32 < answers.unreported
        return Reply("completed", fresh, read, write, output, None if lost else cost, cost, not lost)

    @staticmethod
    def _size(answers: Answers, call: Call) -> tuple[int, int]:
        key, index, attempt = call.key, call.call, call.attempt
        output = answers.output(draws.word(key, index, attempt, Purpose.OUTPUT))
        latency = answers.latency(draws.word(key, index, attempt, Purpose.LATENCY))
        return min(output, answers.max_output), latency

    @staticmethod
    def _worst(answers: Answers, prompt: int, most: int) -> int | None:
        worst = -1
        for above, (p_fresh, p_read, p_write, p_write_1h, p_output) in answers.tiers:
            if above == 0 or above < prompt:
                worst = max(worst, max(p_fresh, p_read, p_write, p_write_1h) * prompt + p_output * most)
        return None if worst < 0 else price_rules.up(worst, PUSD_PER_NUSD)

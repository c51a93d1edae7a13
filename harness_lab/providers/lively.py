"""The mock provider with all that happens to calls: limits, cold caches, broken streams, reports late or in parts.

It has state (what the caches hold, what the limits still let through), so each world takes a model of its own with
:meth:`LivelyModel.fresh`. Profiles that need none of this are answered by the plain :class:`MockModel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab import draws
from harness_lab.agents.ports import LateReply, PartialReply, Reply, Throttled
from harness_lab.clock import NS_PER_S, ns
from harness_lab.outcome import Purpose
from harness_lab.providers.limits import Meter
from harness_lab.providers.mock import Answers, MockModel, flat_rates
from harness_lab.providers.tables import Table

if TYPE_CHECKING:
    from harness_lab.agents.ports import Call, Runtime
    from harness_lab.pricing import PriceTable
    from harness_lab.providers.mock import MockProvider
    from harness_lab.providers.profile import ModelProfile

Split = tuple[int, int, int]
"""A prompt as fresh tokens, tokens read from a cache, tokens written to it."""


class LivelyAnswers(Answers):
    """One model's tables and thresholds as ints, those of its troubles among them."""

    __slots__ = ("bills", "bills_failed", "cutoff", "late", "late_ns", "limits", "partial", "per_token", "recorded",
                 "timeout", "timeout_ns", "ttl_ns", "twice")  # fmt: skip

    def __init__(self, profile: ModelProfile, provider: MockProvider, model: str) -> None:
        super().__init__(profile, provider.prices, model)
        self.bills = [(ns(at), _Tiers(prices, model)) for at, prices in provider.billing]
        self.timeout = self.error + draws.chance(profile.timeout_rate)
        self.cutoff = self.timeout + draws.chance(profile.cutoff_rate)
        self.partial = self.unreported + draws.chance(profile.partial_rate)
        self.late = self.partial + draws.chance(profile.late_rate)
        self.twice = draws.chance(profile.twice_rate)
        self.late_ns, self.timeout_ns = ns(profile.late_s), ns(profile.timeout_s)
        self.ttl_ns = None if profile.cache_ttl_s is None else ns(profile.cache_ttl_s)
        self.bills_failed = profile.failed_attempts == "billed"
        each = profile.output_token_s
        self.per_token = None if each is None else Table(each, NS_PER_S).draw
        self.limits = profile.limits
        self.recorded = profile.recorded

    def bill(self, now: int, split: Split, output: int) -> int | None:
        """Return what is really billed for a call that ends now, nano-dollars; None without a price."""
        for at, tiers in reversed(self.bills):
            if now >= at:
                return tiers.cost(*split, output)
        return self.cost(*split, output)

    def size(self, call: Call) -> tuple[int, int, int]:
        """Return output tokens, nanoseconds to the first of them, and nanoseconds for each."""
        key, index, attempt = call.key, call.call, call.attempt
        if self.recorded:
            pairs = self.recorded
            output, latency = pairs[draws.word(key, index, attempt, Purpose.DONOR) * len(pairs) >> 64]
        else:
            output = self.output(draws.word(key, index, attempt, Purpose.OUTPUT))
            latency = self.latency(draws.word(key, index, attempt, Purpose.LATENCY))
        each = self.ns_per_token
        if self.per_token is not None:
            each = self.per_token(draws.word(key, index, attempt, Purpose.PER_TOKEN))
        return min(output, self.max_output), latency, each


class _Tiers(Answers):
    """One model's prices by another table; nothing else is set."""

    __slots__ = ()

    def __init__(self, prices: PriceTable, model: str) -> None:
        self.tiers = tuple((tier.above_input_tokens, tier.rates()) for tier in prices.models.get(model, ()))
        self.flat = flat_rates(self.tiers)


class _State:
    """What one model remembers in one world."""

    __slots__ = ("meter", "sent", "sent_at", "warm")

    def __init__(self, answers: LivelyAnswers) -> None:
        self.meter = None if answers.limits is None else Meter(answers.limits)
        self.warm: dict[int, int] = {}
        self.sent: dict[int, Split] = {}
        self.sent_at: dict[int, int] = {}


class LivelyModel(MockModel):
    """Answers calls from tables, and remembers; see :class:`~harness_lab.providers.ModelProfile`."""

    knows_times = False
    __slots__ = ("_lively", "_states")

    def __init__(self, provider: MockProvider) -> None:
        self._prices = provider.prices
        self._lively = {name: LivelyAnswers(one, provider, name) for name, one in provider.models.items()}
        self._models = dict(self._lively)
        self._states: dict[str, _State] = {}

    def fresh(self) -> LivelyModel:
        """Return a model that remembers nothing, for a world of its own."""
        model = LivelyModel.__new__(LivelyModel)
        model._prices, model._lively, model._models, model._states = self._prices, self._lively, self._models, {}
        return model

    def abandoned(self, call: Call, elapsed_ns: int) -> int | None:
        """Return what is billed for a dropped call: its prompt, and the part of the answer that had come."""
        answers, state = self._lively[call.model], self._state(call.model)
        split = state.sent.get(call.key)
        if split is None:
            return 0  # it was not let through
        output, latency, each = answers.size(call)
        whole = latency + output * each
        sent = state.sent_at.get(call.key, 0)
        return answers.bill(sent + elapsed_ns, split, output * min(elapsed_ns, whole) // max(whole, 1))

    async def complete(self, runtime: Runtime, call: Call) -> Reply:
        """Answer a call after its latency, if the limits let it through."""
        answers, state = self._lively[call.model], self._state(call.model)
        now = runtime.now()
        split = _split(answers, state, call, now)
        state.sent_at[call.key] = now
        if state.meter is None:
            state.sent[call.key] = split
            return await self._answer(runtime, answers, call, split)
        retry_after = state.meter.enter(now, call.input_total, split[0] + split[2])
        if retry_after is not None:
            state.sent.pop(call.key, None)
            return Throttled(retry_after)
        state.sent[call.key] = split
        output = 0
        try:
            reply = await self._answer(runtime, answers, call, split)
            output = reply.output
            return reply
        finally:
            state.meter.leave(runtime.now(), output)

    def _state(self, model: str) -> _State:
        state = self._states.get(model)
        if state is None:
            state = self._states[model] = _State(self._lively[model])
        return state

    async def _answer(self, runtime: Runtime, answers: LivelyAnswers, call: Call, split: Split) -> Reply:
        word = draws.word(call.key, call.call, call.attempt, Purpose.ERROR)
        fate = word >> 32
        output, latency, each = answers.size(call)
        if fate >= answers.cutoff:
            await runtime.sleep(latency + output * each)
            return _reported(answers, call, split, output, answers.bill(runtime.now(), split, output))
        if fate >= answers.timeout:
            part = output * (word & 0xFFFF_FFFF) >> 32
            await runtime.sleep(latency + part * each)
            return PartialReply("failed", (1, sum(split), None, None, None), answers.bill(runtime.now(), split, part))
        await runtime.sleep(latency // 10 if fate < answers.error else answers.timeout_ns)
        if not answers.bills_failed:
            return Reply("failed", 0, 0, 0, 0, 0, 0)
        return Reply("failed", *split, 0, answers.cost(*split, 0), answers.bill(runtime.now(), split, 0))


def _split(answers: LivelyAnswers, state: _State, call: Call, now: int) -> Split:
    """Return how a prompt is split, and warm the cache with it: a prefix is told by its node, or by its length."""
    if answers.ttl_ns is None:
        return answers.split(call)
    prefix = call.key if call.call else -call.resent
    last = state.warm.get(prefix)
    if not call.resent or last is None or now - last > answers.ttl_ns:
        read = 0
    else:
        read = call.resent * answers.read_ppm // 1_000_000
    state.warm[prefix] = state.warm[call.key] = now
    write = (call.input_total - read) * answers.write_ppm // 1_000_000
    return call.input_total - read - write, read, write


def _reported(answers: LivelyAnswers, call: Call, split: Split, output: int, bill: int | None) -> Reply:
    """Return a completed call with what is reported of it."""
    cost = answers.cost(*split, output)
    word = draws.word(call.key, call.call, call.attempt, Purpose.USAGE_REPORTED)
    told = word >> 32
    copies = 2 if (word & 0xFFFF_FFFF) < answers.twice else 1
    if told >= answers.late and copies == 1:
        return Reply("completed", *split, output, cost, bill)
    if told < answers.unreported:
        return Reply("completed", *split, output, None, bill, reported=False)
    if told < answers.partial:
        partial = PartialReply("completed", (1, sum(split), None, None, None), bill)
        partial.output = output  # the agent has the answer, and sends it again
        return partial
    late = answers.late_ns if told < answers.late else 0
    return LateReply("completed", *split, output, cost, bill, late_ns=late, copies=copies)

"""A provider that answers from records: what came back then comes back again, and takes as long.

Nothing is drawn and nothing is assumed. What the record does not hold (a last call to wrap up, another model) is told
apart: see :meth:`RecordedModel.complete`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.agents.ports import Reply
from harness_lab.outcome import CHANNELS
from harness_lab.pricing import PriceTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.agents.ports import Call, Runtime
    from harness_lab.policies.protocol import Status
    from harness_lab.usage import Amounts, TokenCounts

OTHER_MODEL = "another model answers here than recorded: its answers are not recorded, the other's are taken"
NOT_RECORDED = "a call is made here that was not made then (to wrap up): what would have come back is not recorded"
_UNBOUNDED: Amounts = (1,) + (None,) * (len(CHANNELS) - 1)


class Answer:
    """What a record says came back from one call.

    Parameters
    ----------
    status : {"completed", "failed"}
        How it ended.
    duration_ns : int
        How long it took.
    tokens : TokenCounts or None
        Its usage; None: not recorded.
    model : str
        The model that was asked.
    cost_nusd, billed_nusd : int or None
        What it cost as recorded, and what the bill says; None: unknown.
    """

    __slots__ = ("billed_nusd", "cost_nusd", "duration_ns", "model", "status", "tokens")

    def __init__(
        self,
        status: Status,
        duration_ns: int,
        tokens: TokenCounts | None,
        model: str,
        cost_nusd: int | None = None,
        billed_nusd: int | None = None,
    ) -> None:
        self.status = status
        self.model = model
        self.duration_ns = duration_ns
        self.tokens = tokens
        self.cost_nusd = cost_nusd
        self.billed_nusd = billed_nusd


class RecordedModel:
    """Answers a call with what its record says.

    Parameters
    ----------
    prices : PriceTable
        Prices of calls whose cost is not recorded, and of worst cases; without one they are unknown.
    ceilings : mapping of str to int
        Output ceiling of each model, for worst cases: the longest recorded answer where nothing else is known.
    reprice : bool
        Price every call by `prices`, recorded costs left aside.
    keep_unpriced : bool
        With `reprice`: calls of models without a price keep their recorded cost, else it is unknown.

    Attributes
    ----------
    beyond : list of str
        What it was asked that no record says, in order; whoever reads it clears it.
    """

    __slots__ = ("_ceilings", "_keep_unpriced", "_prices", "_reprice", "beyond")

    def __init__(
        self,
        prices: PriceTable | None = None,
        ceilings: Mapping[str, int] | None = None,
        *,
        reprice: bool = False,
        keep_unpriced: bool = False,
    ) -> None:
        self._keep_unpriced = keep_unpriced
        self._prices = PriceTable() if prices is None else prices
        self._ceilings = dict(ceilings or {})
        self._reprice = reprice
        self.beyond: list[str] = []

    def fresh(self) -> RecordedModel:
        """Return the model for a world of its own: this one, since it keeps no state."""
        return self

    def bound(self, call: Call) -> Amounts:
        """Return the worst case: the prompt as recorded, and the longest answer that was recorded of the model."""
        most = self._ceilings.get(call.model)
        answer: Answer | None = call.answer
        if most is None or answer is None or answer.tokens is None:
            return _UNBOUNDED
        prompt = call.input_total
        worst = self._prices.worst_case(call.model, input_tokens=prompt, output_ceiling=most)
        return (1, prompt, prompt + most, prompt + most, worst)

    def abandoned(self, call: Call, elapsed_ns: int) -> int | None:
        """Return the whole recorded cost where the call had ended by then; nobody can know what a part would bill."""
        answer: Answer | None = call.answer
        if answer is None or elapsed_ns < answer.duration_ns:
            return None
        return self._cost(call, answer)

    async def complete(self, runtime: Runtime, call: Call) -> Reply:
        """Answer as recorded, after as long as recorded; a call without a record fails at once and bills nothing."""
        answer: Any = call.answer
        if answer is None:
            self.beyond.append(NOT_RECORDED)
            return Reply("failed", 0, 0, 0, 0, 0, 0)
        if answer.model != call.model:
            self.beyond.append(OTHER_MODEL)
        await runtime.sleep(answer.duration_ns)
        tokens = answer.tokens
        if tokens is None:
            return Reply(answer.status, 0, 0, 0, 0, None, answer.billed_nusd, reported=False)
        cost = self._cost(call, answer)
        billed = cost if answer.billed_nusd is None else answer.billed_nusd
        return Reply(
            answer.status, tokens.input_fresh, tokens.cache_read, tokens.cache_write, tokens.output, cost, billed
        )

    def _cost(self, call: Call, answer: Answer) -> int | None:
        repriced = self._reprice and not (self._keep_unpriced and call.model not in self._prices.models)
        if answer.cost_nusd is not None and not repriced and answer.model == call.model:
            return answer.cost_nusd
        return None if answer.tokens is None else self._prices.cost(call.model, answer.tokens)

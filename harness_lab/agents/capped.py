"""A model client under a hard cost cap: requests bounded before they are sent, answers charged at trusted prices."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from harness_lab.agents.client import ModelError
from harness_lab.pricing.request_size import measure
from harness_lab.usage import MAX_TOKENS, optional_count, optional_nusd, usd

if TYPE_CHECKING:
    from harness_lab.agents.client import ModelClient, ModelRequest, ModelResponse
    from harness_lab.pricing.bounds import CallBound, CapPrices
    from harness_lab.usage import TokenCounts

CEILING = "max_output_tokens"
"""The provider option that carries the output ceiling; the client has to send it."""


class CappedClient:
    """Wraps a client; its `bound` and it itself go to the agent runtime together with a hard cap.

    Parameters
    ----------
    client : ModelClient
        Sends the requests. It must send the provider option ``max_output_tokens``, or the ceiling is none.
    prices : CapPrices
        What may be relied on.
    output_ceiling : int or None
        The most output tokens of a call. A mode's own ``max_output_tokens`` can only lower it; None: only modes that
        name one may call.
    summarising_compaction : bool
        Whether the client lets a model summarise the history on the way; such calls are refused.

    Examples
    --------
    ::

        capped = CappedClient(client, prices, output_ceiling=4096)
        runtime = AgentRuntime(capped, modes, policy=hard_cap(2.0), bound=capped.bound)

    Notes
    -----
    An answer is charged its reported tokens at the prices of the model that served it, where that has prices, else of
    the model asked for; the cost that a client reports counts only where an entry's billing is ``reported-complete``.
    What is unknown stays unknown: the cap charges the whole hold.
    """

    def __init__(
        self,
        client: ModelClient,
        prices: CapPrices,
        *,
        output_ceiling: int | None,
        summarising_compaction: bool = False,
    ) -> None:
        self._client = client
        self._prices = prices
        self._ceiling = optional_count("output_ceiling", output_ceiling, maximum=MAX_TOKENS)
        self._compaction = summarising_compaction

    def bound(self, request: ModelRequest) -> CallBound:
        """Return a request's worst case, or all the reasons why it has none."""
        tools = [asdict(tool) for tool in request.tools]
        size = measure(request.system_prompt, request.messages, tools)
        return self._prices.bound(
            request.model,
            size,
            output_ceiling=self._ceiling_of(request),
            provider=request.provider,
            summarising_compaction=self._compaction,
        )

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Send a request with its output ceiling, and put the cost at trusted prices on its answer.

        Raises
        ------
        ModelError
            What the client raised, with the cost that was charged for it.
        """
        ceiling = self._ceiling_of(request)
        if ceiling is not None:
            request = replace(request, provider_options={**request.provider_options, CEILING: ceiling})
        try:
            response = await self._client.complete(request)
        except ModelError as error:
            if not error.sent:
                raise
            cost = self._cost(request, None, error.usage, error.cost_usd)
            raise ModelError(str(error), cost_usd=cost, usage=error.usage) from error
        return replace(response, cost_usd=self._cost(request, response.served_model, response.usage, response.cost_usd))

    def _ceiling_of(self, request: ModelRequest) -> int | None:
        own = optional_count(CEILING, request.provider_options.get(CEILING), maximum=MAX_TOKENS)
        ceilings = [ceiling for ceiling in (own, self._ceiling) if ceiling is not None]
        return min(ceilings, default=None)

    def _cost(
        self, request: ModelRequest, served: str | None, usage: TokenCounts | None, reported_usd: float | None
    ) -> float | None:
        terms = None if served is None else self._prices.terms(served, provider=request.provider)
        terms = terms if terms is not None else self._prices.terms(request.model, provider=request.provider)
        charged = None if terms is None else terms.charge_nusd(usage, optional_nusd(reported_usd))
        return None if charged is None else usd(charged)

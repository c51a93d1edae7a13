"""Cases of tangle about prices, and about what an error's text says of its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.conformance.shapes import UnknownShape
from harness_lab.outcome import Cause
from harness_lab.pricing import Price, PriceTable
from harness_lab.settlements.readers.ends import ERRORS, error_word
from harness_lab.usage import NUSD_PER_USD, TokenCounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.conformance.shapes import Answer, Case

CATALOG: Final = {"gpt-6.1-sol": {"input": 2e-06, "cachedInput": 1e-07, "output": 1e-05}}
"""The catalogue that the cases have in mind, dollars a token."""
PER_MILLION: Final = 1_000_000


def failure_class(case: Case) -> Answer:
    """Say whether an error's text tells of the infrastructure; where it does not say, nobody knows."""
    if [op["op"] for op in case["when"]] != ["classify"]:
        raise UnknownShape("a classification of something else")
    given = case["given"]
    end = ERRORS[error_word(given.get("error"), given.get("errorCode"))]
    return {"infra": True if end.cause is Cause.INFRASTRUCTURE else None}


def cost(case: Case) -> Answer:
    """Price tokens by a catalogue: an estimate; without a price the cost is unknown, and told as 0 there."""
    if [op["op"] for op in case["when"]] != ["price"]:
        raise UnknownShape(f"nothing answers cost / {case['when'][0]['op']} yet")
    given = case["given"]
    catalog = {given["model"]: given["price"]} if "price" in given else CATALOG
    table = PriceTable({model: (_price(prices),) for model, prices in catalog.items()}, source="catalogue")
    usage = _tokens(given)
    model = given.get("model")
    nusd = None if model is None or usage is None else table.cost(model, usage)
    whole = None if usage is None or nusd is None else table.cost(model, _unsplit(usage))
    usd = None if nusd is None else nusd / NUSD_PER_USD
    return {
        "usd": usd or 0,
        "usd_without_split": None if whole is None else whole / NUSD_PER_USD,
        "usdKnown": False,  # a list price is no bill
        "usdEstimated": usd,
        "usdEstimated_equals_usd": usd is not None,
        "provenance": "uncaptured" if usd is None else "catalog-estimate",
    }


def _price(prices: Mapping[str, float]) -> Price:
    per = {name: round(value * PER_MILLION, 9) for name, value in prices.items()}
    return Price.usd_per_million(input=per["input"], output=per["output"], cache_read=per.get("cachedInput"))


def _tokens(given: Mapping[str, Any]) -> TokenCounts | None:
    if "tokens" in given:
        read, written = (int(part) for part in given["tokens"].split("/"))
        return TokenCounts(input_fresh=read, output=written)
    if "inputTokens" not in given:
        return None
    cached = given.get("cacheReadTokens", 0)
    return TokenCounts(
        input_fresh=given["inputTokens"] - cached, cache_read=cached, output=given.get("outputTokens", 0)
    )


def _unsplit(usage: TokenCounts) -> TokenCounts:
    return TokenCounts(input_fresh=usage.input_total, output=usage.output)

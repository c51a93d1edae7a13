"""Cases of tangle about prices, and about what an error's text says of its cause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import Allocation, BudgetFault, Spend
from harness_lab.conformance.areas.tangle_values import ask_of, era_of, fault_text, overspent, pool_of
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
COST_EVENT: Final = re.compile(r"(receipt|unproven|cost) ([\d.]+)( unknown)?")
ESTIMATE: Final = re.compile(r"estimate > ([\d.]+), usdKnown=false")
PER_MILLION: Final = 1_000_000


def failure_class(case: Case, _preset: str | None) -> Answer:
    """Say whether an error's text tells of the infrastructure; where it does not say, nobody knows."""
    if [op["op"] for op in case["when"]] != ["classify"]:
        raise UnknownShape("a classification of something else")
    given = case["given"]
    end = ERRORS[error_word(given.get("error"), given.get("errorCode"))]
    return {"infra": True if end.cause is Cause.INFRASTRUCTURE else None}


def cost(case: Case, preset: str | None) -> Answer:
    """Price tokens by a catalogue, add costs of different standing up, or charge one that nobody is sure of."""
    operations = {"price": _priced, "fold": _added, "project": _added, "reconcile": _reconciled}
    (when, *more) = case["when"]
    if more or when["op"] not in operations:
        raise UnknownShape(f"nothing answers cost / {when['op']}")
    return operations[when["op"]](case, preset)


def _priced(case: Case, _preset: str | None) -> Answer:
    """Price tokens: an estimate, which is no bill; without a price the cost is unknown, and told as 0 there."""
    given = case["given"]
    catalog = {given["model"]: given["price"]} if "price" in given else CATALOG
    table = PriceTable({model: (_price(prices),) for model, prices in catalog.items()}, source="catalogue")
    usage = _tokens(given)
    model = given.get("model")
    nusd = None if model is None or usage is None else table.cost(model, usage)
    whole = None if usage is None or nusd is None else table.cost(model, _unsplit(usage))
    usd = None if nusd is None else nusd / NUSD_PER_USD
    spend = Spend.reported(cost_usd=None, estimate_usd=usd)
    told = _costs(spend)
    return told | {
        "usd_without_split": None if whole is None else whole / NUSD_PER_USD,
        "usdKnown": spend.cost_known,
        "usdEstimated_equals_usd": told["usdEstimated"] == told["usd"],
        "provenance": {"estimated": "catalog-estimate", "unknown": "uncaptured"}.get(spend.cost_source),
    }


def _added(case: Case, _preset: str | None) -> Answer:
    """Add costs up: bills, estimates, and what nobody reported."""
    spent = Spend()
    for event in case["given"]["events"]:
        found = COST_EVENT.fullmatch(event)
        if found is None:
            raise UnknownShape(f"the event {event!r}")
        kind, usd, unknown = found.groups()
        if unknown:
            spent += Spend.reported(cost_usd=None)
        elif kind == "unproven":
            spent += Spend.reported(estimate_usd=float(usd))
        else:
            spent += Spend.reported(cost_usd=float(usd))
    return _costs(spent)


def _costs(spent: Spend) -> dict[str, Any]:
    """Return a cost, and what is known of it; what is known needs no flag there."""
    return {
        "usd": spent.cost_nusd / NUSD_PER_USD,
        "usdKnown": None if spent.cost_known else False,
        "usdEstimated": spent.estimated_nusd / NUSD_PER_USD if spent.estimated_nusd else None,
        "provenance": spent.cost_source,
    }


def _reconciled(case: Case, preset: str | None) -> Answer:
    """Charge a child a cost that is an estimate, and larger than what was held for it."""
    given, era = case["given"], era_of(case)
    found = ESTIMATE.fullmatch(given["spent"])
    if found is None:
        raise UnknownShape(f"a use of {given['spent']!r}")
    pool = pool_of(given["root"], era, preset)
    ticket = pool.reserve(ask_of(given["child"], era))
    if not isinstance(ticket, Allocation):
        raise UnknownShape("a child that may not start")
    try:
        over = pool.reconcile(ticket, Spend.reported(estimate_usd=2 * float(found[1])))
    except BudgetFault as fault:
        return {"throws": fault_text(fault)}
    return {"returns": overspent(over)}


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

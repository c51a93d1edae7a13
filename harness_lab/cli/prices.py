"""Commands about what runs cost over time: price changes, budgets of a period."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_lab.cli.output import Json, by_group, show, with_next
from harness_lab.cli.records import load
from harness_lab.errors import InputError

if TYPE_CHECKING:
    from harness_lab.pricing import PriceTable

Records = Annotated[Path, typer.Argument(help="Settlements (Parquet), or records in a known format.")]
By = Annotated[list[str] | None, typer.Option("--by", help="Column whose groups are taken apart; repeat.")]


def price_changes(
    records: Records,
    table: Annotated[list[Path] | None, typer.Option("--table", help="Price table (JSON) with a date; repeat.")] = None,
    day: Annotated[
        list[str] | None, typer.Option("--date", help="A day (YYYY-MM-DD) whose bundled list prices count; repeat.")
    ] = None,
    target: Annotated[float, typer.Option(help="Share of runs that shall complete within the ceiling.")] = 0.95,
    margin: Annotated[float, typer.Option(help="Wanted margin of a flat price, as a share of it.")] = 0.2,
    price_usd: Annotated[float | None, typer.Option(help="The flat price that stays; else the first date's.")] = None,
    month_runs: Annotated[int, typer.Option(help="Runs of a month.")] = 1000,
    budget_usd: Annotated[float | None, typer.Option(help="Budget of a period, dollars.")] = None,
    period_runs: Annotated[int | None, typer.Option(help="Runs of a period.")] = None,
    period: Annotated[
        str | None, typer.Option(help="FIRST:LAST day of the period, in which prices then change on their dates.")
    ] = None,
    fee_usd: Annotated[float | None, typer.Option(help="A fixed fee of a period, against paying per token.")] = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say what prices that change with time do to a ceiling, a flat price and a budget (price effect only)."""
    from harness_lab.analyze import price_changes as find

    data = load(records, by=by)
    names = [str(name) for name in data.nodes["model"].dropna().unique()]
    tables = [*(read_table(path) for path in table or ()), *(_listed(names, one) for one in day or ())]
    found = find(
        data, sorted(tables, key=lambda one: one.date or ""), target=target, margin=margin, price_usd=price_usd,
        month_runs=month_runs, budget_usd=budget_usd, period_runs=period_runs, period=_period(period), fee_usd=fee_usd,
        by=by,
    )  # fmt: skip
    answer = {
        "recorded_usd": found.recorded.record(), "figures": by_group(found), "price_usd": found.price_usd,
        "ceiling_usd": found.ceiling_usd, "may_rise_alone": found.may_rise_alone(), "notes": found.notes,
        "flat_price_usd": {str(one.day): one.flat_price_usd for one in found.dates},
        "over_period": found.over_period.record(),
    }  # fmt: skip
    show(f"{found.summary()}\n\n{found.explain()}", answer, as_json=as_json)


def period(
    records: Records,
    budget_usd: Annotated[float, typer.Option(help="Budget of a period, dollars.")],
    period_runs: Annotated[int, typer.Option(help="Runs of a period.")],
    by: By = None,
    as_json: Json = False,
) -> None:
    """Say how likely a period's runs are to exceed its budget, who is blocked then, and when."""
    from harness_lab.analyze import period_budget

    found = period_budget(load(records, by=by), budget_usd=budget_usd, period_runs=period_runs, by=by)
    units = {"exceeded": "chance", "blocked": "share of the runs"}
    figures = [{**row, "unit": units[row["figure"]]} for row in found.to_frame().to_dict("records")]
    answer = {
        "budget_usd": budget_usd, "period_runs": period_runs, "figures": figures, "unknown_cost_runs": found.unknown,
        "gone_at_share_of_period": found.gone_at, "groups": found.groups,
    }  # fmt: skip
    more = with_next(found.explain(), "ceiling", records, "--curve", why="what a ceiling on single runs would do")
    show(f"{found.summary()}\n\n{more}", answer, as_json=as_json)


def read_table(path: Path) -> PriceTable:
    """Read prices: a table that :meth:`PriceTable.to_dict` wrote, or a price file in LiteLLM's form."""
    from harness_lab.pricing import PriceTable, from_litellm

    try:
        data = json.loads(path.read_text("utf-8"))
        if isinstance(data, dict) and "models" not in data and data:
            return from_litellm(data, source=path.name)
        return PriceTable.from_dict(data)
    except (OSError, ValueError, AttributeError) as error:
        expected = "a price table or LiteLLM's price file (JSON)"
        raise InputError("--table", expected=expected, got=f"{path}: {error}") from None


def _listed(models: list[str], day: str) -> PriceTable:
    from harness_lab.pricing import from_genai_prices

    try:
        at = datetime.fromisoformat(day).replace(tzinfo=UTC)
    except ValueError:
        raise InputError("--date", expected="a day (YYYY-MM-DD)", got=day) from None
    return from_genai_prices(models, at=at)


def _period(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not colon:
        raise InputError("--period", expected="FIRST:LAST, two days (YYYY-MM-DD)", got=text)
    return first, last

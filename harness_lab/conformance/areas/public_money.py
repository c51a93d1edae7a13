"""Public cases of prices, exact limits, windows of time, accounts on disk, estimates and floors."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from harness_lab.budget import Calendar, PeriodBudget, PeriodLimits, Rolling
from harness_lab.budget.durable import DurableAccount
from harness_lab.budget.durable_books import HoldRecord
from harness_lab.budget.period import PeriodHold
from harness_lab.budget.windows import epoch_ns
from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import AccountUnavailable, InputError
from harness_lab.floors import FloorKey, FloorRow, FloorTable, preflight
from harness_lab.outcome import COST, INPUT, Refusal
from harness_lab.policies import Grant, PolicySpec, SpawnAsk, StepAsk, Use, call_holds, reservation_pool
from harness_lab.pricing import CallTerms, Price, PriceTable, measure
from harness_lab.usage import NUSD_PER_USD, TokenCounts, amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness_lab.conformance.shapes import Answer, Case

NOW: Final = Time(0)


def sliding(case: Case) -> Answer:
    """Hold calls in a sliding window and release one of them."""
    given = case["given"]
    limits = PeriodLimits(
        name="window", limits=amounts(calls=given["calls"]), window=Rolling(given["rolling_s"]), cap="hard"
    )
    budget = PeriodBudget(limits)
    held: dict[str, PeriodHold] = {}
    answers: list[bool | None] = []
    for name, at, *release in case["when"]["asks"]:
        if release:
            budget.settle(held.pop(name), (0,) * 5, at * NS_PER_S)
            answers.append(None)
            continue
        answer = budget.reserve("", amounts(calls=1), at * NS_PER_S)
        if isinstance(answer, PeriodHold):
            held[name] = answer
        answers.append(isinstance(answer, PeriodHold))
    return {"answers": answers}


def restarted(case: Case) -> Answer:
    """Stop a process that keeps an account, start it again, and take the account's file away."""
    given = case["given"]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "account.db"
        account = DurableAccount.create(path, _usd(given["cap_usd"]), now_ns=0, synchronous="normal")
        account.hold("spent", _usd(given["spent_usd"]), 0)
        account.settle("spent", _usd(given["spent_usd"]), 1)
        account.hold("in flight", _usd(given["held_usd"]), 1)
        account.close()
        again = DurableAccount(path)
        refused = isinstance(again.hold("next", _usd(given["asks_usd"]), 2), Refusal)
        balance = again.balance()
        again.close()
        for file in path.parent.iterdir():
            file.unlink()
        try:
            DurableAccount(path).close()
        except AccountUnavailable:
            lost = "account unavailable"
        else:
            lost = "a fresh account"
    return {
        "with_state": "refused" if refused else "admitted",
        "spent": balance.spent[COST] / NUSD_PER_USD,
        "held": balance.held[COST] / NUSD_PER_USD,
        "without_state": lost,
    }


def unreadable(case: Case) -> Answer:
    """Ask an account whose file is away for some of the asks."""
    given = case["given"]
    luck = random.Random(given["seed"])  # noqa: S311 - a choice of checks, no secret
    failing = [luck.random() < given["failing_share"] for _ in range(given["calls"])]
    checked, unchecked = 0, []
    with TemporaryDirectory() as folder:
        path, away = Path(folder) / "account.db", Path(folder) / "away.db"
        DurableAccount.create(path, _usd(1e6), now_ns=0, synchronous="normal").close()
        for n, fails in enumerate(failing):
            if fails:
                path.rename(away)
            try:
                account = DurableAccount(path)
                checked += isinstance(account.hold(f"{n}", _usd(0.01), n), HoldRecord)
                account.close()
            except AccountUnavailable:
                unchecked.append(n)
            if fails:
                away.rename(path)
        account = DurableAccount(path)
        admitted = len(account.open_holds())
        account.close()
    return {
        "unchecked_are_the_failing_ones": unchecked == [n for n, fails in enumerate(failing) if fails],
        "checked_plus_unchecked": checked + len(unchecked),
        "admitted_unchecked": admitted - checked,
    }


def exactly(case: Case) -> Answer:
    """Spend up to a limit exactly, and a little more, in each scope."""
    given = case["given"]
    return {name: _reached(name, scope, given) for name, scope in given["scopes"].items()}


def _reached(name: str, scope: Mapping[str, Any], given: Mapping[str, Any]) -> list[bool]:
    spec = PolicySpec.from_dict({"name": name, "modules": [scope]})
    policy: Any = spec.start() if spec.scope == "run" else spec.open().start("run", {}, NOW, wall_ns=10**18)
    node = policy.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    if name == "child":
        limit = given["spent"] + given["call"]
        node = policy.spawn(SpawnAsk(node, ((0, 0, 0),), amounts(cost_usd=limit)), NOW).ticket
    answers: list[bool] = []
    for cost in (given["spent"], given["call"], given["call"]):
        answer = policy.admit(StepAsk(node, len(answers), 0, amounts(calls=1, cost_usd=cost)), NOW)
        if isinstance(answer, Grant):
            used = amounts(calls=1, input=0, tokens=0, fresh=0, cost_usd=cost)
            policy.settle(answer.ticket, Use(used), NOW)
        answers.append(isinstance(answer, Grant))
    return answers[1:]


def estimated(case: Case) -> Answer:
    """Hold a prompt against a limit by four characters a token, by its bytes, and by its true count."""
    given = case["given"]
    return {name: _admitted(given["budget"], *text) for name, text in given["texts"].items()}


def _admitted(budget: int, letter: str, length: int, tokens: int) -> dict[str, Any]:
    size = measure(letter * length, []).text_bytes
    asks = {"estimate": length // 4, "bytes": size, "count": tokens}
    told: dict[str, Any] = {}
    for name, prompt in asks.items():
        policy = call_holds(input=budget).start()
        top: Any = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
        told[name] = isinstance(policy.admit(StepAsk(top.ticket, 0, 0, amounts(calls=1, input=prompt)), NOW), Grant)
    return told | {"bytes_asked": size}


def cache_writes(case: Case) -> Answer:
    """Price cache writes with and without their split by lifetime."""
    given = case["given"]
    terms = CallTerms(tiers=(Price.usd_per_million(**given["price"]),))
    split = TokenCounts(
        input_fresh=0, output=0, cache_write=given["cache_write"], cache_write_1h=given["cache_write_1h"]
    )
    whole = TokenCounts(input_fresh=0, output=0, cache_write=given["cache_write"], cache_write_1h=None)
    return {"with_the_split": _dollars(terms.cost_nusd(split)), "without_the_split": _dollars(terms.cost_nusd(whole))}


def requests(case: Case) -> Answer:
    """Price requests by a table of tiers."""
    given = case["given"]
    tiers = tuple(Price.usd_per_million(**tier) for tier in given["tiers"])
    try:
        table = PriceTable({"m": tiers})
    except InputError as error:
        return {"error": str(error)}
    costs = [table.cost("m", TokenCounts(input_fresh=size, output=out)) for size, out in given["requests"]]
    return {"costs": [_dollars(cost) for cost in costs]}


def batch(case: Case) -> Answer:
    """Price a call as it is listed and as a batch, and the batch once more."""
    given = case["given"]
    price = (Price.usd_per_million(**given["price"]),)
    usage = TokenCounts(input_fresh=given["input"], output=given["output"])
    terms = CallTerms(tiers=price, multiplier_ppm=given["factor_ppm"])
    listed, charged, again = CallTerms(tiers=price).cost_nusd(usage), terms.cost_nusd(usage), terms.cost_nusd(usage)
    return {"listed": _dollars(listed), "charged": _dollars(charged), "again": _dollars(again)}


def calendar(case: Case) -> Answer:
    """Ask in a calendar day of a zone after its limit was used."""
    given = case["given"]
    window = Calendar("day", given["zone"])
    budget = PeriodBudget(PeriodLimits(name="day", limits=_usd(given["limit_usd"]), window=window, cap="hard"))
    begin = _utc(given["spent_at_utc"])
    budget.settle(budget.hold("ann", _usd(given["limit_usd"]), begin), _usd(given["limit_usd"]), begin)
    answers = [budget.reserve("ann", _usd(0.01), _utc(at)) for at in given["asks_at_utc"]]
    return {"admitted": [isinstance(one, PeriodHold) for one in answers], "hours": window.window(begin).hours}


def days(case: Case) -> Answer:
    """Return how long days are."""
    window = Calendar("day", case["given"]["zone"])
    return {"hours": [float(window.window(_utc(noon)).hours) for noon in case["given"]["noons_utc"]]}


def floors(case: Case) -> Answer:
    """Ask below, at and above a measured floor, and on a path that nobody measured."""
    given = case["given"]
    key, other = FloorKey(backend="x", model="m", context="k"), FloorKey(backend="x", model="n", context="k")
    table = FloorTable((FloorRow(key=key, floor=min(given["measured"]), n=len(given["measured"])),))
    policy: Any = reservation_pool(input=10**6, floors=table).start()
    top = policy.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    told: dict[str, list[Any]] = {"admitted": [], "floors": [], "short_by": [], "codes": []}
    held = 0
    for slot, asked in enumerate(given["asks"]):
        answer = policy.spawn(SpawnAsk(top, ((0, slot, 0),), amounts(input=asked), key), NOW)
        checked = preflight(table, key, asked)
        refused = isinstance(answer, Refusal)
        held = policy.modules[1].pool.held()[INPUT] if refused else held
        told["admitted"].append(not refused)
        told["floors"].append(checked.floor)
        told["short_by"].append(checked.shortfall)
        told["codes"].append(str(answer.code) if refused else None)
    unmeasured = policy.spawn(SpawnAsk(top, ((1, 0, 0),), amounts(input=given["asks"][0]), other), NOW)
    return told | {
        "held_after_refusal": held,
        "unmeasured_admitted": isinstance(unmeasured, Grant),
        "unmeasured_floor": preflight(table, other, given["asks"][0]).floor,
    }


def _usd(amount: float | None) -> Any:
    return amounts(cost_usd=amount)


def _dollars(cost: int | None) -> float | None:
    return None if cost is None else cost / NUSD_PER_USD


def _utc(text: str) -> int:
    return epoch_ns(datetime.fromisoformat(text).replace(tzinfo=UTC))


OPERATIONS: Final[dict[str, Callable[[Case], Answer]]] = {
    "hold in a sliding window": sliding,
    "restart an account": restarted,
    "ask an account that cannot be read now and then": unreadable,
    "reach a limit exactly": exactly,
    "admit by estimate, by bytes and by count": estimated,
    "price cache writes": cache_writes,
    "price requests": requests,
    "price a batch": batch,
    "ask in a calendar window": calendar,
    "length of a day": days,
    "ask below a floor": floors,
}
"""How a case is carried out, by its operation."""

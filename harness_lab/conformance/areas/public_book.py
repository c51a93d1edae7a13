"""A policy that is asked by hand, step by step, and the books it keeps: most public cases are such a story."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness_lab.clock import NS_PER_S, Time
from harness_lab.conformance.shapes import UnknownShape
from harness_lab.errors import AlreadySettled, InputError
from harness_lab.outcome import CHANNELS, COST, Refusal
from harness_lab.policies import COMPLETED, Grant, PolicySpec, Shadow, SpawnAsk, StepAsk, Ticket, Use
from harness_lab.pricing import CapPrices, RequestSize
from harness_lab.usage import NUSD_PER_USD, Amounts, amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness_lab.conformance.shapes import Answer, Case

NOW: Final = Time(0)
NOT_USED: Final = (0,) * len(CHANNELS)
MOST: Final = 10_000
"""Times that a step may be repeated."""


def story(case: Case) -> Answer:
    """Carry out a case's steps and return what the policy said and what its books say at the end."""
    given = case["given"]
    book = Book(given, PolicySpec.from_dict({"name": "case", "modules": given["modules"]}))
    return book.played(case["when"]["steps"])


class Book:
    """A policy, its nodes and open calls by name, and its answers so far.

    Parameters
    ----------
    given : mapping
        Maybe ``prices`` by model, the ``channel`` that is looked at (cost if none), and whether the policy only watches
        (``shadow``).
    spec : PolicySpec
        The policy, ours or another.
    """

    def __init__(self, given: Mapping[str, Any], spec: PolicySpec) -> None:
        self.spec, self.only_watches = spec, bool(given.get("shadow"))
        self.now, self.billed = NOW, 0
        self.prices = CapPrices(given.get("prices", {}))
        self.channel = CHANNELS.index(given.get("channel", "cost"))
        self.calls: dict[str, Ticket] = {}
        self.answers: list[Any] = []
        self.looks: dict[str, Any] = {}
        self.peak = 0
        self.second: AlreadySettled | None = None
        self.rejected: list[str] = []
        self.begin()

    def begin(self) -> None:
        """Start a run: a policy with nothing used, and its root."""
        self.policy: Any = self.spec.start("case", now=self.now)
        self.modules = self.policy.modules
        if self.only_watches:
            self.policy = Shadow(self.policy, run="case")
        self.nodes = {"root": self.policy.spawn(SpawnAsk(None, (), amounts()), self.now).ticket}

    def played(self, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Carry out steps and return what the policy said."""
        for step in steps:
            STEPS[step["do"]](self, step)
        return self.told()

    def plain(self, amount: int | None) -> float | int | None:
        """Return an amount of the channel that is looked at in its unit: dollars, or a count."""
        return amount / NUSD_PER_USD if amount is not None and self.channel == COST else amount

    def balance(self) -> dict[str, Any]:
        """Return spent, held, left and unknown of the channel that is looked at."""
        found = [_balance(module, self.channel, self.nodes["root"]) for module in self.modules]
        spent, held, left, unknown = next((one for one in found if one is not None), (None, None, None, 0))
        told = {"spent": spent, "held": held, "left": left}
        return {name: self.plain(value) for name, value in told.items()} | {"unknown": unknown}

    def watch(self) -> None:
        """Remember the most that was spent and held at once."""
        now = self.balance()
        self.peak = max(self.peak, (now["spent"] or 0) + (now["held"] or 0))

    def told(self) -> dict[str, Any]:
        """Return everything in the words of the cases."""
        refused = [answer for answer in self.answers if isinstance(answer, Refusal)]
        short = refused[-1].shortfalls[0] if refused else None
        granted = [answer for answer in self.answers if isinstance(answer, Grant)]
        ceilings = [g.ceiling[self.channel] for g in granted if g.ceiling is not None]
        return {
            **self.balance(),
            **self.looks,
            "admitted": len(granted),
            "refused": len(refused),
            "codes": sorted({str(answer.code) for answer in refused}),
            "limit": None if short is None else self.plain(short.limit),
            "asked": None if short is None else self.plain(short.asked),
            "free": None if short is None else self.plain(short.free),
            "billed": self.plain(self.billed),
            "peak": round(self.peak, 9),
            "ceilings": [self.plain(ceiling) for ceiling in ceilings],
            "answers": ["admitted" if isinstance(answer, Grant) else "refused" for answer in self.answers],
            "second_settlement": None if self.second is None else "already settled",
            "first_charge": None if self.second is None else self.plain(self.second.first.spent[self.channel]),  # type: ignore[attr-defined]
            "rejected": self.rejected,
            "outside_the_cap": sum(one.answer in ("refused", "moot") for one in getattr(self.policy, "answers", ())),
        }


def _balance(module: Any, channel: int, root: Ticket) -> tuple[Any, Any, Any, int] | None:
    """Return spent, held, left and unknown of whatever keeps them."""
    if hasattr(module, "pot"):
        pot, limit = module.pot, module.pot.limits[channel]
        left = None if limit < 0 or pot.unknown[channel] else limit - pot.spent[channel] - pot.held[channel]
        return pot.spent[channel], pot.held[channel], left, pot.unknown[channel]
    if hasattr(module, "pool"):
        pool = module.pool
        return pool.spent()[channel], pool.held()[channel], pool.free()[channel], 0
    if hasattr(module, "ledger"):
        ledger = module.ledger
        return (ledger.cost_nusd if channel == COST else ledger.steps), 0, None, ledger.unmetered_runs
    counter: Any = root.memory[module.index] if root.memory else None
    return (counter.used, 0, counter.remaining, 0) if hasattr(counter, "remaining") else None


def _amounts(step: Mapping[str, Any]) -> Amounts:
    return amounts(**{name: step[name] for name in ("calls", "input", "tokens", "fresh", "cost_usd") if name in step})


def _bound(book: Book, step: Mapping[str, Any]) -> Amounts:
    """Return a call's worst case: as it is given, or from its model's price."""
    if "model" not in step:
        return _amounts({"calls": 1, **step})
    size = RequestSize(text_bytes=step.get("text_bytes", 1))
    return book.prices.bound(step["model"], size, output_ceiling=step["output_ceiling"])


def _ask(book: Book, step: Mapping[str, Any]) -> None:
    for turn in range(min(step.get("times", 1), MOST)):
        number = len(book.answers)
        kind, many = step.get("kind", "model"), step.get("count", 1)
        retry = step.get("attempt", 0)
        ask = StepAsk(book.nodes[step.get("node", "root")], number - retry, retry, _bound(book, step), kind, many)
        answer = book.policy.admit(ask, book.now)
        book.answers.append(answer)
        if isinstance(answer, Grant):
            book.calls[f"{step.get('as', 'call')} {number}" if turn or "as" not in step else step["as"]] = answer.ticket
        book.watch()


def _use(step: Mapping[str, Any]) -> Use:
    if step.get("status") == "unsent":
        return Use(NOT_USED, "unsent")
    known = _amounts(step)
    return Use((step.get("calls", 1), *known[1:]), step.get("status", "completed"), step.get("turn", "interactive"))


def _settle(book: Book, step: Mapping[str, Any]) -> None:
    wanted = [step["call"]] if "call" in step else list(book.calls)[: step.get("first", MOST)]
    for name in wanted:
        try:
            use = _use(step)
            book.policy.settle(book.calls[name], use, book.now)
            book.billed += use.spent[book.channel] or 0
        except AlreadySettled as error:
            book.second = error
        except InputError as error:
            book.rejected.append(error.what)
            continue
        if "call" not in step:
            del book.calls[name]
    book.watch()


def _spend(book: Book, step: Mapping[str, Any]) -> None:
    """Ask for calls and settle each before the next asks."""
    for _ in range(min(step.get("times", 1), MOST)):
        _ask(book, {**step, "as": "spent", "times": 1})
        ticket = book.calls.pop("spent", None)
        if ticket is not None:
            use = _use({**step, **step.get("uses", {})})
            book.policy.settle(ticket, use, book.now)
            book.billed += use.spent[book.channel] or 0
            book.watch()
    if step.get("before"):  # what was used before the case begins is none of its answers
        book.answers.clear()


def _start(book: Book, step: Mapping[str, Any]) -> None:
    above = book.nodes[step.get("node", "root")]
    many = step.get("times", 1)
    for i in range(many):
        path = (*above.path, (len(book.answers), i, 0))
        asked = SpawnAsk(above, path, _amounts(step), together=many - i)
        answer = book.policy.spawn(asked, book.now)
        book.answers.append(answer)
        if isinstance(answer, Grant):
            book.nodes[step["as"] if many == 1 else f"{step['as']}{i}"] = answer.ticket


def _close(book: Book, step: Mapping[str, Any]) -> None:
    try:
        book.policy.close(book.nodes[step["node"]], Use(NOT_USED), COMPLETED, book.now)
    except AlreadySettled as error:
        book.second = error


def _look(book: Book, step: Mapping[str, Any]) -> None:
    book.looks[step["as"]] = book.balance()


def _forget(book: Book, step: Mapping[str, Any]) -> None:
    """Count answers from here on."""
    book.answers.clear()


def _wait(book: Book, step: Mapping[str, Any]) -> None:
    book.now = Time(book.now + step["seconds"] * NS_PER_S)


def _new_run(book: Book, step: Mapping[str, Any]) -> None:
    book.begin()


STEPS: Final[dict[str, Callable[[Book, Mapping[str, Any]], None]]] = {
    "ask": _ask,
    "settle": _settle,
    "spend": _spend,
    "start": _start,
    "close": _close,
    "look": _look,
    "count from here": _forget,
    "wait": _wait,
    "new run": _new_run,
}
"""What a step does, by its name."""


def built(case: Case) -> Answer:
    """Build one policy for each value of a limit; say which values are refused, and whether a first step fits."""
    given = case["given"]
    told: dict[str, str] = {}
    for name, value in given["values"].items():
        for maker in given["limits"]:
            word = _built(maker, float(value) if value in ("nan", "inf", "-inf") else value)
            told.setdefault(name, word)
            if told[name] != word:
                raise UnknownShape(f"limits that differ: {maker} answers {word}")
    return told


def _built(maker: Mapping[str, Any], value: Any) -> str:
    fields = {key: item for key, item in maker.items() if key not in ("limit", "code")}
    module = {**fields, maker["limit"]: value}
    try:
        book = Book({}, PolicySpec.from_dict({"name": "case", "modules": [module]}))
    except InputError as error:
        return "refused by name" if maker["limit"] in str(error) else f"refused: {error}"
    if fields["kind"] == "tree_limits":
        _start(book, {"as": "kid"})
    else:
        _ask(book, {"input": 10, "tokens": 10, "fresh": 10, "cost_usd": 0.1})
    answer = book.answers[-1]
    if isinstance(answer, Grant):
        return "admits"
    short = answer.shortfalls[0]
    return (
        "refuses by its dimension" if str(short.code) == maker["code"] or short.channel == maker["code"] else str(short)
    )

"""Every command that analyses, on records nobody thinks of: an answer, a no, or one line; no fault, no warning."""

from __future__ import annotations

import json
import math
import re
import warnings
from itertools import product

import pytest
from command_line import run
from odd_records import ODD, runs

from harness_lab.analyze import ceiling
from harness_lab.export import TunedConfig
from harness_lab.settlements import Settlements
from harness_lab.stats.estimates import percent
from harness_lab.writing import dollars

COMMANDS = {
    "distribution": ["distribution", "ODD", "--fit"],
    "distribution of time": ["distribution", "ODD", "--column", "duration_ns"],
    "symptoms": ["symptoms", "ODD"],
    "caps": ["caps", "ODD"],
    "floor-costs": ["floor-costs", "ODD"],
    "holds": ["holds", "ODD", "--pool", "20000", "--at-once", "4"],
    "holds of cost": ["holds", "ODD", "--pool", "1e9", "--at-once", "2", "--column", "cost_nusd", "--level", "run"],
    "matters": ["matters", "ODD"],
    "limits": ["limits", "ODD"],
    "ceiling": ["ceiling", "ODD", "--target", "0.8"],
    "ceiling of time": ["ceiling", "ODD", "--target", "0.6", "--channel", "time"],
    "every ceiling": ["ceiling", "ODD", "--curve"],
    "cheapest": ["ceiling", "ODD", "--failure-usd", "3", "--retries", "1"],
    "price": ["price", "ODD"],
    "price given": ["price", "ODD", "--price-usd", "1"],
    "period": ["period", "ODD", "--budget-usd", "40", "--period-runs", "30"],
    "drift": ["drift", "USUAL", "ODD"],
    "drift back": ["drift", "ODD", "USUAL"],
    "check": ["check", "CONFIG", "--against", "ODD", "--reference", "USUAL"],
    "floors": ["floors", "ODD"],
    "probes": ["floors", "ODD", "--plan-probes"],
    "quality": ["quality", "ODD"],
    "reprice": ["reprice", "ODD", "--table", "PRICES"],
    "price-changes": ["price-changes", "ODD", "--table", "PRICES", "--table", "LATER", "--fee-usd", "5"],
    "best": ["best", "ODD"],
}
HEAVY = {
    "both ways": ["ceiling", "ODD", "--target", "0.5", "--simulate"],
    "check-fit": ["check-fit", "ODD"],
}
WITHOUT_BY = {"floors", "probes", "quality", "best", *HEAVY}
_NO_FIGURE = re.compile(r"\bnan\b|<NA>|\bNone\b|\binf\b|\de[-+]\d\d|NaT")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Write every set of records, a config and two price tables once."""
    folder = tmp_path_factory.mktemp("odd")
    for name, make in ODD.items():
        Settlements.from_columns(make()).to_parquet(folder / f"{name}.parquet")
    TunedConfig.from_ceiling(ceiling(runs(), target=0.85), runs()).write(folder / "config.json")
    for day, price in (("2026-01-01", 1_000_000), ("2026-02-01", 2_000_000)):
        tiers = [{"input": price, "output": 5 * price, "cache_read": price, "cache_write": price}]
        (folder / f"{day}.json").write_text(json.dumps({"date": day, "models": {"m": tiers}}))
    return folder


def ask(place, command: list[str], odd: str, *more: str) -> list[str]:
    files = {"ODD": f"{odd}.parquet", "USUAL": "usual.parquet", "CONFIG": "config.json", "PRICES": "2026-01-01.json",
             "LATER": "2026-02-01.json"}  # fmt: skip
    return [str(place / files[word]) if word in files else word for word in command] + list(more)


def check(arguments: list[str], capsys) -> None:
    """Run a command; hold what it says against what every command promises."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code = run(*arguments)
    said = capsys.readouterr()
    if code == 2:
        assert said.out == ""
        (line,) = [one for one in said.err.splitlines() if "; see harness-lab quality" not in one]
        assert line.startswith("harness-lab: ")
        return
    assert code in (0, 1)
    assert all("; see harness-lab quality" in line for line in said.err.splitlines())
    if "--json" in arguments:
        assert json.loads(said.out) is not None
    else:
        plain = said.out.replace("cluster=None", "")
        assert not _NO_FIGURE.search(plain), _NO_FIGURE.findall(plain)


PAIRS = [(name, odd) for (i, name), (j, odd) in product(enumerate(COMMANDS), enumerate(ODD)) if (i + j) % 5 == 0]


@pytest.mark.parametrize(("command", "odd"), PAIRS)
def test_a_command_answers_or_says_in_one_line_why_not(command: str, odd: str, place, capsys) -> None:
    check(ask(place, COMMANDS[command], odd), capsys)


@pytest.mark.slow
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("command", [*COMMANDS, *HEAVY])
def test_every_command_answers_on_every_set_in_every_form(command: str, odd: str, place, capsys) -> None:
    for more in ([], ["--json"], ["--by", "agent"], ["--by", "agent", "--json"]):
        if "--by" not in more or command not in WITHOUT_BY:
            check(ask(place, {**COMMANDS, **HEAVY}[command], odd, *more), capsys)


def numbers(data: object) -> list[float]:
    if isinstance(data, dict):
        return [one for value in data.values() for one in numbers(value)]
    if isinstance(data, list):
        return [one for value in data for one in numbers(value)]
    return [float(data)] if isinstance(data, (int, float)) and not isinstance(data, bool) else []


SAME = sorted(set(COMMANDS) - {"quality", "probes", "best", "every ceiling"})
CONSTANTS = {"95 %", "90 %", "80 %", "50 %", "5 %", "1 %"}
"""Shares that stand in words: confidence, quantiles, marks."""


@pytest.mark.parametrize("command", SAME)
def test_what_the_text_says_in_dollars_and_percent_is_in_the_json(command: str, place, capsys) -> None:
    odd = "caps differ" if command == "caps" else "many clusters"
    assert run(*ask(place, COMMANDS[command], odd)) in (0, 1)
    text = capsys.readouterr().out.rpartition("\n\n")[0]
    assert run(*ask(place, COMMANDS[command], odd, "--json")) in (0, 1)
    raw = capsys.readouterr().out
    found = [one for one in numbers(json.loads(raw)) if math.isfinite(one)]
    shown = {dollars(abs(one) * factor) for one in found for factor in (1.0, 1e-9)}
    shown |= {f"${abs(one):{form}}" for one in found for form in (",.4g", ",.2f")}
    shown |= {percent(part) for one in found for part in (one, 1 - one)} | CONSTANTS
    told = re.findall(r"\$[\d,]*\.?\d+|[\d.]+ %", text)
    assert [one for one in told if one not in shown and one not in raw] == []

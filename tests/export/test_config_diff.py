"""Two configs are compared in words: what got tighter, what looser, what stands behind it now."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lab.cli import main
from harness_lab.export import AgentLimits, Evidence, Provenance, TunedConfig
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.policies import PolicySpec, compose, reservation_pool, runtime_floors, shared_ledger, tree_limits

PROVENANCE = Provenance(date="2026-01-31", harness_lab="0.1.0")
WHY = Evidence(value="reservation_pool.cost_usd", chosen=0.5, unit="USD per run", target="85 %", method="m", n=200)


def config(policy: PolicySpec, **more: object) -> TunedConfig:
    return TunedConfig(policy, **({"provenance": PROVENANCE} | more))  # type: ignore[arg-type]


def words(before: TunedConfig, after: TunedConfig) -> list[str]:
    return [str(one) for one in before.diff(after).changes]


def test_the_same_config_has_no_changes() -> None:
    assert words(config(shared_ledger(3)), config(shared_ledger(3))) == []
    assert config(shared_ledger(3)).diff(config(shared_ledger(3))).summary() == "The two configs are the same."


def test_a_limit_says_which_way_it_moved() -> None:
    found = words(config(shared_ledger(20, 1.5)), config(shared_ledger(25, 1.2)))
    assert found == [
        "shared_ledger.max_steps: 20 model calls -> 25 model calls (looser, +25.0%)",
        "shared_ledger.max_cost_usd: $1.5 -> $1.2 (tighter, -20.0%)",
    ]


def test_no_limit_is_not_a_limit_of_nothing() -> None:
    (gone,) = words(config(shared_ledger(20, 0.0)), config(shared_ledger(20)))
    assert gone == "shared_ledger.max_cost_usd: $0.0 -> no limit (looser: the limit is gone)"
    (new,) = words(config(shared_ledger(20)), config(shared_ledger(20, 0.0)))
    assert new.endswith("(tighter: a limit where there was none)")


def test_a_module_that_goes_takes_only_what_it_said() -> None:
    pool, both = (
        reservation_pool(tokens=5),
        compose(reservation_pool(tokens=5), tree_limits(2), name="reservation pool"),
    )
    assert words(config(both), config(pool)) == [
        "tree_limits.max_depth: 2 levels -> no limit (looser: the limit is gone)"
    ]


def test_floors_are_compared_row_by_row() -> None:
    tables = [FloorTable((FloorRow(key=FloorKey(backend="pi", model="m"), floor=floor, n=n),)) for floor, n in PAIRS]
    (found,) = words(*(config(runtime_floors(table)) for table in tables))
    assert found == "floor of pi / m (context unknown, input-total): 31,211 tokens (n = 6) -> 32,296 tokens (n = 5)"


PAIRS = ((31_211, 6), (32_296, 5))


def test_an_agent_that_comes_or_goes_is_said_with_what_it_limits() -> None:
    agent = AgentLimits(name="a", max_calls=3, disallowed_tools=("Bash",))
    none, one = (config(shared_ledger(20), agents=agents) for agents in ((), (agent,)))
    assert words(none, one) == ["agent 'a': added, max_calls 3 model calls, disallowed_tools ['Bash']"]
    assert words(one, none) == ["agent 'a': gone, with it max_calls 3 model calls, disallowed_tools ['Bash']"]


def test_evidence_agents_mode_and_origin_are_compared() -> None:
    before = config(reservation_pool(cost_usd=0.5), evidence=(WHY,), agents=(AgentLimits(name="a", max_calls=3),))
    after = config(
        reservation_pool(cost_usd=0.5),
        evidence=(WHY.model_copy(update={"n": 400}),),
        agents=(AgentLimits(name="a", max_calls=4),),
        mode="shadow",
        provenance=PROVENANCE.model_copy(update={"date": "2026-02-28"}),
    )
    assert words(before, after) == [
        "agent 'a'.max_calls: 3 model calls -> 4 model calls (looser, +33.3%)",
        "mode: enforce -> shadow (now what is over a limit is only written down)",
        "provenance.date: 2026-01-31 -> 2026-02-28",
        "evidence for reservation_pool.cost_usd: n 200 -> 400",
    ]


def test_the_command_says_it_and_its_exit_code_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(config(shared_ledger(n)).write(tmp_path / f"{n}.json")) for n in (20, 25)]
    with pytest.raises(SystemExit) as ended:
        main(["diff", *paths, "--exit-code"])
    assert ended.value.code == 1
    assert capsys.readouterr().out == "- shared_ledger.max_steps: 20 model calls -> 25 model calls (looser, +25.0%)\n"

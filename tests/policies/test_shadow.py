"""A policy in the shadow: it is asked everything and stops nothing, and its answers are those it would have given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.analyze.shadow import shadow_report
from harness_lab.cli import main
from harness_lab.clock import NS_PER_S, Time
from harness_lab.errors import AlreadySettled, ReadError
from harness_lab.outcome import COST
from harness_lab.policies import (
    COMPLETED,
    Grant,
    Shadow,
    SpawnAsk,
    StepAsk,
    Ticket,
    Use,
    call_holds,
    compose,
    hard_cap,
    reservation_pool,
    shared_ledger,
    tree_limits,
)
from harness_lab.usage import amounts, nusd

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.policies import PolicySpec

NOW = Time(0)


def begun(spec: PolicySpec, **options: Any) -> tuple[Shadow, Ticket]:
    shadow = Shadow(spec.start("run-1"), run="run-1", **options)
    return shadow, shadow.spawn(SpawnAsk(None, (), amounts()), NOW).ticket


def call(shadow: Shadow, node: Ticket, usd: float | None, bound: float = 0.4, now: Time = NOW) -> str:
    ticket = shadow.admit(StepAsk(node, 0, 0, amounts(calls=1, cost_usd=bound)), now).ticket
    answer = shadow.answers[-1].answer
    shadow.settle(ticket, Use((1, 10, 20, 20, amounts(cost_usd=usd)[COST])), now)
    return answer


def child(shadow: Shadow, parent: Ticket, slot: int = 0, **ask: Any) -> Ticket:
    return shadow.spawn(SpawnAsk(parent, (*parent.path, (0, slot, 0)), amounts(**ask)), NOW).ticket


def test_everything_is_admitted_and_after_the_first_refusal_all_is_moot() -> None:
    shadow, root = begun(shared_ledger(2))
    assert [call(shadow, root, 0.1) for _ in range(5)] == ["granted", "granted", "refused", "moot", "moot"]
    child(shadow, root)
    assert shadow.answers[-1].answer == "moot"
    assert shadow.answers[-1].codes == ("steps-exhausted (calls)",)


def test_a_refused_child_is_moot_with_all_below_it_and_its_parent_is_not() -> None:
    shadow, root = begun(tree_limits(max_depth=1))
    one = child(shadow, root)
    two = child(shadow, one)
    assert shadow.answers[-1].answer == "refused"
    assert call(shadow, two, 0.1) == "moot"
    child(shadow, two)
    assert shadow.answers[-1].answer == "moot"
    assert (call(shadow, one, 0.1), call(shadow, root, 0.1)) == ("granted", "granted")


@pytest.mark.parametrize(("count", "spent_usd"), [(False, 0.8), (True, 1.6)])
def test_what_was_refused_is_charged_to_the_policy_only_by_choice(count: bool, spent_usd: float) -> None:
    policy = compose(hard_cap(1.0), shared_ledger(9)).start()
    shadow = Shadow(policy, count_refused=count)
    root = shadow.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    for _ in range(4):
        call(shadow, root, 0.4)
    cap, ledger = policy.modules
    assert cap.pot.spent[COST] == nusd(spent_usd)  # type: ignore[attr-defined]
    assert ledger.ledger.cost_nusd == nusd(spent_usd)  # type: ignore[attr-defined]
    assert cap.pot.held[COST] == 0  # type: ignore[attr-defined]


def test_a_call_that_would_have_waited_runs_at_once_and_holds_nothing() -> None:
    policy = call_holds(calls=1).start()
    shadow = Shadow(policy)
    root = shadow.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    shadow.admit(StepAsk(root, 0, 0, amounts(calls=1)), NOW)
    other = shadow.admit(StepAsk(root, 1, 0, amounts(calls=1), wait_until=Time(9)), NOW)
    assert shadow.answers[-1].answer == "waits"
    assert isinstance(other, Grant)
    assert policy.tick(NOW) is None


def test_from_its_deadline_on_a_node_is_refused_and_nobody_stops_it() -> None:
    shadow, root = begun(tree_limits(timeout_s=5))
    one = child(shadow, root)
    assert one.deadline is None
    assert call(shadow, one, 0.1, now=Time(4 * NS_PER_S)) == "granted"
    assert call(shadow, one, 0.1, now=Time(5 * NS_PER_S)) == "refused"
    assert shadow.answers[-1].codes == ("deadline",)
    assert call(shadow, one, 0.1, now=Time(6 * NS_PER_S)) == "moot"


def test_a_ticket_closes_once_here_too() -> None:
    shadow, root = begun(shared_ledger(0))
    ticket = shadow.admit(StepAsk(root, 0, 0, amounts()), NOW).ticket
    shadow.settle(ticket, Use((0,) * 5), NOW)
    with pytest.raises(AlreadySettled):
        shadow.settle(ticket, Use((0,) * 5), NOW)
    shadow.close(root, Use((0,) * 5), COMPLETED, NOW)
    with pytest.raises(AlreadySettled):
        shadow.close(root, Use((0,) * 5), COMPLETED, NOW)


def test_the_report_says_what_each_limit_would_have_refused_and_what_that_cost() -> None:
    shadow, root = begun(compose(shared_ledger(3), hard_cap(1.0)))
    one = child(shadow, root, cost_usd=0.2)
    call(shadow, one, 0.3)
    call(shadow, one, None)
    for usd in (0.1, 0.1, 0.1, 0.4):
        call(shadow, root, usd)
    report = shadow_report(shadow.rows())
    assert dict(report.answers) == {"granted": 5, "refused": 2, "moot": 1, "waits": 0}
    cap, steps = sorted(report.limits, key=lambda limit: limit.limit)
    assert (cap.limit, cap.nodes, cap.asks, cap.cost_nusd, cap.unknown) == (
        "cost-cap-would-exceed (cost)",
        1,
        2,
        nusd(0.3),
        1,
    )
    assert (steps.limit, steps.asks, steps.cost_nusd, steps.unknown) == ("steps-exhausted (calls)", 1, nusd(0.4), 0)
    assert (report.cost_nusd, report.unknown, report.stopped_runs) == (nusd(1.0), 1, 1)
    assert "at least $0.3000 (1 call(s) of unknown cost)" in report.summary()
    assert list(report.to_frame()["cost_usd"]) == [0.4, 0.3]


def test_the_command_reads_the_rows_of_many_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shadow.jsonl"
    with file.open("w") as out:
        for run in ("a", "b"):
            shadow = Shadow(shared_ledger(1).start(), run=run, sink=lambda row: out.write(json.dumps(row) + "\n"))
            root = shadow.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
            call(shadow, root, 0.1)
            call(shadow, root, 0.1)
    with pytest.raises(SystemExit) as left:
        main(["shadow-report", str(file), "--json"])
    assert left.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["runs"], told["stopped_runs"], told["limits"][0]["cost_nusd"]) == (2, 2, nusd(0.2))


@pytest.mark.parametrize("line", ["{", "[]", '{"run": 1}', '{"a": NaN}'])
def test_a_file_that_is_none_of_a_shadows_is_refused_in_one_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "x").write_text(line)
    with pytest.raises(ReadError, match="line 1"):
        shadow_report(tmp_path / "x")
    with pytest.raises(ReadError):
        shadow_report(tmp_path / "none")


SPECS = st.sampled_from(
    [shared_ledger(3), hard_cap(20e-9), compose(reservation_pool(calls=4, cost_usd=15e-9), tree_limits(max_depth=1))]
)
MOVES = st.lists(st.tuples(st.sampled_from(["spawn", "call"]), st.integers(0, 9), st.integers(0, 9)), max_size=30)


@settings(max_examples=150, deadline=None)
@given(spec=SPECS, moves=MOVES)
def test_until_anything_is_refused_the_answers_are_those_of_the_policy_itself(spec: PolicySpec, moves: Any) -> None:
    shadow, policy = Shadow(spec.start()), spec.start()
    theirs: Any = policy.spawn(SpawnAsk(None, (), amounts()), NOW)
    pairs = [(shadow.spawn(SpawnAsk(None, (), amounts()), NOW).ticket, theirs.ticket)]
    for move, which, cost in moves:
        mine, real = pairs[which % len(pairs)]
        path, bound = (*mine.path, (0, len(shadow.answers), 0)), (1, None, None, None, cost)
        if move == "spawn":
            seen: Any = shadow.spawn(SpawnAsk(mine, path, bound), NOW)
            answer: Any = policy.spawn(SpawnAsk(real, path, bound), NOW)
        else:
            seen = shadow.admit(StepAsk(mine, 0, 0, bound), NOW)
            answer = policy.admit(StepAsk(real, 0, 0, bound), NOW)
        assert (shadow.answers[-1].answer == "granted") == isinstance(answer, Grant)
        if not isinstance(answer, Grant):
            return
        if move == "spawn":
            pairs.append((seen.ticket, answer.ticket))
        else:
            shadow.settle(seen.ticket, Use(bound), NOW)
            policy.settle(answer.ticket, Use(bound), NOW)


def test_a_line_that_was_cut_short_is_set_aside_and_counted(tmp_path: Path) -> None:
    rows: list[str] = []
    shadow = Shadow(shared_ledger(1).start(), run="a", sink=lambda row: rows.append(json.dumps(row)))
    root = shadow.spawn(SpawnAsk(None, (), amounts()), NOW).ticket
    call(shadow, root, 0.1)
    whole = "\n".join(rows).encode()
    torn = '{"run": "ü'.encode()[:-1]
    (tmp_path / "x").write_bytes(torn + b"\nnull\n" + whole + b"\n" + torn)
    report = shadow_report(tmp_path / "x")
    assert (report.runs, report.cost_nusd, report.set_aside) == (1, nusd(0.1), 3)
    assert "3 line(s) set aside" in report.summary()
    assert report.to_dict()["set_aside"] == 3

"""Policies behind an agent runtime: state that outlives runs, accounts on disk, policies that are only tried out."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from harness_lab.agents import AgentRuntime, ModeRegistry, Tool, ToolRegistry, off_loop
from harness_lab.agents.scripted import ScriptedClient, calls, says
from harness_lab.agents.session import Participant
from harness_lab.analyze.shadow import shadow_report
from harness_lab.budget.durable import DurableAccount
from harness_lab.errors import AccountUnavailable, InputError
from harness_lab.outcome import Outcome
from harness_lab.policies import Shadowed, compose, durable_account, period_budget, shared_ledger, tree_limits
from harness_lab.simulate.virtual_loop import VirtualLoop
from harness_lab.usage import amounts

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.agents import AgentResponse

DEFAULT = [calls("echo"), says("done")]


def runtime_of(policy: Any = None, script: list[Any] | None = None, **options: Any) -> AgentRuntime:
    modes = ModeRegistry({"modes": {"chat": {"system_prompt": "Be brief.", "tools": ["echo"], "max_steps": 9}}})
    tools = ToolRegistry().register(Tool("echo", lambda arguments: "echo"))
    client = ScriptedClient(DEFAULT * 4 if script is None else script)
    return AgentRuntime(client, modes, tools, policy=policy, **options)


async def go(runtime: AgentRuntime, user: str = "ann", scope: str = "support", **options: Any) -> AgentResponse:
    session = runtime.sessions.session(scope, participant=Participant("user", user))
    return await runtime.send(session, "go", **options)


def account(path: Path, **caps: Any) -> Any:
    return durable_account(str(path), if_missing="create", synchronous="normal", **caps)


def test_a_period_budget_counts_the_runs_of_one_user_together_and_of_another_apart() -> None:
    runtime = runtime_of(period_budget(calls=3, by="user", every="day"))
    ends = [asyncio.run(go(runtime, user)) for user in ("ann", "ann", "ben")]
    assert [end.outcome for end in ends] == [Outcome.COMPLETED, Outcome.EXHAUSTED, Outcome.COMPLETED]
    assert "budget-exhausted" in (ends[1].stopped_because or "") or "day by user" in (ends[1].stopped_because or "")


def test_a_run_says_to_which_groups_it_belongs_or_does_not_start() -> None:
    runtime = runtime_of(period_budget(calls=2, by="team", every="day"))
    with pytest.raises(InputError, match="team"):
        asyncio.run(go(runtime))
    assert asyncio.run(go(runtime, groups={"team": "search"})).outcome is Outcome.COMPLETED
    assert asyncio.run(go(runtime, groups={"team": "search"})).outcome is Outcome.EXHAUSTED


def test_the_budget_of_a_session_outlives_its_runs() -> None:
    runtime = runtime_of(period_budget(calls=2, by="session"))
    ends = [asyncio.run(go(runtime, scope=scope)).outcome for scope in ("one", "one", "two")]
    assert ends == [Outcome.COMPLETED, Outcome.EXHAUSTED, Outcome.COMPLETED]


def test_who_waits_for_a_window_is_let_on_when_it_has_turned() -> None:
    loop = VirtualLoop()
    rolling = period_budget(calls=2, rolling_s=60)
    runtime = runtime_of(compose(tree_limits(max_wait_s=120), rolling))

    async def two() -> tuple[AgentResponse, AgentResponse, float]:
        one, two = await go(runtime, scope="a"), await go(runtime, scope="b")
        return one, two, loop.time()

    one, other, ended = loop.run_until_complete(two())
    loop.close()
    assert (one.outcome, other.outcome) == (Outcome.COMPLETED, Outcome.COMPLETED)
    assert ended == pytest.approx(60, abs=1.01)  # polled once a second


def test_an_account_on_disk_is_asked_in_one_thread_that_is_not_the_loops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    real = DurableAccount.hold

    def seen(self: DurableAccount, *args: Any, **options: Any) -> Any:
        threads.add(threading.get_ident())
        return real(self, *args, **options)

    monkeypatch.setattr(DurableAccount, "hold", seen)
    with runtime_of(account(tmp_path / "a.db", calls=8)) as runtime:

        async def many() -> list[AgentResponse]:
            return await asyncio.gather(*(go(runtime, scope=str(i)) for i in range(4)))

        assert all(end.outcome is Outcome.COMPLETED for end in asyncio.run(many()))
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    books = DurableAccount(tmp_path / "a.db").balance()
    assert (books.spent[0], books.held[0]) == (8, 0)


def test_two_runtimes_on_one_file_share_its_cap(tmp_path: Path) -> None:
    runtimes = [runtime_of(account(tmp_path / "a.db", calls=3)) for _ in range(2)]
    ends = [asyncio.run(go(runtime)).outcome for runtime in runtimes]
    assert ends == [Outcome.COMPLETED, Outcome.EXHAUSTED]
    for runtime in runtimes:
        runtime.close()


def test_a_settlement_that_cannot_be_written_is_tried_again_and_then_left_to_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tries = DurableAccount.settle, []

    def broken(self: DurableAccount, *args: Any, **options: Any) -> Any:
        tries.append(args)
        if len(tries) in (1, 3, 4):
            raise AccountUnavailable(self.path, "the disk is full")
        return real(self, *args, **options)

    monkeypatch.setattr(DurableAccount, "settle", broken)
    monkeypatch.setattr(off_loop, "RETRIES_S", (0.0,))
    runtime = runtime_of(account(tmp_path / "a.db", calls=8))
    with pytest.warns(RuntimeWarning, match="its hold expires by rule"):
        end = asyncio.run(go(runtime))
    assert (end.outcome, end.usage.steps) == (Outcome.COMPLETED, 2)
    runtime.close()
    books = DurableAccount(tmp_path / "a.db").balance()
    assert (books.spent[0], books.held[0]) == (1, 1)


def test_a_run_that_is_cancelled_while_the_account_is_asked_holds_nothing_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer, real = threading.Event(), threading.Event(), DurableAccount.hold

    def slow(self: DurableAccount, *args: Any, **options: Any) -> Any:
        asked.set()
        answer.wait()
        return real(self, *args, **options)

    monkeypatch.setattr(DurableAccount, "hold", slow)
    runtime = runtime_of(account(tmp_path / "a.db", calls=8))

    async def cancelled() -> None:
        run = asyncio.ensure_future(go(runtime))
        await asyncio.to_thread(asked.wait)
        run.cancel()
        answer.set()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(cancelled())
    runtime.close()
    books = DurableAccount(tmp_path / "a.db").balance()
    assert (books.spent[0], books.held[0]) == (0, 0)


@pytest.mark.parametrize("as_policy", [True, False])
def test_a_policy_that_is_tried_out_stops_nothing_and_its_rows_say_what_it_would_have_refused(
    tmp_path: Path, as_policy: bool
) -> None:
    file = tmp_path / "shadow.jsonl"
    with file.open("w") as log:
        tried = Shadowed(shared_ledger(1, 5.0), sink=lambda row: print(json.dumps(row), file=log))
        runtime = runtime_of(tried) if as_policy else runtime_of(shared_ledger(9), shadow=tried)
        ends = [asyncio.run(go(runtime)) for _ in range(2)]
    assert [end.outcome for end in ends] == [Outcome.COMPLETED] * 2
    report = shadow_report(file)
    assert (report.runs, report.stopped_runs) == (2, 2)
    assert [limit.limit for limit in report.limits] == ["steps-exhausted (calls)"]


def test_a_period_budget_and_an_account_can_be_tried_out_over_many_runs(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    tried = compose(period_budget(calls=3, by="user", every="day"), account(tmp_path / "a.db", calls=99))
    with runtime_of(tree_limits(max_depth=1), shadow=Shadowed(tried, sink=rows.append)) as runtime:
        ends = [asyncio.run(go(runtime)).outcome for _ in range(2)]
    assert ends == [Outcome.COMPLETED] * 2
    assert [row["answer"] for row in rows if row["question"] == "admit"] == ["granted"] * 3 + ["refused"]
    assert DurableAccount(tmp_path / "a.db").balance().spent[0] == 3


def test_the_ledgers_rule_for_unknown_cost_is_that_of_the_policy() -> None:
    policy, bound = shared_ledger(9, 1.0, unknown_usage="charge-hold"), amounts(calls=1, cost_usd=0.25)
    script = [calls("echo", cost_usd=None), says("done", cost_usd=None)]
    end = asyncio.run(go(runtime_of(policy, script, bound=lambda request: bound)))
    assert (end.outcome, end.usage.cost_usd) == (Outcome.COMPLETED, 0.5)


def test_what_is_no_policy_is_refused_in_one_line() -> None:
    for wrong in (shared_ledger(1).start(), "tree", {"name": "x"}):
        with pytest.raises(InputError, match="policy: expected a PolicySpec, an OpenPolicy or Shadowed"):
            runtime_of(wrong)
    with pytest.raises(InputError, match="shadow: expected"):
        runtime_of(shadow=shared_ledger(1))
    with pytest.raises(InputError, match="policy: expected a PolicySpec"):
        Shadowed(shared_ledger(1).start())  # type: ignore[arg-type]


def test_a_run_whose_account_cannot_be_asked_has_failed_and_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: DurableAccount, *args: Any, **options: Any) -> Any:
        raise AccountUnavailable(self.path, "the disk is gone")

    monkeypatch.setattr(DurableAccount, "hold", gone)
    with runtime_of(account(tmp_path / "a.db", calls=8)) as runtime:
        end = asyncio.run(go(runtime))
    assert end.outcome is Outcome.FAILED
    assert "the disk is gone" in (end.stopped_because or "")

"""The virtual-time kernel: a total order of events, and nobody is left behind."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any

import pytest

from harness_lab.agents.ports import COMPLETION, DEADLINE
from harness_lab.errors import Deadlock, Livelock
from harness_lab.simulate import Kernel, SimRuntime
from harness_lab.simulate import kernel as kernel_module
from harness_lab.simulate.kernel import PARK, Process

Log = list[Any]


def world() -> tuple[Kernel, SimRuntime, Log]:
    kernel = Kernel()
    return kernel, SimRuntime(kernel), []


def test_work_that_ends_at_its_deadline_is_late_whenever_the_deadline_was_armed() -> None:
    kernel, runtime, log = world()

    async def work() -> None:
        try:
            await runtime.sleep(10)
            log.append("done")
        except CancelledError:
            log.append(("late", kernel.now))

    async def guard(process: Process, armed: int) -> None:
        await runtime.sleep(armed)
        kernel.at(10, DEADLINE, lambda: kernel.cancel(process))

    for armed in (0, 5, 10):  # before the work was begun, while it ran, and in the very instant
        kernel.spawn(guard(kernel.spawn(work()), armed))
    kernel.run()
    assert log == [("late", 10)] * 2 + ["done"]  # at 10 the third guard is itself a completion, after the work's


def test_at_one_instant_come_deadlines_then_completions_then_hand_overs_then_starts() -> None:
    kernel, runtime, log = world()

    async def says(word: str) -> None:
        log.append(word)

    async def waits() -> None:
        log.append(await _parked())

    async def sleeps() -> None:
        await runtime.sleep(10)
        log.append("completion")

    waiting = kernel.spawn(waits())
    kernel.at(10, COMPLETION, lambda: kernel.hand_over(waiting, "hand-over"))
    kernel.at(10, COMPLETION, lambda: kernel.spawn(says("start")) and None)
    kernel.spawn(sleeps())
    kernel.at(10, DEADLINE, lambda: log.append("deadline"))
    kernel.run()
    assert log == ["deadline", "completion", "hand-over", "start"]


def test_equal_events_are_first_come_first_served() -> None:
    kernel, runtime, log = world()

    async def sleeps(name: int) -> None:
        await runtime.sleep(7)
        log.append(name)

    for name in range(50):
        kernel.spawn(sleeps(name))
    kernel.run()
    assert log == list(range(50))


def test_time_never_goes_back() -> None:
    kernel, runtime, log = world()

    async def work() -> None:
        await runtime.sleep(10)
        kernel.at(3, DEADLINE, lambda: log.append(kernel.now))
        await runtime.sleep(-5)
        log.append(kernel.now)
        await runtime.sleep(0)
        log.append(kernel.now)

    kernel.spawn(work())
    kernel.run()
    assert log == [10, 10, 10]


def test_a_cancelled_timer_does_nothing_and_does_not_move_time() -> None:
    kernel, _, log = world()
    kernel.at(10, DEADLINE, lambda: log.append("never")).cancel()
    kernel.run()
    assert (log, kernel.now) == ([], 0)


def test_a_stale_wake_up_is_not_delivered() -> None:
    kernel, _, log = world()

    async def waits() -> None:
        for _ in range(2):
            log.append(await _parked())

    process = kernel.spawn(waits())

    async def wakes() -> None:
        kernel.wake(process, "first")
        kernel.wake(process, "stale")

    kernel.spawn(wakes())
    with pytest.raises(Deadlock):
        kernel.run()
    assert log == ["first"]


def test_a_cancel_is_raised_where_the_process_waits_and_before_anything_else() -> None:
    kernel, runtime, log = world()

    async def sleeps(name: str) -> None:
        try:
            await runtime.sleep(10)
            log.append(name)
        except CancelledError:
            log.append(f"{name} cancelled at {kernel.now}")

    victim = kernel.spawn(sleeps("a"))
    kernel.spawn(sleeps("b"))
    kernel.at(10, DEADLINE, lambda: [kernel.cancel(victim) for _ in range(2)].clear())
    kernel.run()
    assert log == ["a cancelled at 10", "b"]


def test_cancelling_what_has_ended_or_not_begun_is_harmless() -> None:
    kernel, runtime, log = world()
    ended = kernel.spawn(runtime.sleep(0))
    unborn = kernel.spawn(runtime.sleep(0))
    kernel.cancel(unborn)
    kernel.run()
    kernel.cancel(ended)
    kernel.run()
    assert (ended.done, unborn.done, log) == (True, True, [])


def test_a_deadlock_names_who_is_parked() -> None:
    kernel, runtime, _ = world()
    kernel.spawn(_parked(), "alice")
    kernel.spawn(runtime.sleep(5), "carol")
    kernel.spawn(_parked(), "bob")
    with pytest.raises(Deadlock, match="2 process") as caught:
        kernel.run()
    assert caught.value.parked == ("alice", "bob")


def test_a_livelock_names_who_ran_and_when(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_module, "MAX_EVENTS_AT_ONE_INSTANT", 1000)
    kernel, runtime, _ = world()

    async def spins() -> None:
        await runtime.sleep(10)
        while True:
            await runtime.sleep(0)

    kernel.spawn(spins(), "spinner")
    with pytest.raises(Livelock, match="last ran spinner") as caught:
        kernel.run()
    assert (caught.value.events, caught.value.at_ns) == (1001, 10)


def test_an_error_ends_the_world_and_closes_the_others_the_youngest_first() -> None:
    kernel, runtime, log = world()

    async def sleeps(name: str) -> None:
        try:
            await runtime.sleep(99)
        finally:
            log.append(name)

    async def breaks() -> None:
        await runtime.sleep(1)
        kernel.spawn(sleeps("never begun"))
        raise ZeroDivisionError

    for name in ("old", "young"):
        kernel.spawn(sleeps(name))
    kernel.spawn(breaks())
    with pytest.raises(ZeroDivisionError):
        kernel.run()
    assert log == ["young", "old"]


class _Parked:
    def __await__(self) -> Any:
        return (yield PARK)


async def _parked() -> Any:
    return await _Parked()

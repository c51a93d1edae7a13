"""The virtual asyncio loop: ordinary asyncio code in virtual time, first come first served."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_lab.errors import Deadlock, Livelock
from harness_lab.simulate import VirtualLoop, virtual_loop

DAY = 86_400.0


def run(coroutine: Any) -> tuple[Any, float]:
    loop = VirtualLoop()
    return loop.run_until_complete(coroutine), loop.time()


def test_a_day_passes_at_once() -> None:
    assert run(asyncio.sleep(DAY, "done")) == ("done", DAY)


def test_ordinary_asyncio_tools_work_in_virtual_time() -> None:
    async def main() -> list[Any]:
        gate, log = asyncio.Semaphore(2), []

        async def job(name: int) -> None:
            async with gate:
                await asyncio.sleep(10)
                log.append((name, asyncio.get_running_loop().time()))

        async with asyncio.TaskGroup() as group:
            for name in range(4):
                group.create_task(job(name))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(DAY), 1)
        return log

    assert run(main()) == ([(0, 10), (1, 10), (2, 20), (3, 20)], 26)


def test_equal_timers_are_first_come_first_served() -> None:
    async def main() -> list[int]:
        log: list[int] = []

        async def job(name: int) -> None:
            await asyncio.sleep(1)
            log.append(name)

        await asyncio.gather(*(job(name) for name in range(100)))
        return log

    assert run(main())[0] == list(range(100))


def test_an_error_comes_out_and_the_loop_of_the_caller_is_untouched() -> None:
    async def main() -> None:
        await asyncio.sleep(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(main())
    assert asyncio.run(asyncio.sleep(0, "still works")) == "still works"


def test_an_error_in_a_callback_is_raised_and_not_taken_for_a_deadlock() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(5, lambda: 1 / 0)
        await asyncio.Event().wait()

    with pytest.raises(ZeroDivisionError):
        run(main())


def test_waiting_for_nothing_is_a_deadlock() -> None:
    with pytest.raises(Deadlock):
        run(asyncio.Event().wait())


def test_spinning_without_time_is_a_livelock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_loop, "MAX_EVENTS_AT_ONE_INSTANT", 1_000)

    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Livelock):
        run(main())

"""Tasks that wait for what a thread reads."""

from __future__ import annotations

import asyncio
import threading

from loopwarden.runner.waiting import Waiters

HANG_S = 60


def test_hundreds_of_tasks_wait_without_a_thread_and_are_woken_by_another() -> None:
    waiters, read = Waiters(), [0]

    async def wait() -> tuple[list[bool], int]:
        waiting = [asyncio.create_task(waiters.wait_for(lambda at=at: read[0] > at, HANG_S)) for at in range(400)]
        await asyncio.sleep(0)
        threads = threading.active_count()

        def reads() -> None:
            for read[0] in range(401):
                waiters.wake()

        await asyncio.to_thread(reads)
        return await asyncio.gather(*waiting), threads

    before = threading.active_count()
    held, threads = asyncio.run(wait())
    assert held == [True] * 400 and threads == before


def test_what_does_not_come_to_hold_in_time_is_told_to_all_at_once() -> None:
    waiters = Waiters()

    async def wait() -> list[bool]:
        return await asyncio.wait_for(asyncio.gather(*(waiters.wait_for(lambda: False, 0.2) for _ in range(400))), 5)

    assert asyncio.run(wait()) == [False] * 400


def test_a_loop_that_ended_while_it_waited_is_nobodys_business() -> None:
    waiters = Waiters()

    async def wait() -> None:
        task = asyncio.create_task(waiters.wait_for(lambda: False, HANG_S))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(wait())
    waiters.wake()

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from loopwarden.client import Connection
from loopwarden.gateway import AsyncGateway, Dropped
from loopwarden_schemas.structs import Compaction, RunFinished, RunStarted, ToolCallFinished, ToolCallStarted


def test_runs_and_calls_of_many_tasks_are_the_same_events(connection: Connection, logged: Any) -> None:
    async def agent(gateway: AsyncGateway, number: int) -> None:
        async with gateway.run(f"run-{number}", agent_id="docs") as run:
            async with run.call("read", {"n": number}) as call:
                await asyncio.sleep(0)
                call.result(number)
            await run.compaction()

    async def fleet() -> None:
        async with AsyncGateway(connection) as gateway:
            await asyncio.gather(*(agent(gateway, number) for number in range(20)))
            assert await gateway.flush()

    asyncio.run(fleet())
    events = logged(connection)
    for number in range(20):
        kinds = [type(event) for event in events if event.run_id == f"run-{number}"]
        assert kinds == [RunStarted, ToolCallStarted, ToolCallFinished, Compaction, RunFinished]


def test_a_receipt_can_be_awaited(connection: Connection) -> None:
    async def send() -> Any:
        async with AsyncGateway(connection) as gateway:
            return await (await gateway.started("run", "read"))

    receipt = asyncio.run(send())
    assert receipt.acknowledged and receipt.offset == 0


def test_what_is_lost_is_raised_to_who_awaits_it() -> None:
    async def send() -> None:
        gateway = AsyncGateway(bootstrap_servers="127.0.0.1:1")
        receipt = await gateway.started("run", "read")
        await gateway.close(0)
        await receipt

    with pytest.raises(Dropped):
        asyncio.run(send())


def test_a_full_buffer_blocks_the_task_and_not_the_loop() -> None:
    async def send() -> int:
        gateway = AsyncGateway(
            bootstrap_servers="127.0.0.1:1", when_away="block", max_buffer_bytes=500, max_block_s=0.2
        )

        async def fill() -> None:
            for _ in range(5):
                await gateway.started("run", "read")

        filling = asyncio.create_task(fill())
        turns = 0
        while not filling.done():
            await asyncio.sleep(0.01)
            turns += 1
        await gateway.close(0)
        return turns

    assert asyncio.run(send()) > 5


def _full(**settings: Any) -> AsyncGateway:
    return AsyncGateway(bootstrap_servers="127.0.0.1:1", when_away="block", max_buffer_bytes=500, **settings)


async def _agent(gateway: AsyncGateway) -> None:
    async with gateway.run() as run:
        while True:
            async with run.call("read") as call:
                call.result(1)


def test_tasks_that_wait_for_room_take_no_thread_of_the_agents() -> None:
    async def main() -> int:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        gateway = _full()
        tasks = [asyncio.create_task(_agent(gateway)) for _ in range(10)]
        await asyncio.sleep(0.2)
        answer = await asyncio.wait_for(asyncio.to_thread(lambda: 42), 30)
        for task in tasks:
            task.cancel()
        # Each ends at once: what it has yet to say does not wait for room.
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
        stats = gateway.gateway.stats
        await gateway.close(0)
        assert stats.sent == stats.buffered and gateway.stats.buffered == 0
        return answer

    assert asyncio.run(main()) == 42


def test_a_gateway_closes_though_all_threads_of_the_loop_are_taken() -> None:
    done = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        gateway = _full()
        await gateway.started("run", "read")
        busy = loop.run_in_executor(None, done.wait)
        await asyncio.wait_for(gateway.close(0), 30)
        assert gateway.stats.dropped == 1
        done.set()
        await busy

    asyncio.run(main())


def test_a_task_that_waited_as_long_as_it_was_to_sends_nothing() -> None:
    async def main() -> None:
        gateway = _full(max_block_s=0.01)
        receipts = [await gateway.started("run", "read") for _ in range(30)]
        stats = gateway.stats
        assert isinstance(receipts[-1].error, Dropped)
        assert stats.dropped > 20 and stats.dropped + stats.buffered == stats.sent == 30
        await gateway.close(0)

    asyncio.run(main())


def test_tasks_that_wait_for_room_go_on_when_there_is_some(connection: Connection) -> None:
    async def main() -> None:
        async with AsyncGateway(connection, when_away="block", max_buffer_bytes=500) as gateway:

            async def agent(number: int) -> None:
                for _ in range(50):
                    await gateway.started(f"run-{number}", "read")

            await asyncio.wait_for(asyncio.gather(*(agent(number) for number in range(10))), 90)
            assert await gateway.flush(90)
            assert gateway.stats.acknowledged == 500

    asyncio.run(main())

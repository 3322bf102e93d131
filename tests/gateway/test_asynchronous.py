from __future__ import annotations

import asyncio
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

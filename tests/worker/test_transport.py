"""What a poll gives while partitions are assigned anew: nothing that was not sought, and nothing that nobody gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP

from loopwarden.worker.app import WorkerApp
from loopwarden.worker.settings import Settings
from loopwarden.worker.transport import Consumer, ConsumerThread

EVENTS = TP("agent-events", 3)
CHANGELOG = TP("loopwarden-runs-changelog", 3)


class Polls(ConsumerThread):
    """Notes what is asked for, instead of asking a broker."""

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer, loop=consumer.loop, thread_loop=consumer.loop)
        self.asked: list[set[TP]] = []

    async def getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        assert active_partitions is not None
        self.asked.append(active_partitions)
        return {}

    def assignment(self) -> Any:
        return {EVENTS, CHANGELOG}

    async def seek_to_committed(self) -> Any:
        # Faust resumes the partitions before it seeks, and its fetcher polls meanwhile.
        await self.consumer._getmany({EVENTS, CHANGELOG}, 1.0)
        return {EVENTS: 7, CHANGELOG: 0}


@asynccontextmanager
async def consumer(folder: Path) -> AsyncIterator[tuple[Consumer, Polls]]:
    """A consumer that is not connected."""
    made = WorkerApp(Settings(data_dir=folder))._new_consumer()
    assert isinstance(made, Consumer)
    polls = made._thread = Polls(made)
    yield made, polls


def test_events_are_polled_only_from_where_recovery_sought(tmp_path: Path) -> None:
    async def story() -> None:
        async with consumer(tmp_path) as (made, polls):
            await made.perform_seek()
            await made._getmany({EVENTS, CHANGELOG}, 1.0)
            made.stop_flow()
            await made._getmany({EVENTS}, 1.0)
            await made._getmany({EVENTS, CHANGELOG}, 1.0)
            assert polls.asked == [{CHANGELOG}, {EVENTS, CHANGELOG}, {CHANGELOG}]

    asyncio.run(story())


def test_what_a_poll_finds_that_began_before_the_assignment_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sought: list[tuple[TP, int]] = []
    aiokafka = SimpleNamespace(
        _subscription=SimpleNamespace(is_assigned=lambda tp: tp == EVENTS),
        _fetcher=SimpleNamespace(seek_to=lambda tp, offset: sought.append((tp, offset))),
    )

    async def story() -> None:
        async with consumer(tmp_path) as (made, polls):

            async def assigned_anew_meanwhile(*_: Any) -> Any:
                made.stop_flow()
                return {EVENTS: [SimpleNamespace(offset=7)], TP("agent-events", 4): [SimpleNamespace(offset=9)]}

            monkeypatch.setattr(AIOKafkaConsumerThread, "_fetch_records", assigned_anew_meanwhile)
            assert await polls._fetch_records(aiokafka, {EVENTS}) == {}
            assert sought == [(EVENTS, 7)]

    asyncio.run(story())

"""A partition is a queue: how long one run's verdicts wait for another run's events."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loopwarden.judge import judge
from loopwarden.worker import lane as lane_module
from loopwarden.worker.transport import Batch
from loopwarden_schemas.events import MAX_EVENTS_PER_RECORD

from .parts import Parts


def test_a_verdict_waits_for_two_thousand_later_events_of_the_partition_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged = 0

    def counting(*arguments: Any) -> Any:
        nonlocal judged
        judged += 1
        return judge(*arguments)

    monkeypatch.setattr(lane_module, "judge", counting)

    async def story() -> None:
        parts = Parts()
        sent_after: dict[str, int] = {}
        send = parts.broker.send_batch

        async def send_batch(batch: Any, topic: str, *, partition: int) -> Any:
            for key, _ in batch.records:
                sent_after.setdefault((key or b"").decode(), judged)
            return await send(batch, topic, partition=partition)

        monkeypatch.setattr(parts.broker, "send_batch", send_batch)
        quiet = [parts.record(parts.lone_call("quiet", number), b"quiet", 1) for number in range(4)]
        hot = [
            parts.record([parts.lone_call("hot", 100 * number + each) for each in range(100)], b"hot", 1)
            for number in range(60)
        ]
        await parts.lane.take(Batch(1, None, quiet + hot))
        assert judged == 6_004
        assert sent_after["quiet"] <= 2_000 + MAX_EVENTS_PER_RECORD

    asyncio.run(story())

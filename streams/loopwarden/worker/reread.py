"""A stretch of `agent-events` read once more, beside the consumer group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from loopwarden.worker.errors import LogUnreadable

_LONGEST_S: Final = 60.0


async def read_again(
    new_reader: Callable[[], AIOKafkaConsumer], topic: str, partition: int, key: bytes, start: int, end: int
) -> list[Any]:
    """Return the records with a key from offset `start` to below `end`, as aiokafka has them.

    Args:
        new_reader: Makes a consumer without a group; it is started and stopped here.
        topic: Which one.
        partition: Of the topic.
        key: The run's id.
        start: An offset.
        end: Another one, up to which the topic reaches.

    Raises:
        LogUnreadable: they did not come within a minute.
    """
    consumer = new_reader()
    at = TopicPartition(topic, partition)
    found: list[Any] = []

    async def read() -> None:
        await consumer.start()
        consumer.assign([at])
        consumer.seek(at, start)
        while await consumer.position(at) < end:
            polled = (await consumer.getmany(at, timeout_ms=1000)).get(at, [])
            found.extend(record for record in polled if record.key == key and record.offset < end)

    try:
        await asyncio.wait_for(read(), _LONGEST_S)
    except (KafkaError, asyncio.TimeoutError) as error:
        raise LogUnreadable(
            f"{topic} partition {partition}: offsets {start} to {end - 1} must be readable once more, to put a run back"
            f" to where it was before the judge failed on an event of it: {error!r}"
        ) from error
    finally:
        await consumer.stop()
    return found

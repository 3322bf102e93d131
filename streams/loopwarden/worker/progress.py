"""`loop-progress`: how far each partition is judged, so that a runner can wait for certainty. (design.md, "Verdicts".)

Written after each batch's verdicts and dead letters are acknowledged; of several that wait, only the newest.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgpack

from loopwarden.worker.outbox import Outbox
from loopwarden_schemas.codec import MESSAGEPACK_HEADER

_HEADERS = [MESSAGEPACK_HEADER]


def encode_progress(judged: int, verdicts: int) -> bytes:
    """Return the record's value: every event below `judged` is judged, its verdicts lie below `verdicts`."""
    encoded: bytes = msgpack.packb({"judged": judged, "verdicts": verdicts})
    return encoded


class Progress:
    """Writes the progress of all partitions of this worker, each to its own partition of the topic."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._moved: dict[int, Outbox] = {}
        self._event = asyncio.Event()

    def moved(self, partition: int, outbox: Outbox) -> None:
        """Note that a partition's outbox has something new to tell."""
        self._moved[partition] = outbox
        self._event.set()

    def forget(self) -> None:
        """Drop what was not written yet: the partitions are not this worker's any more."""
        self._moved.clear()

    async def write(self, producer: Any) -> None:
        """Wait for news and write them; return when they are acknowledged.

        Raises:
            KafkaError: the broker did not take a record.
        """
        await self._event.wait()
        self._event.clear()
        moved, self._moved = self._moved, {}
        futures = []
        for partition, outbox in moved.items():
            value = encode_progress(outbox.judged, outbox.verdicts)
            futures.append(
                await producer.send(self._topic, value, key=b"%d" % partition, partition=partition, headers=_HEADERS)
            )
        await asyncio.gather(*futures)

"""Records on their way out, built into whole batches: a future for a batch, not for a record.

`send` costs aiokafka 7.7 us a record, a record in a batch 1.6 us (engine-facts, section 1).
"""

from __future__ import annotations

import asyncio
from typing import Any

Header = tuple[str, bytes]


class Records:
    """Records for one partition of one topic, in order."""

    def __init__(self, producer: Any, topic: str, partition: int) -> None:
        """`producer` is an `AIOKafkaProducer`."""
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._full: list[Any] = []
        self._batch: Any = None

    def append(self, key: bytes | None, value: bytes | None, headers: list[Header]) -> None:
        """Add a record. A batch holds at least one, however large."""
        if self._batch is not None and self._batch.append(timestamp=None, key=key, value=value, headers=headers):
            return
        if self._batch is not None:
            self._full.append(self._batch)
        self._batch = self._producer.create_batch()
        if self._batch.append(timestamp=None, key=key, value=value, headers=headers) is None:
            raise ValueError(f"{self._topic}: a record with a key of {len(key or b'')} bytes does not fit any batch")

    def __bool__(self) -> bool:
        return self._batch is not None

    async def send(self) -> list[tuple[int, asyncio.Future[Any]]]:
        """Give everything to the producer; return, for each batch, how many records it has and its acknowledgement.

        Returns when the last batch waits to be sent: each waits until the one before was taken.
        """
        batches = [*self._full, self._batch] if self._batch is not None else []
        self._full, self._batch = [], None
        sent = []
        for batch in batches:
            # Closed, so that nothing sent otherwise to the same partition is put into it.
            batch.close()
            future = await self._producer.send_batch(batch, self._topic, partition=self._partition)
            sent.append((batch.record_count(), future))
        return sent

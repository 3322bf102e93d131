"""Events to `agent-events`: keyed by their run, on the run's partition, each acknowledged or reported."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

from loopwarden.client.admin import admin_client
from loopwarden.client.connect import connected
from loopwarden.client.errors import NotPublished
from loopwarden.client.rights import described
from loopwarden.client.settings import Connection
from loopwarden_schemas.codec import MESSAGEPACK_HEADER
from loopwarden_schemas.topics import MAX_RECORD_BYTES, partition_for

# Longer than a cluster takes to choose new leaders, short enough for somebody who waits.
_REQUEST_MS: Final = 10_000
_DELIVERY_MS: Final = 15_000

_AFTER_FAILURE_S: Final = 2.0
"""Once something failed, the answers to what is on its way are waited for no longer."""

_MAX_WAITING_BYTES: Final = 32 * 1024 * 1024
"""What may be sent and not acknowledged; kafka-python itself would take any amount into memory."""

PRODUCER_SETTINGS: Final[dict[str, Any]] = {
    "acks": "all",
    "enable_idempotence": True,
    "allow_auto_create_topics": False,
    "request_timeout_ms": _REQUEST_MS,
    "delivery_timeout_ms": _DELIVERY_MS,
    "max_block_ms": _REQUEST_MS,
    # The largest event, its key and its headers; what is larger the broker refuses.
    "max_request_size": 2 * MAX_RECORD_BYTES,
    "batch_size": 128 * 1024,
    "linger_ms": 2,
}

HEADERS: Final = [MESSAGEPACK_HEADER]


@contextmanager
def event_producer(connection: Connection) -> Iterator[EventProducer]:
    """A producer of events. When the block ends well, everything published is acknowledged.

    Raises:
        BrokerUnavailable: no broker there, or it stopped answering.
        TopicMissing: `agent-events` is not there.
        NotAuthorized: this client must not write to it.
        NotPublished: an event was not acknowledged.
    """
    topic = connection.topics().events.name
    with admin_client(connection) as client:
        partitions = len(described(client, connection, topic, "Write")["partitions"])
    with connected(KafkaProducer, connection, **PRODUCER_SETTINGS) as producer:
        events = EventProducer(producer, connection, topic, partitions)
        yield events
        events.flush()


class EventProducer:
    """Publishes events. Made by `event_producer`.

    Attributes:
        partitions: How many `agent-events` has.
        acknowledged: Events the broker has.
        ends: For each partition, the offset after the last event acknowledged.
        appended_at: For each partition, when the broker appended that event (ms).
    """

    def __init__(self, producer: Any, connection: Connection, topic: str, partitions: int) -> None:
        self.partitions = partitions
        self.acknowledged = 0
        self.ends: dict[int, int] = {}
        self.appended_at: dict[int, int] = {}
        self._producer = producer
        self._connection = connection
        self._topic = topic
        self._partition = lru_cache(maxsize=10_000)(lambda run_id: partition_for(run_id, partitions))
        self._failures: list[tuple[str, BaseException]] = []
        self._sent = 0
        self._waiting_bytes = 0
        self._moved = threading.Condition()

    def publish(self, run_id: str, record: bytes, name: str) -> None:
        """Send one record; it is on its way when this returns, and acknowledged after `flush`.

        Args:
            run_id: Its run: the record's key.
            record: One event, or a list of at most 100 of the run, as MessagePack.
            name: What to call it where it is not acknowledged, such as `line 12`.

        Raises:
            NotPublished: an earlier one was not acknowledged. Nothing is sent any more then: the events of a run
                behind a gap would be counted as if nothing had been between.
        """
        with self._moved:
            self._moved.wait_for(lambda: self._failures or self._waiting_bytes < _MAX_WAITING_BYTES)
            failed = bool(self._failures)
            if not failed:
                self._waiting_bytes += len(record)
                self._sent += 1
        if failed:
            self.flush()
        try:
            sent = self._producer.send(
                self._topic, record, key=run_id.encode(), partition=self._partition(run_id), headers=HEADERS
            )
        except KafkaError as error:
            self._failed(len(record), name, error)
            self.flush()
        else:
            sent.add_callback(self._succeeded, len(record))
            sent.add_errback(self._failed, len(record), name)

    def flush(self) -> None:
        """Wait until everything published is acknowledged.

        Raises:
            NotPublished: something was not.
        """
        # kafka-python's own flush may return before the last callbacks were called, and waits on after a failure.
        with self._moved:
            limit = 2 * _DELIVERY_MS / 1000
            if not self._moved.wait_for(lambda: self._waiting_bytes == 0 or self._failures, limit):
                self._failures.append(("unknown", KafkaTimeoutError(f"no answer in {limit:.0f} s")))
            if self._failures:
                self._moved.wait_for(lambda: self._waiting_bytes == 0, _AFTER_FAILURE_S)
        if self._failures:
            name, error = self._failures[0]
            raise NotPublished(
                f"{self._connection.bootstrap_servers}: of {self._sent:,} records that were sent, {self.acknowledged:,}"
                f" were acknowledged; the first that was not is {name}: {error}"
            )

    def _succeeded(self, size: int, metadata: Any) -> None:
        with self._moved:
            self.acknowledged += 1
            if metadata.offset >= self.ends.get(metadata.partition, 0):
                self.ends[metadata.partition] = metadata.offset + 1
                self.appended_at[metadata.partition] = metadata.timestamp
            self._done(size)

    def _failed(self, size: int, name: str, error: BaseException) -> None:
        with self._moved:
            self._failures.append((name, error))
            self._done(size)

    def _done(self, size: int) -> None:
        self._waiting_bytes -= size
        self._moved.notify_all()

"""The load: a thread that publishes the fleet's deliveries at a rate, whatever happens to brokers and workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from kafka import KafkaProducer
from kafka.errors import KafkaError

from loopwarden.client.producer import PRODUCER_SETTINGS
from loopwarden_schemas.topics import Topic, partition_for

from .workload import Delivery

_MOST_UNACKNOWLEDGED: Final = 20_000
_DELIVERY_MS: Final = 120_000
_SLICE_S: Final = 0.05


class Load:
    """Publishes while it runs. What the brokers do not take is lost: the log alone says what must be judged.

    Attributes:
        records: How many were acknowledged.
        lost: How many were not.
    """

    def __init__(self, servers: str, topic: Topic, deliveries: Iterator[Delivery], rate: float) -> None:
        """`rate` is in records a second."""
        self.records = 0
        self.lost = 0
        self._topic = topic
        self._deliveries = deliveries
        self._rate = rate
        self._sent = 0
        self._moved = threading.Condition()
        self._ended = threading.Event()
        patience = {"delivery_timeout_ms": _DELIVERY_MS, "max_block_ms": _DELIVERY_MS, "reconnect_backoff_max_ms": 500}
        self._producer = KafkaProducer(bootstrap_servers=servers.split(","), **{**PRODUCER_SETTINGS, **patience})
        self._thread = threading.Thread(target=self._publish, name="load", daemon=True)
        self._thread.start()

    def wait_for(self, records: int) -> None:
        """Return when so many were acknowledged."""
        with self._moved:
            self._moved.wait_for(lambda: self.records >= records, _DELIVERY_MS / 1000)

    def stop(self) -> None:
        """Publish nothing more, and return when everything published is acknowledged or lost."""
        self._ended.set()
        self._thread.join()
        with self._moved:
            self._moved.wait_for(lambda: self.records + self.lost == self._sent, _DELIVERY_MS / 1000)

    def close(self) -> None:
        """Stop, and let go of the connection."""
        self._ended.set()
        self._thread.join()
        self._producer.close(timeout=1)

    def _publish(self) -> None:
        due = 0.0
        last = time.monotonic()
        while not self._ended.wait(_SLICE_S):
            now = time.monotonic()
            # What could not be published while a broker was away is not made up for at once.
            due = min(due + (now - last) * self._rate, self._rate)
            last = now
            while due >= 1 and not self._ended.is_set():
                self._send(next(self._deliveries))
                due -= 1

    def _send(self, delivery: Delivery) -> None:
        with self._moved:
            self._moved.wait_for(
                lambda: self._sent - self.records - self.lost < _MOST_UNACKNOWLEDGED or self._ended.is_set()
            )
            self._sent += 1
        partition = partition_for(delivery.key, self._topic.partitions)
        try:
            future = self._producer.send(self._topic.name, delivery.value, key=delivery.key, partition=partition)
        except KafkaError as error:
            self._done(error)
        else:
            future.add_callback(lambda _: self._done(None))
            future.add_errback(self._done)

    def _done(self, error: Any) -> None:
        with self._moved:
            if error is None:
                self.records += 1
            else:
                self.lost += 1
            self._moved.notify_all()

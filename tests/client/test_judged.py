from __future__ import annotations

import time
from typing import Any

import msgpack
import pytest
from kafka import KafkaProducer

from loopwarden.client import Connection, event_producer, wait_until_judged
from loopwarden_schemas.codec import encode_event


@pytest.fixture
def tell(connection: Connection) -> Any:
    """Write a record to a partition of `loop-progress`, as a worker does."""

    def tell(partition: int, value: bytes) -> None:
        producer = KafkaProducer(bootstrap_servers=connection.bootstrap_servers)
        topic = connection.topics().progress.name
        producer.send(topic, value, key=b"%d" % partition, partition=partition).get(30)
        producer.close()

    return tell


def progress(judged: int, verdicts: int) -> bytes:
    packed: bytes = msgpack.packb({"judged": judged, "verdicts": verdicts})
    return packed


def test_an_event_is_judged_once_the_progress_has_passed_it(connection: Connection, tell: Any) -> None:
    tell(1, progress(5, 3))
    tell(1, progress(6, 4))
    tell(0, progress(100, 100))
    assert wait_until_judged(connection, 1, 5, 30) == 4
    assert wait_until_judged(connection, 1, 6, 0.2) is None


def test_a_partition_without_progress_is_waited_for_and_no_longer_than_asked(connection: Connection) -> None:
    started = time.monotonic()
    assert wait_until_judged(connection, 0, 0, 0.2) is None
    assert time.monotonic() - started < 10


def test_what_is_no_progress_says_nothing(connection: Connection, tell: Any) -> None:
    tell(0, b"\xc1")
    assert wait_until_judged(connection, 0, 0, 0.2) is None


def test_a_producer_knows_where_and_when_an_event_was_appended(connection: Connection) -> None:
    before = time.time_ns() // 1_000_000
    with event_producer(connection) as producer:
        for number in range(3):
            event = {"type": "run.finished", "event_id": f"{number}", "run_id": "r", "ts": 1}
            producer.publish("r", encode_event(event), "an event")
        producer.flush()
    [(partition, end)] = producer.ends.items()
    assert end == 3
    # The broker runs on this machine: its clock is the same.
    assert before <= producer.appended_at[partition] <= time.time_ns() // 1_000_000

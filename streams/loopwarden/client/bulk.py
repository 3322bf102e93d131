"""Much of a topic at once, at a quarter of what kafka-python takes for a record: with aiokafka, where it is installed.

aiokafka comes with the worker (`loopwarden[worker]`) and parses records in C. Without it the follower reads the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final, Protocol

from loopwarden.client.connect import first_to_answer
from loopwarden.client.errors import BrokerUnavailable, Missing, NotAuthorized
from loopwarden.client.follower import following
from loopwarden.client.settings import Connection

_FETCH_BYTES: Final = 4 * 1024 * 1024
_POLL_MS: Final = 500
_IDLE_S: Final = 3.0
_REQUEST_MS: Final = 20_000


class RecordRead(Protocol):
    """What every client's record has."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Any: ...


def read_range(connection: Connection, topic: str, ranges: Mapping[int, tuple[int, int]]) -> Iterator[list[RecordRead]]:
    """Read from an offset to below another in each partition, without a group; records come as they are fetched.

    Raises:
        BrokerUnavailable: no broker there, or it stopped answering.
        TopicMissing: the topic is not there.
        NotAuthorized: this client must not read it.
    """
    wanted = {partition: (start, end) for partition, (start, end) in ranges.items() if start < end}
    if not wanted:
        return
    if find_spec("aiokafka") is None:
        with following(connection, topic) as follower:
            for records in follower.read(wanted):
                yield list[RecordRead](records)
        return
    # A loop of its own, that runs only while records are waited for.
    loop = asyncio.new_event_loop()
    try:
        consumer = loop.run_until_complete(_consumer(connection, topic, wanted))
        try:
            yield from _read(loop, consumer, connection, topic, wanted)
        finally:
            loop.run_until_complete(consumer.stop())
    finally:
        loop.close()


async def _consumer(connection: Connection, topic: str, wanted: Mapping[int, tuple[int, int]]) -> Any:
    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.errors import KafkaError

    consumer = AIOKafkaConsumer(
        bootstrap_servers=connection.bootstrap_servers,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=_FETCH_BYTES,
        request_timeout_ms=_REQUEST_MS,
        # The broker checked them when it took the records.
        check_crcs=False,
        **connection.security.for_aiokafka(),
    )
    first_to_answer(connection.bootstrap_servers)
    try:
        await consumer.start()
    except KafkaError as error:
        await consumer.stop()
        raise BrokerUnavailable(f"{connection.bootstrap_servers}: {error}") from error
    consumer.assign([TopicPartition(topic, partition) for partition in wanted])
    for partition, (start, _) in wanted.items():
        consumer.seek(TopicPartition(topic, partition), start)
    return consumer


def _read(
    loop: asyncio.AbstractEventLoop,
    consumer: Any,
    connection: Connection,
    topic: str,
    wanted: Mapping[int, tuple[int, int]],
) -> Iterator[list[RecordRead]]:
    from aiokafka import TopicPartition
    from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

    left = {TopicPartition(topic, partition): end for partition, (_, end) in wanted.items()}
    heard_at = time.monotonic()
    while left:
        try:
            polled = loop.run_until_complete(consumer.getmany(*left, timeout_ms=_POLL_MS))
            positions = {each: loop.run_until_complete(consumer.position(each)) for each in left}
        except TopicAuthorizationFailedError as error:
            missing = Missing("topic", topic, "Read")
            raise NotAuthorized(connection.security.principal, connection.bootstrap_servers, missing) from error
        except KafkaError as error:
            raise BrokerUnavailable(f"{connection.bootstrap_servers}: the broker stopped answering: {error}") from error
        for each, records in polled.items():
            heard_at = time.monotonic()
            end = left[each]
            within = records if records[-1].offset < end else [record for record in records if record.offset < end]
            if within:
                yield within
        for each in [each for each, position in positions.items() if position >= left[each]]:
            del left[each]
        if time.monotonic() - heard_at > _IDLE_S:
            first_to_answer(connection.bootstrap_servers, _IDLE_S)
            heard_at = time.monotonic()

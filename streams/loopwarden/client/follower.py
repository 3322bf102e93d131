"""Reading a topic without a consumer group: from its beginning, from now on, or a range of offsets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kafka import KafkaConsumer, TopicPartition

from loopwarden.client.connect import connected, first_to_answer
from loopwarden.client.errors import BrokerUnavailable
from loopwarden.client.rights import why_not
from loopwarden.client.settings import Connection
from loopwarden_schemas.codec import content_type_of

Start: TypeAlias = Literal["beginning", "now"]

_IDLE_S: Final = 3.0
"""kafka-python waits for a broker that is gone without a word: after so long without a record it is looked after."""

_REQUEST_MS: Final = 8_000
_POLL_S: Final = 0.5
_MAX_POLL_RECORDS: Final = 2_000


class Record(NamedTuple):
    """A record as it was read. `timestamp` is in milliseconds: the topic says whose clock it is of."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]

    @property
    def content_type(self) -> str | None:
        """The header `content-type`; None where there is none."""
        return content_type_of(self.headers)


@contextmanager
def following(connection: Connection, topic: str) -> Iterator[Follower]:
    """A reader of a topic, closed at the end.

    Raises:
        BrokerUnavailable: no broker there, or it stopped answering.
        TopicMissing: the topic is not there.
        NotAuthorized: this client must not read it.
    """
    settings: dict[str, Any] = {
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "allow_auto_create_topics": False,
        "request_timeout_ms": _REQUEST_MS,
        "max_poll_records": _MAX_POLL_RECORDS,
        # The broker checked them when it took the records; kafka-python does it in pure Python, at 4 MB/s.
        "check_crcs": False,
    }
    with connected(KafkaConsumer, connection, **settings) as consumer:
        partitions = consumer.partitions_for_topic(topic)
        if not partitions:
            raise why_not(connection, topic, "Read")
        yield Follower(consumer, connection, topic, tuple(sorted(partitions)))


class Follower:
    """Reads some partitions of a topic. Made by `following`.

    Attributes:
        partitions: All partitions of the topic.
    """

    def __init__(self, consumer: Any, connection: Connection, topic: str, partitions: tuple[int, ...]) -> None:
        self.partitions = partitions
        self._consumer = consumer
        self._servers = connection.bootstrap_servers
        self._topic = topic
        self._heard_at = time.monotonic()
        self._left: dict[int, int] = {}

    def beginnings(self) -> dict[int, int]:
        """The oldest offset that each partition still has."""
        return self._offsets(self._consumer.beginning_offsets)

    def ends(self) -> dict[int, int]:
        """The offset that the next record of each partition will get."""
        return self._offsets(self._consumer.end_offsets)

    def at_time(self, milliseconds: int) -> dict[int, int]:
        """The first offset of each partition whose record is not older; where there is none, its end."""
        asked = {self._at(partition): milliseconds for partition in self.partitions}
        # Asked for first: a record that is written in between must not be passed over.
        ends = self.ends()
        found = self._consumer.offsets_for_times(asked, timeout_ms=_REQUEST_MS)
        return {at.partition: ends[at.partition] if place is None else place.offset for at, place in found.items()}

    def start(self, at: Start | Mapping[int, int], partitions: tuple[int, ...] | None = None) -> dict[int, int]:
        """Begin to read these partitions (None: all, or those that `at` names); return where.

        Args:
            at: The beginning, the end as it is now, or offsets by partition.
            partitions: Which ones.
        """
        offsets = self.beginnings() if at == "beginning" else self.ends() if at == "now" else dict(at)
        wanted = {partition: offsets[partition] for partition in partitions or offsets}
        self._consumer.assign([self._at(partition) for partition in wanted])
        for partition, offset in wanted.items():
            self._consumer.resume(self._at(partition))  # an earlier `read` may have dropped it
            self._consumer.seek(self._at(partition), offset)
        self._heard_at = time.monotonic()
        return wanted

    def poll(self, seconds: float = _POLL_S) -> list[Record]:
        """Return the next records, those of a partition in their order; none after so many seconds without any.

        Raises:
            BrokerUnavailable: nobody answers there any more.
        """
        polled = self._consumer.poll(timeout_ms=max(0.0, seconds) * 1000)
        records = [
            Record(each.partition, each.offset, each.timestamp, each.key, each.value, each.headers)
            for of_partition in polled.values()
            for each in of_partition
        ]
        now = time.monotonic()
        if records:
            self._heard_at = now
        elif now - self._heard_at > _IDLE_S:
            first_to_answer(self._servers, _IDLE_S)
            self._heard_at = now
        return records

    def position(self, partition: int) -> int:
        """The offset that is read next."""
        offset = self._consumer.position(self._at(partition), timeout_ms=_REQUEST_MS)
        if offset is None:
            raise BrokerUnavailable(f"{self._servers}: the broker does not tell where {self._topic} begins")
        return int(offset)

    def read(self, ranges: Mapping[int, tuple[int, int]]) -> Iterator[list[Record]]:
        """Read from an offset to below another in each partition, and stop there. Records come as they are polled.

        Between two polls the reader may `drop` a partition, of which nothing more is wanted.
        """
        self._left = {partition: end for partition, (start, end) in ranges.items() if start < end}
        if self._left:
            self.start({partition: ranges[partition][0] for partition in self._left})
        while self._left:
            records = [each for each in self.poll() if each.offset < self._left.get(each.partition, 0)]
            if records:
                yield records
            for partition in [each for each, end in self._left.items() if self.position(each) >= end]:
                self.drop(partition)

    def drop(self, partition: int) -> None:
        """Read nothing more of a partition in this `read`."""
        if self._left.pop(partition, None) is not None:
            self._consumer.pause(self._at(partition))

    def _offsets(self, ask: Any) -> dict[int, int]:
        found = ask([self._at(partition) for partition in self.partitions], timeout_ms=_REQUEST_MS)
        return {at.partition: offset for at, offset in found.items()}

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)

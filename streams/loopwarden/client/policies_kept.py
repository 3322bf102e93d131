"""Which policies were applied in a partition long ago, by what the worker keeps of them in its changelog.

A `policy.applied` leaves the log with its retention, while the policy stays in force. The worker keeps the policies of
a partition that an event can still pin, and where they were applied. (design.md, "Policy".)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgpack

from loopwarden.client.bulk import read_range
from loopwarden.client.errors import TopicMissing
from loopwarden.client.follower import following
from loopwarden.client.settings import Connection

_KEY: Final = b""
"""Of the record of a partition's policies: no run's."""


def applied_before(
    connection: Connection,
    wanted: Mapping[int, tuple[int, int]],
    progress: Callable[[int, int], None],
) -> set[int]:
    """Return the partitions in which a policy is known to have been applied below an offset.

    Args:
        connection: Where.
        wanted: By partition, the policy's number and the offset.
        progress: Told while the changelog is read. It is left as soon as all is known.

    Raises:
        BrokerUnavailable: no broker there.
    """
    topic = connection.topics().changelog.name
    try:
        with following(connection, topic) as follower:
            beginnings, ends = follower.beginnings(), follower.ends()
    except TopicMissing:
        return set()
    found: set[int] = set()
    partitions = [partition for partition in wanted if partition in ends]
    total, done = sum(ends[each] - beginnings[each] for each in partitions), 0
    for partition in partitions:
        number, offset = wanted[partition]
        read = 0
        for records in read_range(connection, topic, {partition: (beginnings[partition], ends[partition])}):
            read += len(records)
            progress(done + read, total)
            if any((number, True) in _applied(record.value, offset) for record in records if record.key == _KEY):
                found.add(partition)
                break
        done += ends[partition] - beginnings[partition]
    return found


def _applied(value: bytes | None, offset: int) -> Iterable[tuple[int, bool]]:
    """The numbers of a record, and whether each was applied below the offset."""
    try:
        record: Any = msgpack.unpackb(value or b"")
        return [(number, at < offset) for at, _, number in record[3]]
    except (ValueError, TypeError, IndexError, msgpack.UnpackException):
        # Of another version, or not the worker's: it says nothing.
        return []

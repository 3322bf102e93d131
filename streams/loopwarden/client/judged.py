"""How far a partition is judged, by what the worker says in `loop-progress`. (design.md, "Verdicts".)"""

from __future__ import annotations

import time
from typing import Final

import msgspec

from loopwarden.client.follower import Record, following
from loopwarden.client.settings import Connection

_POLL_S: Final = 0.1

_LOOK_BACK: Final = 50
"""The newest record may be one that a worker wrote which had lost the partition already: the highest counts."""


def wait_until_judged(connection: Connection, partition: int, offset: int, seconds: float) -> int | None:
    """Wait until the event at an offset of `agent-events` is judged and its verdicts are acknowledged.

    Args:
        connection: Where.
        partition: Of `agent-events`.
        offset: Of the event.
        seconds: How long at most.

    Returns:
        The offset of the same partition of `loop-verdicts` below which its verdicts lie; None: it is not judged in
        time.

    Raises:
        BrokerUnavailable: no broker there, or it stopped answering.
        TopicMissing: `loop-progress` is not there.
    """
    deadline = time.monotonic() + seconds
    with following(connection, connection.topics().progress.name) as follower:
        # The newest record says it all; compaction keeps it.
        follower.start({partition: max(follower.beginnings()[partition], follower.ends()[partition] - 1)})
        while True:
            for record in follower.poll(max(0.0, min(_POLL_S, deadline - time.monotonic()))):
                judged, verdicts = _progress(record)
                if judged > offset:
                    return verdicts
            if time.monotonic() >= deadline:
                return None


def judged_offsets(connection: Connection) -> dict[int, int]:
    """Return the offset of each partition of `agent-events` below which all is judged; 0 where nobody said.

    Raises:
        BrokerUnavailable: no broker there, or it stopped answering.
        TopicMissing: `loop-progress` is not there.
    """
    with following(connection, connection.topics().progress.name) as follower:
        beginnings, ends = follower.beginnings(), follower.ends()
        found = dict.fromkeys(follower.partitions, 0)
        ranges = {each: (max(beginnings[each], ends[each] - _LOOK_BACK), ends[each]) for each in follower.partitions}
        for records in follower.read(ranges):
            for record in records:
                found[record.partition] = max(found[record.partition], _progress(record)[0])
        return found


class _Progress(msgspec.Struct):
    judged: int
    verdicts: int


def _progress(record: Record) -> tuple[int, int]:
    try:
        progress = msgspec.msgpack.decode(record.value or b"", type=_Progress)
    except msgspec.MsgspecError:
        # A record of somebody else's, or without a value, says nothing.
        return 0, 0
    return progress.judged, progress.verdicts

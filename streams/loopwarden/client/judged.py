"""How far a partition is judged, by what the worker says in `loop-progress`. (design.md, "Verdicts".)"""

from __future__ import annotations

import time
from typing import Final

import msgspec

from loopwarden.client.follower import Record, following
from loopwarden.client.settings import Connection

_POLL_S: Final = 0.1


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

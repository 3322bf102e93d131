from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from loopwarden_schemas.codec import decode_record
from loopwarden_schemas.structs import Rejected

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker
    from loopwarden.client import Connection
    from loopwarden_schemas.topics import Topics


@pytest.fixture
def connection(broker: LocalBroker, topics: Topics) -> Connection:
    """The declared topics on the real broker, under the test's own prefix."""
    from loopwarden.client import Connection

    return Connection(broker.bootstrap_servers, topics.prefix)


def logged(connection: Connection) -> list[Any]:
    """All events in the log as they are now, partition by partition; what is unreadable fails the test."""
    from loopwarden.client import following

    with following(connection, connection.topics().events.name) as follower:
        ranges = {partition: (0, end) for partition, end in follower.ends().items()}
        records = [record for polled in follower.read(ranges) for record in polled]
    events = [
        event
        for record in sorted(records, key=lambda each: (each.partition, each.offset))
        for event in decode_record(record.value, record.timestamp, record.content_type)
    ]
    assert not any(isinstance(event, Rejected) for event in events), events
    return events


@pytest.fixture(name="logged")
def _logged() -> Callable[[Connection], list[Any]]:
    return logged

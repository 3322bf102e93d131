"""A part of the log read into what judges it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from loopwarden.cli.log_parts import PartToRead, cause_offset
from loopwarden.client import Connection, read_range
from loopwarden_schemas.codec import content_type_of, decode_verdict
from loopwarden_schemas.structs import Verdict


class TakesRecords(Protocol):
    """Takes the records of a partition of `agent-events` in their order."""

    def take(
        self, offset: int, append_time: int, key: bytes | None, value: bytes | None, content_type: str | None
    ) -> None:
        """Take the next record."""


class TakesVerdicts(Protocol):
    """Takes verdicts that were published."""

    def take_recorded(self, verdict: Verdict, cause_offset: int | None, key: bytes | None = None) -> None:
        """Take a verdict, the offset of its cause and the key of its record."""


def read_events(
    connection: Connection, to_read: PartToRead, taking: TakesRecords, advance: Callable[[int], None]
) -> None:
    """Read the events of a part; `advance` is told the records of each poll.

    Raises:
        BrokerUnavailable: the broker is not there, or stopped answering.
    """
    take = taking.take
    for records in read_range(connection, connection.topics().events.name, {to_read.part.partition: to_read.events}):
        for record in records:
            take(record.offset, record.timestamp, record.key, record.value, content_type_of(record.headers))
        advance(len(records))


def read_verdicts(
    connection: Connection, to_read: PartToRead, taking: TakesVerdicts, advance: Callable[[int], None]
) -> int:
    """Read the verdicts of a part; return how many records are no verdicts.

    Raises:
        BrokerUnavailable: the broker is not there, or stopped answering.
    """
    unreadable = 0
    for records in read_range(
        connection, connection.topics().verdicts.name, {to_read.part.partition: to_read.verdicts}
    ):
        for record in records:
            try:
                verdict = decode_verdict(record.value or b"", content_type_of(record.headers))
            except ValueError:
                unreadable += 1
                continue
            taking.take_recorded(verdict, cause_offset(record), record.key)
        advance(len(records))
    return unreadable

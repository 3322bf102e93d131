"""Which policy is in force in each partition of `agent-events`, read from the log itself. (design.md, "Policy".)

In force is the highest number that was applied in the partition: a lower one after it is refused. The archive says from
which offset on a number can occur, so the log is read from there: a few records, unless the number is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from loopwarden.client.follower import Follower, Record, following
from loopwarden.client.policy_archive import ArchivedPolicy
from loopwarden.client.settings import Connection
from loopwarden_schemas.codec import decode_record
from loopwarden_schemas.structs import PolicyApplied

_MARK: Final = b"policy.applied"

Progress = Callable[[int, int], None]
"""Called with the records read, and those to be read at most."""


class InForce(NamedTuple):
    """What is in force in one partition.

    Attributes:
        partition: Of `agent-events`.
        number: The policy's; None: the log holds none.
        offset: Where it was applied.
        append_time: When, in milliseconds.
        certain: False: the log does not reach back far enough (its oldest records are gone), so that a policy newer
            than `number` may be in force.
    """

    partition: int
    number: int | None = None
    offset: int | None = None
    append_time: int | None = None
    certain: bool = True


def silent(done: int, total: int) -> None:
    """Shows nothing."""


def policies_in_force(
    connection: Connection,
    archive: list[ArchivedPolicy],
    progress: Progress = silent,
    before: Mapping[int, int] | None = None,
) -> list[InForce]:
    """Return what is in force in each partition, by the log as it is now.

    Args:
        connection: Where.
        archive: All policies.
        progress: Told while the log is read.
        before: What was in force before these offsets is asked for; None: now.

    Raises:
        BrokerUnavailable: no broker there.
        TopicMissing: `agent-events` is not there.
    """
    with following(connection, connection.topics().events.name) as follower:
        search = _Search(follower, archive, progress, before or {})
        for policy in reversed(archive):
            search.look_for(policy)
        return [search.found[partition] for partition in follower.partitions]


class _Search:
    """The newest policy first, in the part of the log where it can be and that was not read yet."""

    def __init__(
        self, follower: Follower, archive: list[ArchivedPolicy], progress: Progress, before: Mapping[int, int]
    ) -> None:
        self.found = {partition: InForce(partition) for partition in follower.partitions}
        self._follower = follower
        self._digests = {policy.number: policy.document.digest for policy in archive}
        self._beginnings = follower.beginnings()
        self._unread_to = {**follower.ends(), **before}
        self._progress = progress
        self._done = 0

    def look_for(self, policy: ArchivedPolicy) -> None:
        ranges = {}
        for partition in self._open(policy.number):
            start = policy.log_ends.get(partition, 0)
            beginning = self._beginnings[partition]
            ranges[partition] = (max(start, beginning), self._unread_to[partition])
            self._unread_to[partition] = min(max(start, beginning), self._unread_to[partition])
        total = self._done + sum(max(0, end - start) for start, end in ranges.values())
        for records in self._follower.read(ranges):
            self._done += len(records)
            self._progress(self._done, total)
            for record in records:
                self._see(record, policy.number)
        for partition in self._open(policy.number):
            # Where the log begins after the place from which on the policy can have been applied, it may be gone.
            if policy.log_ends.get(partition, 0) < self._beginnings[partition]:
                self.found[partition] = self.found[partition]._replace(certain=False)

    def _open(self, number: int) -> list[int]:
        """The partitions in which this number may still be the one in force."""
        return [
            partition
            for partition, found in self.found.items()
            if found.certain and (found.number is None or found.number < number)
        ]

    def _see(self, record: Record, wanted: int) -> None:
        for event in self._applied(record):
            best = self.found[record.partition]
            if best.number is None or event.number > best.number:
                self.found[record.partition] = InForce(
                    record.partition, event.number, record.offset, record.timestamp, best.certain
                )
                if event.number == wanted:
                    self._follower.drop(record.partition)

    def _applied(self, record: Record) -> Iterator[PolicyApplied]:
        if record.value and _MARK in record.value:
            for event in decode_record(record.value, record.timestamp, record.content_type):
                # The worker refuses a number that is not archived, or archived with another digest.
                if isinstance(event, PolicyApplied) and self._digests.get(event.number) == event.digest:
                    yield event

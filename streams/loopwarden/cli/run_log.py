"""A run as the cluster has it: its part of `agent-events` with the policies applied along it, and its verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from loopwarden.cli.scanning import scanning_bar
from loopwarden.cli.terminal import printable, say
from loopwarden.client import Connection, Follower, Record, following, read_archive
from loopwarden_schemas.codec import Rejected, decode_record, decode_verdict
from loopwarden_schemas.structs import Event, PolicyApplied, Verdict
from loopwarden_schemas.topics import partition_for

_POLICY_MARK: Final = b"policy.applied"

Progress = Callable[[int, int], None]


class RunLog(NamedTuple):
    """What the topics hold of a run.

    Attributes:
        events: Its events, and the `policy.applied` of its partition with their documents, in the order of the log.
        verdicts: Those published on it.
        whole: Whether the partition still has all that was ever in it.
        unknown_policies: Numbers that were applied, but are not archived so; the worker refuses them, too.
    """

    events: list[Event]
    verdicts: list[Verdict]
    whole: bool
    unknown_policies: list[int]


def read_run_log(connection: Connection, run_id: str) -> RunLog:
    """Read a run. No group is joined, nothing is written.

    Raises:
        ClusterError: the broker or a topic is not there.
    """
    topics = connection.topics()
    archive = {policy.number: policy.document for policy in read_archive(connection)}
    events: list[Event] = []
    unknown: list[int] = []
    with scanning_bar(f"Reading run {printable(run_id)}") as progress:
        with following(connection, topics.events.name) as follower:
            partition, start = _place(follower, run_id)
            for record in _records(follower, partition, progress):
                for event in _events(record, run_id):
                    if isinstance(event, PolicyApplied):
                        document = archive.get(event.number)
                        if document is None or document.digest != event.digest:
                            unknown.append(event.number)
                            continue
                        event.policy = document.value
                    events.append(event)
        with following(connection, topics.verdicts.name) as follower:
            partition, _ = _place(follower, run_id)
            key = run_id.encode()
            records = [record for record in _records(follower, partition, progress) if record.key == key]
    verdicts = [verdict for verdict in map(_verdict, records) if verdict is not None]
    return RunLog(events, verdicts, start == 0, unknown)


def _place(follower: Follower, run_id: str) -> tuple[int, int]:
    """The run's partition, and the oldest offset that it still has."""
    partition = partition_for(run_id, len(follower.partitions))
    return partition, follower.beginnings()[partition]


def _records(follower: Follower, partition: int, progress: Progress) -> Iterator[Record]:
    start, end = follower.beginnings()[partition], follower.ends()[partition]
    for records in follower.read({partition: (start, end)}):
        yield from records
        progress(records[-1].offset + 1 - start, end - start)


def _events(record: Record, run_id: str) -> Iterator[Event]:
    of_run = record.key == run_id.encode()
    if not of_run and not (record.key is None and record.value and _POLICY_MARK in record.value):
        return
    for event in decode_record(record.value, record.timestamp, record.content_type):
        if isinstance(event, Rejected):
            continue
        if isinstance(event, PolicyApplied) or event.run_id == run_id:
            yield event


def _verdict(record: Record) -> Verdict | None:
    try:
        return decode_verdict(record.value or b"", record.content_type)
    except ValueError as error:
        say(f"partition {record.partition} offset {record.offset} of the verdicts: {error}")
        return None

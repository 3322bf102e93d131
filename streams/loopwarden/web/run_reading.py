"""One run read from the log, as `loopwarden report` draws it, and what comes after. It joins no group, writes nothing.

Where it is known when the run began, the partition is read from there, not from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loopwarden.client import (
    Connection,
    Follower,
    following,
    policies_in_force,
    read_archive,
    read_range,
)
from loopwarden.replay import LogPart
from loopwarden.replay.beginnings import WHY
from loopwarden.replay.records import Records
from loopwarden.report import Timeline, TimelineBuilder
from loopwarden.web.policies import policies_applicable
from loopwarden.web.watched_run import WatchedRun
from loopwarden_schemas.codec import content_type_of, decode_verdict
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import Event, PolicyApplied, Verdict
from loopwarden_schemas.topics import partition_for

_CLOCKS_DIFFER_MS: Final = 3600 * 1000
"""A verdict has the time of the worker's clock, its event that of the broker's."""


class RunReading:
    """A run that was read up to an offset, and takes what comes after it."""

    def __init__(
        self, connection: Connection, builder: TimelineBuilder, end: int, archive: dict[int, PolicyDocument]
    ) -> None:
        self._connection = connection
        self._builder = builder
        self._end = end
        self._archive = archive

    def take(self, offset: int, what: Event | Verdict) -> bool:
        """Take what was told; return whether it was new.

        Raises:
            ClusterError: a new policy was applied, and the archive cannot be read.
        """
        if isinstance(what, Verdict):
            self._builder.add_verdicts([what])
            return True
        if offset < self._end:
            return False
        if isinstance(what, PolicyApplied) and what.number not in self._archive:
            archive = policies_applicable(read_archive(self._connection))
            self._archive.update((policy.number, policy.document) for policy in archive)
        self.add(what)
        return True

    def add(self, event: Event) -> None:
        """Take the next event; a policy with its document, if the archive holds it."""
        if isinstance(event, PolicyApplied):
            document = self._archive.get(event.number)
            # The archive is what is trusted. (design.md, "Policy".)
            if document is None or document.digest != event.digest:
                return
            event.policy = document.value
        self._builder.add(event)

    def timeline(self) -> Timeline:
        """Return the run as it is known now."""
        return self._builder.timeline()


def read_run(connection: Connection, run_id: str, watched: WatchedRun | None) -> RunReading:
    """Read a run up to the end as it is now.

    Args:
        connection: The cluster.
        run_id: The run.
        watched: What is known of it.

    Raises:
        ClusterError: the log cannot be read.
    """
    topics = connection.topics()
    with following(connection, topics.events.name) as follower:
        partition = partition_for(run_id, len(follower.partitions))
        partitions = len(follower.partitions)
        begins = follower.beginnings()[partition]
        start, end = max(begins, _start(follower, partition, watched)), follower.ends()[partition]
    with following(connection, topics.verdicts.name) as follower:
        verdicts_start = follower.beginnings()[partition]
        if watched is not None and watched.begun is not None:
            verdicts_start = follower.at_time(max(0, watched.begun - _CLOCKS_DIFFER_MS))[partition]
        verdicts_end = follower.ends()[partition]
    archive = policies_applicable(read_archive(connection))
    documents = {policy.number: policy.document for policy in archive}
    states = policies_in_force(connection, archive, before={partition: start})
    state = next(each for each in states if each.partition == partition)
    part = LogPart(
        partition=partition,
        partitions=partitions,
        whole_log=start == 0,
        policy=DEFAULT_DOCUMENT if state.number is None else documents[state.number],
        number=-1 if state.number is None else state.number,
        known_from=None if state.certain else state.number,
        archive=documents,
        runs=frozenset((run_id.encode("utf-8", "surrogatepass"),)),
    )
    events, notes = _events(connection, run_id, part, (start, end), begun_here=start > begins)
    source = f"policy {part.number}, in force where the run begins" if part.number >= 0 else "the defaults"
    builder = TimelineBuilder(run_id, part.policy, number=part.number, source=source, notes=notes)
    reading = RunReading(connection, builder, end, documents)
    builder.add_verdicts(_verdicts(connection, partition, (verdicts_start, verdicts_end), run_id))
    for event in events:
        reading.add(event)
    return reading


def _start(follower: Follower, partition: int, watched: WatchedRun | None) -> int:
    """From which offset on the run's events lie, as far as is known."""
    if watched is None or watched.begun is None:
        return 0
    return follower.at_time(watched.begun)[partition]


def _events(
    connection: Connection, run_id: str, part: LogPart, offsets: tuple[int, int], *, begun_here: bool
) -> tuple[list[Event], list[str]]:
    """The run's events with the policies between them, and what is to be known about the log.

    begun_here: the first offset is known to be the run's beginning.
    """
    records, beginnings = Records(part), part.beginnings()
    events: list[Event] = []
    for read in read_range(connection, connection.topics().events.name, {part.partition: offsets}):
        for record in read:
            beginnings.start(record.timestamp)
            for event in records.take(record.key, record.value, record.timestamp, content_type_of(record.headers)):
                events.append(event)
                if not isinstance(event, PolicyApplied):
                    beginnings.see(event)
    why = None if begun_here else beginnings.not_whole.get(run_id)
    return events, [] if why is None else [f"The run {WHY[why]}: what is shown may not be all of it"]


def _verdicts(connection: Connection, partition: int, offsets: tuple[int, int], run_id: str) -> Iterator[Verdict]:
    for read in read_range(connection, connection.topics().verdicts.name, {partition: offsets}):
        for record in read:
            try:
                verdict = decode_verdict(record.value or b"", content_type_of(record.headers))
            except ValueError:
                continue
            if verdict.run_id == run_id:
                yield verdict

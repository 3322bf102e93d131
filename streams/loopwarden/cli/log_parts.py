"""What of the topics is read to judge runs again: offsets by time, the policies in force there, how far is judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from loopwarden.cli.scanning import scanning_bar
from loopwarden.client import (
    ArchivedPolicy,
    Connection,
    Follower,
    RecordRead,
    applied_before,
    following,
    judged_offsets,
    policies_in_force,
    read_archive,
)
from loopwarden.judge.run_state import IDLE_MS
from loopwarden.replay import LogPart
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.topics import partition_for

_Default = TypeVar("_Default")

_CLOCKS_DIFFER_MS: Final = 3600 * 1000
"""A verdict has the time of the worker's clock, its event that of the broker's."""


@dataclass(frozen=True)
class Asked:
    """What is to be judged again.

    Attributes:
        runs: Only these; none: all.
        since: Compare from this append time (ms) on.
        until: And to below this one.
        policy: For every run, instead of those in force by the log.
        judged_only: Read no further than the worker has judged.
    """

    runs: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    policy: PolicyDocument | None = None
    judged_only: bool = True


@dataclass(frozen=True)
class PartToRead:
    """A part of the log as it lies in the topics.

    Attributes:
        part: What is to be done with it.
        events: First offset, and the one below which it is read, in its partition of `agent-events`.
        verdicts: The same in `loop-verdicts`.
        unjudged: How many records above that are not judged yet.
    """

    part: LogPart
    events: tuple[int, int]
    verdicts: tuple[int, int]
    unjudged: int = 0

    @property
    def size(self) -> int:
        """How many records there are to read, at most."""
        return max(0, self.events[1] - self.events[0]) + max(0, self.verdicts[1] - self.verdicts[0])


def parts_to_read(connection: Connection, asked: Asked) -> list[PartToRead]:
    """Look up what is asked for.

    Raises:
        BrokerUnavailable: no broker there.
        TopicMissing: a topic is not there.
    """
    topics = connection.topics()
    # Before the ends of the log and of the verdicts are asked for: what is judged lies below both.
    judged = judged_offsets(connection)
    with following(connection, topics.events.name) as follower:
        count = len(follower.partitions)
        partitions = _partitions(asked.runs, follower)
        log_begins, ends = follower.beginnings(), follower.ends()
        firsts = _at_time(follower, None if asked.since is None else asked.since - IDLE_MS, log_begins)
        since = _at_time(follower, asked.since, log_begins)
        until = _at_time(follower, asked.until, ends)
    if asked.policy is None:
        pinned = _policies(connection, {each: firsts[each] for each in partitions}, log_begins)
    else:
        pinned = dict.fromkeys(partitions, _Pinned(asked.policy, -1, None, {}))
    found = []
    with following(connection, topics.verdicts.name) as follower:
        verdicts_begin, verdicts_end = follower.beginnings(), follower.ends()
        earliest = None if asked.since is None else asked.since - IDLE_MS - _CLOCKS_DIFFER_MS
        verdicts_first = _at_time(follower, earliest, verdicts_begin)
        expired = [each for each in partitions if 0 < verdicts_first[each] == verdicts_begin[each]]
        oldest = _oldest_causes(follower, expired, verdicts_end)
    for partition in partitions:
        first = firsts[partition]
        end = min(until[partition], judged.get(partition, 0))
        part = LogPart(
            partition=partition,
            partitions=count,
            whole_log=first == 0,
            since=since[partition],
            end=end,
            recorded_from=oldest.get(partition, end) if partition in expired else 0,
            policy=pinned[partition].document,
            number=pinned[partition].number,
            known_from=pinned[partition].known_from,
            archive=pinned[partition].archive,
            fixed=asked.policy is not None,
            runs=frozenset(run.encode() for run in asked.runs) or None,
        )
        read_to = end if asked.judged_only else until[partition]
        unjudged = max(0, until[partition] - max(end, first))
        verdicts = (verdicts_first[partition], verdicts_end[partition])
        found.append(PartToRead(part, (first, read_to), verdicts, unjudged))
    return found


def _partitions(runs: tuple[str, ...], follower: Follower) -> list[int]:
    if not runs:
        return list(follower.partitions)
    return sorted({partition_for(run, len(follower.partitions)) for run in runs})


def _at_time(follower: Follower, milliseconds: int | None, otherwise: dict[int, int]) -> dict[int, int]:
    return otherwise if milliseconds is None else follower.at_time(max(0, milliseconds))


class _Pinned(NamedTuple):
    """The policy in force where the reading of a partition begins. For the fields see `LogPart`."""

    document: PolicyDocument
    number: int
    known_from: int | None
    archive: Mapping[int, PolicyDocument]


def _policies(connection: Connection, firsts: Mapping[int, int], log_begins: Mapping[int, int]) -> dict[int, _Pinned]:
    """Find what is in force where each partition begins to be read: in the log, else in the worker's changelog."""
    archive = read_archive(connection)
    documents = _documents(archive)
    with scanning_bar("Looking for the policies in force") as progress:
        states = [each for each in policies_in_force(connection, archive, progress, firsts) if each.partition in firsts]
        # What may have been applied in the part of the log that is gone: the newest of it would be in force.
        gone = {
            state.partition: max(
                policy.number
                for policy in archive
                if policy.log_ends.get(state.partition, 0) < log_begins[state.partition]
            )
            for state in states
            if not state.certain
        }
        wanted = {partition: (number, firsts[partition]) for partition, number in gone.items()}
        kept = applied_before(connection, wanted, progress) if wanted else set()
    pinned = {}
    for partition, number, *_ in states:
        known_from = gone.get(partition)
        if partition in kept:
            number, known_from = known_from, None
        document = DEFAULT_DOCUMENT if number is None else documents.get(number, DEFAULT_DOCUMENT)
        pinned[partition] = _Pinned(document, -1 if number is None else number, known_from, documents)
    return pinned


def _documents(archive: Iterable[ArchivedPolicy]) -> dict[int, PolicyDocument]:
    documents = {}
    for policy in archive:
        try:
            _ = policy.document.digest
        except NotCanonical:
            # The worker takes no such document for a policy.
            continue
        documents[policy.number] = policy.document
    return documents


def _oldest_causes(follower: Follower, partitions: list[int], ends: dict[int, int]) -> dict[int, int]:
    """The offset of the event that caused the oldest verdict that each partition still has."""
    causes: dict[int, int] = {}
    beginnings = follower.beginnings()
    for records in follower.read({each: (beginnings[each], ends[each]) for each in partitions}):
        for record in records:
            cause = cause_offset(record)
            if cause is not None and record.partition not in causes:
                causes[record.partition] = cause
                follower.drop(record.partition)
    return causes


def cause_offset(record: RecordRead) -> int | None:
    """The offset of the event that caused a verdict, as its record says."""
    return number_in_header(record, "cause-offset", None)


def number_in_header(record: RecordRead, name: str, default: _Default) -> int | _Default:
    """The number that a record's header holds, or the default where there is none, or something else."""
    text = next((text for header, text in record.headers if header == name), None)
    return int(text) if text is not None and text.isdigit() else default

"""Reading dead letters, and sending their events to `agent-events` again. (`loopwarden_schemas.dead_letters`.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kafka import KafkaProducer
from kafka.errors import KafkaError
from msgspec.structs import replace

from loopwarden.client.admin import partition_count
from loopwarden.client.connect import connected
from loopwarden.client.errors import NotPublished, TopicMissing
from loopwarden.client.follower import Record, following
from loopwarden.client.policy_in_force import Progress, silent
from loopwarden.client.producer import PRODUCER_SETTINGS
from loopwarden.client.settings import Connection
from loopwarden_schemas.dead_letters import (
    CONTENT_TYPE,
    REPLAY_OF,
    REPLAYED_BY,
    REPLAYED_WHY,
    DeadLetter,
    Place,
    ReplayNote,
    note_headers,
    read_dead_letter,
)

_ACKNOWLEDGED_S: Final = 20.0


class Replay(NamedTuple):
    """That somebody sent the event again, and when (ms)."""

    by: str
    why: str
    at: int


class FoundLetter(NamedTuple):
    """A dead letter of the topic. `size`: bytes that the letter carries of the original."""

    letter: DeadLetter
    size: int
    replays: list[Replay]


class DeadLetters(NamedTuple):
    """What was found: each letter once, oldest event first; and how many records are no dead letters."""

    found: list[FoundLetter]
    others: int


def read_dead_letters(
    connection: Connection,
    wanted: Callable[[DeadLetter], bool] = lambda letter: True,
    *,
    partition: int | None = None,
    with_values: bool = False,
    progress: Progress = silent,
) -> DeadLetters:
    """Read the dead letters that are there now. One that a restarted worker wrote again is there once.

    Args:
        connection: Where.
        wanted: Which ones.
        partition: Only those of events of this partition.
        with_values: Whether the letters keep the original bytes; those of all may be more than fits into memory.
        progress: Told while the topic is read.

    Raises:
        BrokerUnavailable: no broker there, or it stopped answering.
        TopicMissing: the topic is not there.
    """
    letters: dict[Place, FoundLetter] = {}
    notes: dict[Place, list[Replay]] = {}
    others = 0
    with following(connection, connection.topics().dead.name) as follower:
        beginnings, ends = follower.beginnings(), follower.ends()
        # A letter lies in the partition of its event.
        partitions = follower.partitions if partition is None else {partition} & set(follower.partitions)
        ranges = {each: (beginnings[each], ends[each]) for each in partitions}
        total, done = sum(end - start for start, end in ranges.values()), 0
        for records in follower.read(ranges):
            done += len(records)
            progress(done, total)
            for record in records:
                each = _read(record)
                if isinstance(each, ReplayNote):
                    notes.setdefault(each.place, []).append(Replay(each.by, each.why, record.timestamp))
                elif each is None:
                    others += 1
                elif each.place not in letters and wanted(each):
                    size = len(each.value or b"")
                    letters[each.place] = FoundLetter(each if with_values else replace(each, value=None), size, [])
    for place, replays in notes.items():
        if place in letters:
            letters[place].replays.extend(replays)
    oldest_first = sorted(letters.values(), key=lambda found: (found.letter.append_time, found.letter.place))
    return DeadLetters(oldest_first, others)


def read_original(connection: Connection, letter: DeadLetter) -> bytes | None:
    """Return the whole original value of a letter; None: it is cut, and the event is not in its topic any more.

    Raises:
        BrokerUnavailable: no broker there, or it stopped answering.
        TopicMissing: the topic is not there.
    """
    if letter.original_size is None:
        return letter.value
    topic, partition, offset, _ = letter.place
    with following(connection, topic) as follower:
        if not follower.beginnings().get(partition, 0) <= offset < follower.ends().get(partition, 0):
            return None
        for records in follower.read({partition: (offset, offset + 1)}):
            for record in records:
                return record.value
    return None


class Sending(NamedTuple):
    """An event as it is sent again. `partition` and `key` are those of its run."""

    letter: DeadLetter
    value: bytes
    key: bytes | None
    partition: int


def event_partitions(connection: Connection) -> int:
    """Return how many partitions `agent-events` has.

    Raises:
        BrokerUnavailable: no broker there.
        TopicMissing: the topic is not there.
    """
    topic = connection.topics().events.name
    partitions = partition_count(connection, topic)
    if partitions is None:
        raise TopicMissing(topic, connection.bootstrap_servers, connection.topic_prefix)
    return partitions


def replay(connection: Connection, sendings: list[Sending], *, by: str, why: str) -> list[int]:
    """Send events again, in this order, and note it beside their letters; return the offsets they got.

    An event that was sent and not noted, as something went wrong in between, may be sent again: its `event_id` tells
    the judge.

    Args:
        connection: Where.
        sendings: The events.
        by: Who does it.
        why: For whoever asks later.

    Raises:
        BrokerUnavailable: no broker there, or it stopped answering.
        NotPublished: an event was not acknowledged; those before it were.
    """
    topics = connection.topics()
    offsets = []
    with connected(KafkaProducer, connection, **PRODUCER_SETTINGS) as producer:
        for sending in sendings:
            place = sending.letter.place
            headers = [(REPLAY_OF, str(place).encode()), (REPLAYED_BY, by.encode()), (REPLAYED_WHY, why.encode())]
            if sending.letter.content_type is not None:
                headers.append((CONTENT_TYPE, sending.letter.content_type.encode()))
            sent = _send(producer, topics.events.name, sending.value, sending.key, sending.partition, headers, place)
            note = note_headers(ReplayNote(place, by, why))
            # Not one without value and key: a client may take it for nothing.
            _send(producer, topics.dead.name, b"", sending.letter.key, place.partition, note, place)
            offsets.append(sent)
    return offsets


def _send(
    producer: Any,
    topic: str,
    value: bytes,
    key: bytes | None,
    partition: int,
    headers: list[tuple[str, bytes]],
    place: Place,
) -> int:
    try:
        sent = producer.send(topic, value, key=key, partition=partition, headers=headers)
        return int(sent.get(timeout=_ACKNOWLEDGED_S).offset)
    except KafkaError as error:
        raise NotPublished(f"{topic}: the broker did not take what was sent for {place}: {error}") from error


def _read(record: Record) -> DeadLetter | ReplayNote | None:
    try:
        return read_dead_letter(record.key, record.value, record.headers)
    except ValueError:
        return None

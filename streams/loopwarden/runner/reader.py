"""The one thread that reads: verdicts and progress, only of the partitions of the runs that are guarded.

Without a consumer group: positions are kept in memory, so that a connection that breaks is taken up where it was. A run
that joins is read back by seeking to where it may have begun; what the others read twice they know by (`begun`, `n`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgpack
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from loopwarden.client.errors import BrokerUnavailable
from loopwarden.client.kept_connection import KeptConnection
from loopwarden.client.rights import why_not
from loopwarden.client.settings import Connection
from loopwarden.runner.read_back import READ_BACK_MS
from loopwarden.runner.waiting import Waiters
from loopwarden_schemas.codec import decode_verdict
from loopwarden_schemas.structs import Verdict
from loopwarden_schemas.topics import partition_for

_SETTINGS: Final[dict[str, Any]] = {
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "allow_auto_create_topics": False,
    "request_timeout_ms": 8_000,
    "max_poll_records": 2_000,
    "reconnect_backoff_max_ms": 1_000,
    # A run that joins waits for the fetch that is under way.
    "fetch_max_wait_ms": 100,
    # The broker checked them when it took the records.
    "check_crcs": False,
}
_ASK_MS: Final = 8_000
_POLL_MS: Final = 100
_IDLE_S: Final = 5.0
"""So long without a record, and the broker is asked something: kafka-python waits for one that is gone without a word,
and a port that takes connections says little about who is behind it."""

_PROGRESS_BACK: Final = 100
"""Records of `loop-progress` before its end that are read: of those the highest counts, and the last one nearly always
is that."""

_CLOCKS_MS: Final = 10 * 60 * 1000
"""By so much the clocks of runner, worker and broker may differ when a run is read back by time."""

logger = logging.getLogger("loopwarden.runner")


class Follower(Protocol):
    """A run whose verdicts are read. Called in the reader's thread, with its lock held.

    Attributes:
        run_id: The run.
        since: Append time (ms) from which its verdicts are wanted; None: it begins now.
        since_is_guessed: Whether that is by our clock alone; then the broker's times count, where they are earlier.
    """

    run_id: str
    since: int | None
    since_is_guessed: bool

    def apply(self, verdict: Verdict, cause_offset: int, cause_time: int) -> bool:
        """Take a verdict; return False where the run began before what was read, and must be read again from there."""

    def note_joined(self) -> None:
        """Everything there was when the run joined has been read."""

    def decide(self) -> bool:
        """Say whether it is settled which of the orders found hold; if not, this is called again soon."""


class Reader:
    """Reads for all runs of a guard.

    Attributes:
        moved: Notified whenever something was read; the lock of all of it.
        waiters: The same for tasks of asyncio.
        is_started: Whether its thread was started.
        partitions: How many `loop-verdicts` has; None until that is known.
        judged: By partition: every event of `agent-events` below this offset is judged,
        verdicts: and its verdicts lie below this offset of `loop-verdicts`.
        read: By partition: the verdicts below this offset were read.
    """

    def __init__(self, connection: Connection) -> None:
        self.moved = threading.Condition()
        self.waiters = Waiters()
        self.is_started = False
        self.partitions: int | None = None
        self.judged: dict[int, int] = {}
        self.verdicts: dict[int, int] = {}
        self.read: dict[int, int] = {}
        self._connection = connection
        topics = connection.topics()
        self._verdicts, self._progress, self._events = topics.verdicts.name, topics.progress.name, topics.events.name
        self._runs: dict[str, tuple[Follower, ...]] = {}
        self._joining: list[Follower] = []
        self._reading_again: list[Follower] = []
        """Of those that join, the ones whose verdicts will all come again, the earlier ones first."""
        self._waiting: list[tuple[Follower, int, int]] = []
        """Runs that are being read back: with their partition, and the offset where that ends."""
        self._undecided: list[Follower] = []
        self._end_asked: list[tuple[int, Callable[[int], None]]] = []
        self._has_refused_an_end = False
        self._newest: dict[TopicPartition, int] = {}
        """The time of the newest verdict that was seen of a partition (ms)."""
        self._positions: dict[TopicPartition, int] = {}
        self._link = KeptConnection(KafkaConsumer, connection, _SETTINGS, logger, "verdicts cannot be read")
        self._thread = threading.Thread(target=self._run, name="loopwarden runner", daemon=True)

    @property
    def connected(self) -> bool:
        """Whether the broker is there, as far as is known."""
        return self._link.established

    def start(self) -> None:
        """Begin, where that was not done yet."""
        with self.moved:
            if not self.is_started:
                self.is_started = True
                self._thread.start()

    def close(self, timeout: float) -> None:
        """Stop."""
        self._link.closing.set()
        with self.moved:
            self.moved.notify_all()
        if self.is_started:
            self._thread.join(timeout)

    def follow(self, run: Follower) -> None:
        """Read the verdicts of a run, from where it may have begun."""
        with self.moved:
            self._runs[run.run_id] = (*self._runs.get(run.run_id, ()), run)
            self._joining.append(run)
            self.moved.notify_all()

    def leave(self, run: Follower) -> None:
        """Do not read for a run any more."""
        with self.moved:
            left = tuple(each for each in self._runs.get(run.run_id, ()) if each is not run)
            if left:
                self._runs[run.run_id] = left
            else:
                self._runs.pop(run.run_id, None)
            self._undecided = [each for each in self._undecided if each is not run]
            self._joining = [each for each in self._joining if each is not run]
            self._reading_again = [each for each in self._reading_again if each is not run]
            self._waiting = [each for each in self._waiting if each[0] is not run]

    def reconsider(self, run: Follower) -> None:
        """Ask a run again whether it is settled which orders hold."""
        with self.moved:
            if run not in self._undecided:
                self._undecided.append(run)

    def ask_end(self, partition: int, answer: Callable[[int], None]) -> None:
        """Call `answer` with the offset that the next event of a partition gets; never where it cannot be known."""
        with self.moved:
            self._end_asked.append((partition, answer))

    def partition(self, run_id: str) -> int:
        """The partition of a run; -1 while their number is not known."""
        return -1 if self.partitions is None else partition_for(run_id, self.partitions)

    def is_judged(self, partition: int, offset: int) -> bool:
        """Whether the event at this offset is judged, and all verdicts up to it were read."""
        # In this order, the other one than they are written in, it holds without the lock, too.
        judged = self.judged.get(partition, -1) > offset
        verdicts = self.verdicts.get(partition)
        return judged and verdicts is not None and self.read.get(partition, -1) >= verdicts

    def _run(self) -> None:
        self._link.keep(self._read_until_closed)

    def _read_until_closed(self, consumer: Any) -> None:
        found = consumer.partitions_for_topic(self._verdicts)
        if not found:
            raise why_not(self._connection, self._verdicts, "Read")
        self.partitions = len(found)
        self._link.note_established()
        assigned: set[TopicPartition] = set()
        heard_at = time.monotonic()
        while not self._link.closing.is_set():
            assigned = self._assign(consumer, assigned)
            self._tell_ends(consumer)
            if not assigned:
                with self.moved:
                    self.moved.wait_for(lambda: self._joining or self._link.closing.is_set(), _POLL_MS / 1000)
                heard_at = time.monotonic()
                continue
            polled = consumer.poll(timeout_ms=_POLL_MS)
            if polled:
                heard_at = time.monotonic()
                self._take(polled)
            elif time.monotonic() - heard_at > _IDLE_S:
                consumer.end_offsets(list(assigned), timeout_ms=_IDLE_S * 1000)
                heard_at = time.monotonic()
            self._note_joined()

    def _assign(self, consumer: Any, assigned: set[TopicPartition]) -> set[TopicPartition]:
        """Read exactly the partitions of the runs; where a run joined, from where it may have begun."""
        with self.moved:
            joining, self._joining = self._joining, []
            partitions = {self.partition(run_id) for run_id in self._runs}
        wanted = {TopicPartition(topic, each) for topic in (self._verdicts, self._progress) for each in partitions}
        if wanted == assigned and not joining:
            return assigned
        try:
            starts = self._starts(consumer, wanted, joining)
            ends = consumer.end_offsets([self._at(run) for run in joining], timeout_ms=_ASK_MS) if joining else {}
        except BaseException:
            with self.moved:
                self._joining = joining + self._joining
            raise
        consumer.assign(list(wanted))
        for each in wanted:
            consumer.seek(each, starts[each])
        with self.moved:
            self._positions = starts
            self._reading_again = [each for each in self._reading_again if each not in joining]
            for partition in {each.partition for each in assigned - wanted}:
                for of in (self.judged, self.verdicts, self.read):
                    of.pop(partition, None)
            for each in wanted:
                if each.topic == self._verdicts:
                    self.read.setdefault(each.partition, starts[each])
            self._waiting += [(run, self.partition(run.run_id), ends[self._at(run)]) for run in joining]
        return wanted

    def _starts(self, consumer: Any, wanted: set[TopicPartition], joining: list[Follower]) -> dict[TopicPartition, int]:
        starts = {each: self._positions[each] for each in wanted if each in self._positions}
        new = [each for each in wanted if each not in starts and each.topic == self._progress]
        if new:
            beginnings = consumer.beginning_offsets(new, timeout_ms=_ASK_MS)
            ends = consumer.end_offsets(new, timeout_ms=_ASK_MS)
            starts.update({each: max(beginnings[each], ends[each] - _PROGRESS_BACK) for each in new})
        self._see_newest(consumer, {self._at(run) for run in joining if run.since_is_guessed})
        since: dict[TopicPartition, int] = {}
        for run in joining:
            at = self._at(run)
            if run.since_is_guessed and run.since is not None:
                run.since = min(run.since, self._newest.get(at, run.since + READ_BACK_MS) - READ_BACK_MS)
            if run.since is None and at in starts:
                continue  # it begins now, and what comes from now on is read already
            begins = int(time.time() * 1000) if run.since is None else run.since
            since[at] = max(0, min(since.get(at, begins), begins - _CLOCKS_MS))
        if since:
            ends = consumer.end_offsets(list(since), timeout_ms=_ASK_MS)
            for at, found in consumer.offsets_for_times(dict(since), timeout_ms=_ASK_MS).items():
                start = ends[at] if found is None else found.offset
                starts[at] = min(starts.get(at, start), start)
        return starts

    def _see_newest(self, consumer: Any, wanted: set[TopicPartition]) -> None:
        """Look what time it is by the verdicts: a clock of ours that is ahead must not make a run miss its abort."""
        unseen = [at for at in wanted if at not in self._newest]
        if not unseen:
            return
        beginnings = consumer.beginning_offsets(unseen, timeout_ms=_ASK_MS)
        ends = consumer.end_offsets(unseen, timeout_ms=_ASK_MS)
        left = {at for at in unseen if ends[at] > beginnings[at]}
        if left:
            consumer.assign(list(left))
        for at in left:
            consumer.seek(at, ends[at] - 1)
        deadline = time.monotonic() + _ASK_MS / 1000
        while left:
            if time.monotonic() > deadline:
                raise BrokerUnavailable(f"{self._connection.bootstrap_servers}: the newest verdicts do not come")
            for at, records in consumer.poll(timeout_ms=_POLL_MS).items():
                self._newest[at] = max(record.timestamp for record in records)
                left.discard(at)

    def _tell_ends(self, consumer: Any) -> None:
        with self.moved:
            asked, self._end_asked = self._end_asked, []
        for partition, answer in asked:
            at = TopicPartition(self._events, partition)
            try:
                end = consumer.end_offsets([at], timeout_ms=_ASK_MS)[at]
            except KafkaError as error:
                if not self._has_refused_an_end:
                    self._has_refused_an_end = True
                    logger.warning("the end of %s/%d cannot be read: %s", self._events, partition, error)
                continue
            with self.moved:
                answer(end)
                self.moved.notify_all()
            self.waiters.wake()

    def _take(self, polled: dict[TopicPartition, list[Any]]) -> None:
        with self.moved:
            for at, records in polled.items():
                for record in records:
                    if at.topic == self._verdicts:
                        self._take_verdict(record)
                    else:
                        self._take_progress(at.partition, record.value)
                self._positions[at] = records[-1].offset + 1
                if at.topic == self._verdicts:
                    self.read[at.partition] = max(self.read.get(at.partition, 0), records[-1].offset + 1)
                    self._newest[at] = max(self._newest.get(at, 0), records[-1].timestamp)
            self.moved.notify_all()
        self.waiters.wake()

    def _take_verdict(self, record: Any) -> None:
        runs = self._runs.get((record.key or b"").decode(errors="replace"), ())
        if not runs or record.value is None:
            return
        headers = dict(record.headers)
        try:
            verdict = decode_verdict(record.value)
            cause_offset, cause_time = int(headers["cause-offset"]), int(headers["cause-append-time"])
        except (ValueError, KeyError) as error:
            logger.error("%s/%d at %d is no verdict: %r", self._verdicts, record.partition, record.offset, error)
            return
        for run in runs:
            if run not in self._reading_again and not run.apply(verdict, cause_offset, cause_time):
                self._waiting = [each for each in self._waiting if each[0] is not run]
                self._joining.append(run)
                self._reading_again.append(run)

    def _take_progress(self, partition: int, value: bytes | None) -> None:
        try:
            progress = msgpack.unpackb(value or b"")
            judged, verdicts = int(progress["judged"]), int(progress["verdicts"])
        except Exception as error:  # whatever the bytes are
            logger.error("%s/%d: a record says no progress: %r", self._progress, partition, error)
            return
        if judged > self.judged.get(partition, -1):
            self.verdicts[partition] = verdicts
            self.judged[partition] = judged

    def _note_joined(self) -> None:
        if not self._waiting and not self._undecided:
            return
        with self.moved:
            still = []
            for run, partition, end in self._waiting:
                if self._positions.get(TopicPartition(self._verdicts, partition), -1) >= end:
                    run.note_joined()
                    self._undecided.append(run)
                else:
                    still.append((run, partition, end))
            self._waiting = still
            self._undecided = [run for run in self._undecided if not run.decide()]
            self.moved.notify_all()
        self.waiters.wake()

    def _at(self, run: Follower) -> TopicPartition:
        return TopicPartition(self._verdicts, self.partition(run.run_id))

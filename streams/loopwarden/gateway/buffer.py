"""Events between the agent's threads and the sending one: bounded, in order, and with a policy for when it is full."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

from loopwarden.gateway.errors import Dropped, NotSent, Refused, Spooled
from loopwarden.gateway.receipts import Receipt
from loopwarden.gateway.spool import Segment, Spool
from loopwarden.gateway.spool import Spooled as InFile

WhenAway: TypeAlias = Literal["block", "drop_oldest", "spool"]

MAX_ON_THE_WAY: Final = 100
"""Events sent and not acknowledged. When the connection breaks all of them are sent again, and the judge recognises a
redelivery among the newest 128 events of a run."""

_CLOSED: Final = "the gateway was closed"
_NO_ROOM: Final = "there was no room"
_IN_SPOOL: Final = "the event lies in the spool; a later gateway there sends it"
_UNWRITTEN: Final = "the spool cannot be written, and there are events in it that come first"

logger = logging.getLogger("loopwarden.gateway")


class Entry:
    """One event that waits, or is on its way."""

    __slots__ = ("attempts", "event_id", "is_placed", "key", "receipt", "record", "segment", "sent_at")

    def __init__(self, event_id: str, key: bytes, record: bytes, receipt: Receipt | None, segment: Segment | None):
        self.event_id = event_id
        self.key = key
        self.record = record
        self.receipt = receipt
        """None where nobody holds it any more."""
        self.segment = segment
        """The file it was read from."""
        self.is_placed = False
        """Whether the policy has decided where it waits."""
        self.attempts = 0
        self.sent_at = 0.0


class Buffer:
    """Events that wait, oldest first, in memory and then in files; and those on their way.

    An agent's thread takes no lock that the sending thread may hold while it waits for the interpreter: that would cost
    a call milliseconds. It leaves its events in `_arrived`; only where the policy has to decide it takes `moved`. A
    signal handler may send an event, too, in the middle of whatever its thread does here: so leaving one there is all
    that it does where the thread is deciding already.

    Attributes:
        moved: Notified whenever something changes; the lock of all the rest, and of the receipts.
        is_abandoned: Nobody has the gateway any more: what waits is yet to be sent, and then all ends.
    """

    def __init__(
        self,
        when_away: WhenAway,
        max_bytes: int,
        spool: Spool | None = None,
        *,
        max_block_s: float | None = None,
        blocks: bool = True,
    ) -> None:
        """`blocks` says whether `put` waits for room; else who puts has waited before, with `when_room`."""
        self.moved = threading.Condition()
        self.acknowledged_count = self.dropped = self.spooled = self.failed = 0
        self.is_abandoned = False
        self.max_block_s = max_block_s
        self.blocks_when_full = when_away == "block"
        self._drops_oldest = when_away != "block"
        self._max_bytes = max_bytes
        self._blocks = blocks
        self._spool = spool
        self._spool_fails = False
        self._arrived: deque[Entry] = deque()
        self._arrived_bytes = 0
        """Nearly: threads may add to it at the same time. It begins at 0 each time that all are accepted."""
        self._idle = False
        self._signals: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._is_accepting = self._is_notifying = False
        self._accepted_count = 0
        self._waiting: deque[Entry] = deque()
        self._bytes = 0
        self._in_files = 0
        self._on_the_way: dict[Entry, None] = {}
        self._settled: deque[Receipt] = deque()
        """Those whom nobody told yet."""
        self._watchers: list[tuple[Callable[[], bool], Callable[[], None]]] = []
        self._closed = self._ended = False

    @property
    def spool_folder(self) -> Path | None:
        """The spool's; None without one."""
        return None if self._spool is None else self._spool.folder

    @property
    def is_full(self) -> bool:
        """Whether the next event has to wait with `when_away="block"`."""
        return self._bytes_waiting >= self._max_bytes and not self._closed

    @property
    def is_empty(self) -> bool:
        """Whether the broker has everything, what other processes left in the spool included."""
        return not self.count and (self._ended or not self._spool)

    @property
    def count(self) -> int:
        """Events that wait or are on their way."""
        return len(self._arrived) + len(self._waiting) + len(self._on_the_way) + self._in_files

    @property
    def sent(self) -> int:
        """Events that were put."""
        return self._accepted_count + len(self._arrived)

    @property
    def _bytes_waiting(self) -> int:
        return self._arrived_bytes + self._bytes

    def put(self, event_id: str, key: bytes, record: bytes, *, wait: bool = True) -> Receipt:
        """Add an event behind all others. Without `wait` it is kept where the caller would have to wait for room."""
        receipt = Receipt(event_id, self.moved)
        entry = Entry(event_id, key, record, receipt, None)
        if self.blocks_when_full and wait and self.is_full and not self._has_room_for(entry):
            return receipt
        size = len(record)
        self._arrived.append(entry)
        self._arrived_bytes += size
        if self._closed or self._spool or (self._drops_oldest and self._bytes_waiting > self._max_bytes):
            self.accept()
        if self._idle:
            self._signals.put(None)
        return receipt

    def open(self) -> None:
        """Open the spool, if there is one; where that fails it does without."""
        try:
            if self._spool is not None:
                self._spool.open()
        except OSError as error:
            self.failed += 1
            self._spool = None
            logger.error("the spool cannot be written, the oldest events are dropped instead: %s", error)

    def accept(self) -> None:
        """Decide about all events that were put, where they wait."""
        with self._moving():
            self._accept()

    @contextlib.contextmanager
    def watching(self, holds: Callable[[], bool], tell: Callable[[], None]) -> Iterator[None]:
        """Within it, `tell` is called, in whatever thread, each time that something changed and `holds`."""
        watcher = (holds, tell)
        with self.moved:
            self._accept()
            self._watchers.append(watcher)
            if holds():
                tell()
        try:
            yield
        finally:
            with self.moved:
                self._watchers.remove(watcher)

    def take(self, timeout: float) -> list[Entry]:
        """Take the oldest events, as many as may be on their way; wait for some at most so many seconds."""
        with self.moved:
            self.moved.wait_for(lambda: len(self._on_the_way) < MAX_ON_THE_WAY, timeout)
        self._await_arrival(timeout)
        with self._moving():
            self._accept()
            if not self._waiting and self._spool:
                self._from_file(self._spool)
            taken = []
            while self._waiting and len(self._on_the_way) < MAX_ON_THE_WAY:
                entry = self._waiting[0]
                entry.sent_at = time.monotonic()
                self._on_the_way[entry] = None
                self._waiting.popleft()
                self._bytes -= len(entry.record)
                taken.append(entry)
            return taken

    def acknowledged(self, entry: Entry, partition: int, offset: int, append_time: int) -> None:
        """The broker has an event."""
        with self._moving():
            if entry in self._on_the_way:
                del self._on_the_way[entry]
                self.acknowledged_count += 1
                # A retry that the broker had stored already may be answered without an offset.
                known = offset if offset >= 0 else None
                self._settle(entry, partition=partition, offset=known, append_time=append_time)

    def refused(self, entry: Entry, error: BaseException) -> None:
        """Nobody will ever take an event."""
        with self._moving():
            if entry not in self._on_the_way:
                return
            del self._on_the_way[entry]
            self.failed += 1
            self._settle(entry, error=Refused(f"event {entry.event_id} was refused: {error!r}"))
        logger.error("event %s was refused: %r", entry.event_id, error)

    def send_again(self) -> None:
        """What was on its way waits again, before all others and in its order."""
        with self._moving():
            entries, self._on_the_way = list(self._on_the_way), {}
            self._waiting.extendleft(reversed(entries))
            self._bytes += sum(len(entry.record) for entry in entries)

    def oldest_on_the_way(self) -> float | None:
        """When the oldest event that is not acknowledged was sent (`time.monotonic`)."""
        with self.moved:
            return next((entry.sent_at for entry in self._on_the_way), None)

    def wait_until_empty(self, timeout: float | None) -> bool:
        """Wait until nothing waits and all is acknowledged; return whether it is so."""
        with self.moved:
            return self.moved.wait_for(lambda: self.is_empty, timeout)

    def wake(self) -> None:
        """Let `take` return."""
        self._signals.put(None)
        with self._moving():
            pass

    def close(self) -> None:
        """Take no event any more; those that wait go to the spool, or are dropped and counted."""
        with self._moving():
            if self._closed:
                return
            self._closed = True
            self._accept()
            on_the_way, self._on_the_way = self._on_the_way, {}
            waiting, self._waiting = self._waiting, deque()
            self._bytes, self._ended = 0, True
            left = [*on_the_way, *waiting]
            kept = 0 if self._spool is None else self._leave_in_files(self._spool, left)
            self._in_files = 0
            for entry in left[kept:]:
                if entry.segment is None:
                    self._drop(entry, f"{_CLOSED} while the broker was away")
            self._accept()

    def leave_to_parent(self) -> None:
        """In a process that was forked: all of this is the parent's, and its threads with their locks are not here."""
        receipts = [entry.receipt for entry in (*self._arrived, *self._waiting, *self._on_the_way)]
        if self._spool is not None:
            receipts += self._spool.leave_to_parent()
        for receipt in receipts:
            if receipt is not None:
                receipt.leave_to_parent()

    @contextlib.contextmanager
    def _moving(self) -> Iterator[None]:
        """Hold the lock. Who waits looks again after it; whoever wants to know of receipts is told without it."""
        with self.moved:
            try:
                yield
            finally:
                self._notify()
        while self._settled:
            self._settled.popleft().tell()

    def _notify(self) -> None:
        if not self._is_notifying:  # a signal handler within this: it wakes the same ones
            self._is_notifying = True
            try:
                self.moved.notify_all()
            finally:
                self._is_notifying = False
        for holds, tell in self._watchers.copy():
            if holds():
                tell()

    def _has_room_for(self, entry: Entry) -> bool:
        """Wait for room, at most so long as is said; drop the event where there is none then."""
        try:
            with self._moving():
                self._accept()
                if self._blocks:
                    self.moved.wait_for(lambda: not self.is_full, self.max_block_s)
                if not self.is_full or self.max_block_s is None:
                    return True
                self._accepted_count += 1
                self._drop(entry, _NO_ROOM)
                return False
        except BaseException:
            # Ctrl-C ends the wait, and must not take the event with it.
            if entry.receipt is not None and not entry.receipt.done:
                self._arrived.append(entry)
            raise

    def _await_arrival(self, timeout: float) -> None:
        self._idle = True
        try:
            # In this order: who leaves an event after this look sees that it has to signal.
            if not self._arrived and not self._waiting and not self._spool:
                self._signals.get(timeout=timeout)
            while True:
                self._signals.get_nowait()
        except queue.Empty:
            pass
        finally:
            self._idle = False

    def _accept(self) -> None:
        """Decide about what the agent's threads left, oldest first."""
        if self._is_accepting:
            return  # a signal handler within this very loop, which goes on after it
        self._is_accepting = True
        try:
            while self._arrived:
                entry = self._arrived[0]
                if not entry.is_placed:
                    self._place(entry)
                    entry.is_placed = True
                    self._accepted_count += 1
                self._arrived.popleft()
            self._arrived_bytes = 0
            if self._ended:
                self._drop_late()
        finally:
            self._is_accepting = False

    def _drop_late(self) -> None:
        """Drop what was placed while a signal handler closed everything."""
        while self._waiting:
            self._drop(self._waiting.popleft(), _CLOSED)
        self._bytes = self._in_files = 0

    def _place(self, entry: Entry) -> None:
        if self._ended:
            self._drop(entry, _CLOSED)
            return
        has_files = bool(self._spool)
        size = len(entry.record)
        if self._spool is not None and (has_files or (self._waiting and self._bytes + size > self._max_bytes)):
            if self._to_file(self._spool, entry):
                return
            if has_files:
                # In memory it would overtake those in files.
                self._drop(entry, _UNWRITTEN)
                return
        while self._drops_oldest and self._waiting and self._bytes + size > self._max_bytes:
            oldest = self._waiting.popleft()
            self._bytes -= len(oldest.record)
            self._drop(oldest, _NO_ROOM)
        self._waiting.append(entry)
        self._bytes += size

    def _to_file(self, spool: Spool, entry: Entry) -> bool:
        is_first = not spool
        try:
            spool.append(InFile(entry.event_id, entry.key, entry.record), entry.receipt)
        except OSError as error:
            self.failed += 1
            if not self._spool_fails:
                logger.error("the spool cannot be written, events are dropped until it can: %s", error)
            self._spool_fails = True
            return False
        if is_first:
            logger.warning("the buffer is full: events go to the spool until the broker has taken those before them")
        self._spool_fails = False
        self.spooled += 1
        self._in_files += 1
        return True

    def _from_file(self, spool: Spool) -> None:
        segment = spool.next_segment()
        if segment is None:
            return
        events = segment.read()
        for event in events:
            receipt = segment.receipts.pop(event.event_id, None)
            entry = Entry(event.event_id, event.key, event.record, receipt, segment)
            self._waiting.append(entry)
            self._bytes += len(entry.record)
        self._in_files -= segment.written
        self.failed += segment.damage is not None or segment.is_left
        if not segment.is_left:
            self.dropped += max(0, segment.written - len(events))
        for receipt in list(segment.receipts.values()):
            lost = NotSent(f"event {receipt.event_id} cannot be read any more in {segment.path}")
            receipt.settle(error=Spooled(_IN_SPOOL) if segment.is_left else lost)
            self._settled.append(receipt)

    def _leave_in_files(self, spool: Spool, left: list[Entry]) -> int:
        """Return how many of them, from the first on, are in files then; those that were read from one always are."""
        kept = spool.put_before([InFile(entry.event_id, entry.key, entry.record) for entry in left])
        self.failed += kept < len(left)
        self.spooled += sum(entry.segment is None for entry in left[:kept])
        unwritten = {entry.segment for entry in left[kept:]}
        for segment in {entry.segment for entry in left[:kept]} - unwritten:
            if segment is not None:
                segment.put_away()  # its events were just written anew
        for number, entry in enumerate(left):
            if entry.receipt is not None and (number < kept or entry.segment is not None):
                entry.receipt.settle(error=Spooled(_IN_SPOOL))
                self._settled.append(entry.receipt)
        for segment in spool.unread():
            for receipt in list(segment.receipts.values()):
                receipt.settle(error=Spooled(_IN_SPOOL))
                self._settled.append(receipt)
        spool.close()
        return kept

    def _settle(
        self,
        entry: Entry,
        *,
        partition: int | None = None,
        offset: int | None = None,
        append_time: int | None = None,
        error: NotSent | None = None,
    ) -> None:
        if entry.segment is not None:
            entry.segment.settle()
        if entry.receipt is not None:
            entry.receipt.settle(partition=partition, offset=offset, append_time=append_time, error=error)
            self._settled.append(entry.receipt)

    def _drop(self, entry: Entry, why: str) -> None:
        error = Dropped(f"event {entry.event_id} was dropped: {why}")
        if not self.dropped:
            logger.warning("%s; further ones are only counted (stats.dropped)", error)
        self.dropped += 1
        self._settle(entry, error=error)

"""Events between the agent's threads and the sending one: bounded, in order, and with a policy for when it is full."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, TypeAlias

from loopwarden.gateway.errors import Dropped, GatewayError, Refused, Spooled
from loopwarden.gateway.receipts import Receipt
from loopwarden.gateway.spool import Segment, Spool
from loopwarden.gateway.spool import Spooled as InFile

WhenAway: TypeAlias = Literal["block", "drop_oldest", "spool"]

MAX_ON_THE_WAY: Final = 100
"""Events sent and not acknowledged. When the connection breaks all of them are sent again, and the judge recognises a
redelivery among the newest 128 events of a run."""

logger = logging.getLogger("loopwarden.gateway")


class Entry:
    """One event that waits, or is on its way."""

    __slots__ = ("attempts", "event_id", "key", "receipt", "record", "segment", "sent_at")

    def __init__(self, event_id: str, key: bytes, record: bytes, receipt: Receipt | None, segment: Segment | None):
        self.event_id = event_id
        self.key = key
        self.record = record
        self.receipt = receipt
        """None where nobody holds it any more."""
        self.segment = segment
        """The file it was read from."""
        self.attempts = 0
        self.sent_at = 0.0


class Buffer:
    """Events that wait, oldest first, in memory and then in files; and those on their way.

    An agent's thread takes no lock that the sending thread may hold while it waits for the interpreter: that would cost
    a call milliseconds. It leaves its events in a queue (`_arrived`); only where the policy has to decide it takes
    `moved`.

    Attributes:
        moved: Notified whenever something changes; the lock of all the rest, and of the receipts.
    """

    def __init__(
        self,
        when_away: WhenAway,
        max_bytes: int,
        spool_folder: tuple[Path, str] | None = None,
        *,
        max_block_s: float | None = None,
        blocks: bool = True,
    ) -> None:
        self.moved = threading.Condition()
        self.sent = self.acknowledged_count = self.dropped = self.spooled = self.failed = 0
        self._when_away = when_away
        self._max_bytes = max_bytes
        self._max_block_s = max_block_s
        self._blocks = blocks
        self.blocks_when_full = when_away == "block"
        self._spool = None if spool_folder is None else Spool(*spool_folder)
        self._arrived: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._arriving = threading.Lock()
        # Sums that only grow, each with one writer at a time: their differences are what lies in the queue.
        self._arrived_count = self._arrived_bytes = self._accepted_count = self._accepted_bytes = 0
        self._waiting: deque[Entry] = deque()
        self._bytes = 0
        self._in_files = 0
        self._on_the_way: dict[Entry, None] = {}
        self._in_file: weakref.WeakValueDictionary[str, Receipt] = weakref.WeakValueDictionary()
        self._closed = False

    @property
    def is_full(self) -> bool:
        """Whether the next event has to wait with `when_away="block"`."""
        return self._bytes_waiting >= self._max_bytes and not self._closed

    @property
    def count(self) -> int:
        """Events that wait or are on their way."""
        arrived = self._arrived_count - self._accepted_count
        return arrived + len(self._waiting) + len(self._on_the_way) + self._in_files

    @property
    def _bytes_waiting(self) -> int:
        return self._arrived_bytes - self._accepted_bytes + self._bytes

    def put(self, event_id: str, key: bytes, record: bytes) -> Receipt:
        """Add an event behind all others."""
        receipt = Receipt(event_id, self.moved)
        entry = Entry(event_id, key, record, receipt, None)
        with self._arriving:
            self.sent += 1
            if not self._closed and not self._spool and self._bytes_waiting + len(record) <= self._max_bytes:
                self._arrived_count += 1
                self._arrived_bytes += len(record)
                self._arrived.put(entry)
                return receipt
        dropped: list[Entry] = []
        with self.moved:
            self._accept()
            if self._closed:
                dropped.append(entry)
            elif not self._put_elsewhere(entry, dropped):
                self._waiting.append(entry)
                self._bytes += len(record)
            self._arrived.put(None)
            self.moved.notify_all()
        self._give_up(dropped, "the gateway was closed" if self._closed else "there was no room")
        return receipt

    def wait_for_room(self) -> None:
        """Wait until `is_full` does not hold, or for `max_block_s`."""
        with self.moved:
            self.moved.wait_for(lambda: not self.is_full, self._max_block_s)

    def take(self, timeout: float) -> list[Entry]:
        """Take the oldest events, as many as may be on their way; wait for some at most so many seconds."""
        with self.moved:
            self.moved.wait_for(lambda: len(self._on_the_way) < MAX_ON_THE_WAY, timeout)
            self._accept()
            is_idle = not self._waiting and not self._spool
        if is_idle:
            self._await_arrival(timeout)
        with self.moved:
            self._accept()
            if not self._waiting and self._spool:
                self._from_file()
            taken = []
            while self._waiting and len(self._on_the_way) < MAX_ON_THE_WAY:
                entry = self._waiting.popleft()
                self._bytes -= len(entry.record)
                entry.sent_at = time.monotonic()
                self._on_the_way[entry] = None
                taken.append(entry)
            self.moved.notify_all()
            return taken

    def acknowledged(self, entry: Entry, partition: int, offset: int, append_time: int) -> None:
        """The broker has an event."""
        with self.moved:
            if entry not in self._on_the_way:
                return
            self.acknowledged_count += 1
            self._settled(entry)
            if entry.receipt is not None:
                # A retry that the broker had stored already may be answered without an offset.
                known = offset if offset >= 0 else None
                entry.receipt.settle(partition=partition, offset=known, append_time=append_time)
            self.moved.notify_all()

    def refused(self, entry: Entry, error: BaseException) -> None:
        """The broker will never take an event."""
        with self.moved:
            if entry not in self._on_the_way:
                return
            self.failed += 1
            self._settled(entry)
            self.moved.notify_all()
        logger.error("the broker refused event %s: %r", entry.event_id, error)
        if entry.receipt is not None:
            entry.receipt.settle(error=Refused(f"the broker refused event {entry.event_id}: {error!r}"))

    def send_again(self) -> None:
        """What was on its way waits again, before all others and in its order."""
        with self.moved:
            entries, self._on_the_way = list(self._on_the_way), {}
            self._waiting.extendleft(reversed(entries))
            self._bytes += sum(len(entry.record) for entry in entries)
            self.moved.notify_all()

    def oldest_on_the_way(self) -> float | None:
        """When the oldest event that is not acknowledged was sent (`time.monotonic`)."""
        with self.moved:
            return next((entry.sent_at for entry in self._on_the_way), None)

    def wait_until_empty(self, timeout: float | None) -> bool:
        """Wait until nothing waits and all is acknowledged; return whether it is so."""
        with self.moved:
            return self.moved.wait_for(lambda: not self.count, timeout)

    def wake(self) -> None:
        """Let `take` return."""
        self._arrived.put(None)
        with self.moved:
            self.moved.notify_all()

    def close(self) -> None:
        """Take no event any more; those that wait go to the spool, or are dropped and counted."""
        with self.moved:
            if self._closed:
                return
            with self._arriving:
                self._closed = True
            self._accept()
            left = [*self._on_the_way, *self._waiting]
            self._on_the_way, self._bytes = {}, 0
            self._waiting.clear()
            kept = self._spool is not None and self._leave_in_files(self._spool, left)
            self._in_files = 0
            self.moved.notify_all()
        if kept:
            for entry in left:
                if entry.receipt is not None:
                    entry.receipt.settle(error=Spooled("the event lies in the spool; a later gateway there sends it"))
        else:
            self._give_up(left, "the gateway was closed while the broker was away")

    def _await_arrival(self, timeout: float) -> None:
        with contextlib.suppress(queue.Empty):
            entry = self._arrived.get(timeout=timeout)
            if entry is not None:
                with self.moved:
                    self._accept_one(entry)

    def _accept(self) -> None:
        """Take what the agent's threads left in the queue."""
        with contextlib.suppress(queue.Empty):
            while True:
                entry = self._arrived.get_nowait()
                if entry is not None:
                    self._accept_one(entry)

    def _accept_one(self, entry: Entry) -> None:
        self._waiting.append(entry)
        self._bytes += len(entry.record)
        self._accepted_count += 1
        self._accepted_bytes += len(entry.record)

    def _put_elsewhere(self, entry: Entry, dropped: list[Entry]) -> bool:
        """Whether the entry is taken care of, and does not have to wait in memory."""
        if self._spool and self._to_file(entry):
            return True
        is_full = bool(self._waiting) and self._bytes + len(entry.record) > self._max_bytes
        return is_full and self._make_room(entry, dropped)

    def _make_room(self, entry: Entry, dropped: list[Entry]) -> bool:
        """Do what the policy says when it is full; return whether the entry is taken care of with that."""
        if self._when_away == "spool":
            return self._to_file(entry) or self._drop_oldest(entry, dropped)
        if self._when_away == "drop_oldest":
            return self._drop_oldest(entry, dropped)
        if self._blocks:
            self.moved.wait_for(lambda: not self.is_full, self._max_block_s)
            if self._closed or self.is_full:
                dropped.append(entry)
                return True
        return False

    def _drop_oldest(self, entry: Entry, dropped: list[Entry]) -> bool:
        while self._waiting and self._bytes + len(entry.record) > self._max_bytes:
            oldest = self._waiting.popleft()
            self._bytes -= len(oldest.record)
            dropped.append(oldest)
        return False

    def _to_file(self, entry: Entry) -> bool:
        assert self._spool is not None
        try:
            self._spool.append(InFile(entry.event_id, entry.key, entry.record))
        except OSError as error:
            self.failed += 1
            logger.error("the spool cannot be written, the oldest events are dropped instead: %s", error)
            return False
        if not self._in_files:
            logger.warning("the buffer is full: events go to the spool until the broker has taken those before them")
        self.spooled += 1
        self._in_files += 1
        if entry.receipt is not None:
            self._in_file[entry.event_id] = entry.receipt
        return True

    def _from_file(self) -> None:
        assert self._spool is not None
        try:
            segment = self._spool.next_segment()
        except OSError as error:
            self.failed += 1
            logger.error("a file of the spool cannot be read: %s", error)
            return
        for event in segment.events if segment is not None else ():
            receipt = self._in_file.pop(event.event_id, None)
            entry = Entry(event.event_id, event.key, event.record, receipt, segment)
            self._waiting.append(entry)
            self._bytes += len(entry.record)
            self._in_files = max(0, self._in_files - 1)

    def _settled(self, entry: Entry) -> None:
        del self._on_the_way[entry]
        if entry.segment is not None:
            entry.segment.settle()

    def _leave_in_files(self, spool: Spool, left: list[Entry]) -> bool:
        try:
            spool.put_before([InFile(entry.event_id, entry.key, entry.record) for entry in left])
            for segment in {entry.segment for entry in left if entry.segment is not None}:
                segment.path.unlink(missing_ok=True)  # its events were just written anew
            self.spooled += sum(entry.segment is None for entry in left)
            spool.close()
        except OSError as error:
            self.failed += 1
            logger.error("the spool cannot be written: %s", error)
            return False
        return True

    def _give_up(self, entries: Iterable[Entry], why: str) -> None:
        for entry in entries:
            error: GatewayError = Dropped(f"event {entry.event_id} was dropped: {why}")
            if not self.dropped:
                logger.warning("%s; further ones are only counted (stats.dropped)", error)
            self.dropped += 1
            if entry.segment is not None:
                entry.segment.settle()
            if entry.receipt is not None:
                entry.receipt.settle(error=error)

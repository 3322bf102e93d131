"""Events in files, while the broker is away: in their order, and sent by a later process if this one ends before.

A spool is a folder with one folder for each process, which holds a lock on it while it lives; the folders of processes
that are gone are taken over, oldest first. A file holds at most 100 events, so that sending one again after a crash
repeats no event that is older than the 128 of its run among which the judge recognises redeliveries.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
import weakref
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgpack

from loopwarden.gateway.receipts import Receipt

EVENTS_A_FILE: Final = 100

_FIRST: Final = 10**9
"""What is left in memory at the end is older than what is in files, so numbers must be free below the first."""

_SUFFIX: Final = ".events"
_UNFINISHED: Final = ".unfinished"
_DAMAGED: Final = ".damaged"
_LOCK: Final = "lock"
_NAME: Final = "gateway-"
_DIGITS: Final = 20
"""Of the time in a folder's name, in nanoseconds: names sort as their folders were made."""

logger = logging.getLogger("loopwarden.gateway")


class Spooled(NamedTuple):
    """One event in a file."""

    event_id: str
    key: bytes
    record: bytes


class Segment:
    """One file of events, deleted when all of them are settled, or set aside where it cannot be read.

    Attributes:
        path: The file.
        written: Events that this process wrote to it.
        receipts: Those of them that somebody holds, by event id.
        damage: What is wrong with what it says; None while nothing is.
        is_left: Whether it could not be read now, and is left as it is to a later process.
    """

    __slots__ = ("damage", "is_left", "path", "receipts", "unsettled", "written")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        self.receipts: weakref.WeakValueDictionary[str, Receipt] = weakref.WeakValueDictionary()
        self.damage: str | None = None
        self.is_left = False
        self.unsettled = 0

    def read(self) -> list[Spooled]:
        """Return its events as far as they can be read, and note the damage where that is not to the end."""
        try:
            events, damage = _read(self.path)
        except OSError as error:
            logger.error("a file of the spool cannot be read, a later gateway tries it again: %s", error)
            self.is_left = True
            return []
        # Half an event of this process's own behind the whole ones was never promised to anyone.
        if damage is not None and not 0 < self.written <= len(events):
            self.damage = damage
            logger.error("%s: is no file of events from its event %d on: %s", self.path, len(events) + 1, damage)
        self.unsettled = len(events)
        if not events:
            self.put_away()
        return events

    def settle(self) -> None:
        """One more of its events is settled."""
        self.unsettled -= 1
        if self.unsettled <= 0:
            self.put_away()

    def put_away(self) -> None:
        """Delete the file, or set it aside where it is damaged."""
        try:
            if self.damage is None:
                self.path.unlink(missing_ok=True)
            else:
                self.path.rename(self.path.with_suffix(_DAMAGED))
        except OSError as error:
            logger.error("%s: its events are done with, but it cannot be put away: %s", self.path, error)


class Spool:
    """The events of one gateway that lie in files, oldest first. Not safe for several threads: the buffer's lock is."""

    def __init__(self, folder: Path) -> None:
        """Nothing is touched before `open`."""
        self.folder = folder
        self._own = folder
        self._folders: list[Path] = []
        self._locks: list[int] = []
        self._segments: deque[Segment] = deque()
        self._file: int | None = None
        self._end = 0
        self._number = _FIRST

    def open(self) -> None:
        """Make a folder of its own, and take over those of processes that are gone; once.

        Raises:
            OSError: the folder cannot be written.
        """
        if self._folders:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        others = sorted((path for path in self.folder.iterdir() if path.is_dir()), key=_age)
        # Behind all others, even where the clock was put back.
        made_at = max([time.time_ns(), *(_age(path)[1] + 1 for path in others)])
        self._own = self.folder / f"{_NAME}{made_at:0{_DIGITS}}-{os.getpid()}-{os.urandom(4).hex()}"
        self._own.mkdir()
        self._folders, self._locks = [self._own], [_lock(self._own)]
        for other in others:
            with contextlib.suppress(OSError):
                self._locks.append(_lock(other))
                self._folders.append(other)
                self._segments.extend(Segment(path) for path in sorted(other.glob(f"*{_SUFFIX}")))

    def __bool__(self) -> bool:
        return bool(self._segments)

    def append(self, event: Spooled, receipt: Receipt | None) -> None:
        """Write one event. Raises OSError where that fails; nothing of it is in the file then."""
        packed = msgpack.packb(event)
        if self._file is None:
            path = self._own / f"{self._number:012d}{_SUFFIX}"
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            self._end = 0
            self._number += 1
            self._segments.append(Segment(path))
        segment = self._segments[-1]
        try:
            _write(self._file, packed)
        except OSError:
            self._cut_back(segment)
            raise
        self._end += len(packed)
        segment.written += 1
        if receipt is not None:
            segment.receipts[event.event_id] = receipt
        if segment.written == EVENTS_A_FILE:
            self._finish_file()

    def next_segment(self) -> Segment | None:
        """Take the oldest file; None where there is none."""
        if not self._segments:
            return None
        if len(self._segments) == 1:
            self._finish_file()
        return self._segments.popleft()

    def unread(self) -> Sequence[Segment]:
        """Return the files that were not taken."""
        return tuple(self._segments)

    def put_before(self, events: Sequence[Spooled]) -> int:
        """Write events that are older than all in own files: those that are in memory at the end.

        Returns:
            How many of them, from the first on, are written: fewer than all where the folder cannot be written.
        """
        count = -(-len(events) // EVENTS_A_FILE)
        for number in range(count):
            path = self._own / f"{_FIRST - count + number:012d}{_SUFFIX}"
            unfinished = path.with_suffix(_UNFINISHED)
            first = number * EVENTS_A_FILE
            try:
                unfinished.write_bytes(b"".join(msgpack.packb(each) for each in events[first : first + EVENTS_A_FILE]))
                unfinished.rename(path)
            except OSError as error:
                logger.error("the spool cannot be written: %s", error)
                with contextlib.suppress(OSError):
                    unfinished.unlink(missing_ok=True)
                return first
        return len(events)

    def close(self) -> None:
        """Give the folders up; those without events are removed."""
        self._finish_file()
        for folder, lock in zip(self._folders, self._locks, strict=True):
            with contextlib.suppress(OSError):
                if not any(folder.glob(f"*{_SUFFIX}")):
                    (folder / _LOCK).unlink(missing_ok=True)
                    folder.rmdir()
            os.close(lock)
        self._folders, self._locks = [], []

    def leave_to_parent(self) -> list[Receipt]:
        """In a process that was forked: touch nothing, the files are the parent's. Return the receipts that it has."""
        for descriptor in [*self._locks, *([] if self._file is None else [self._file])]:
            os.close(descriptor)  # the parent has its own, and with it the lock
        return [receipt for segment in self._segments for receipt in list(segment.receipts.values())]

    def _cut_back(self, segment: Segment) -> None:
        assert self._file is not None
        if segment.written == 0:
            self._segments.pop()
            self._finish_file()
            segment.put_away()
            return
        try:
            os.ftruncate(self._file, self._end)
        except OSError:
            self._finish_file()  # another begins with the next event; this one is read up to the half event

    def _finish_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _age(folder: Path) -> tuple[bool, int, str]:
    """Return what folders of processes are sorted by."""
    made_at = folder.name.removeprefix(_NAME).partition("-")[0]
    if len(made_at) == _DIGITS and made_at.isdecimal():
        return True, int(made_at), folder.name
    # Once they were named by chance: all of those are older.
    try:
        return False, folder.stat().st_mtime_ns, folder.name
    except OSError:
        return False, 0, folder.name


def _lock(folder: Path) -> int:
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _write(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _read(path: Path) -> tuple[list[Spooled], str | None]:
    """Return the events up to what is none, and what is wrong with the rest."""
    content = path.read_bytes()
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(content)
    events: list[Spooled] = []
    end = 0
    try:
        for each in unpacker:
            events.append(_event(each))
            end = unpacker.tell()
    except (msgpack.UnpackException, ValueError, TypeError) as error:
        return events, str(error) or type(error).__name__
    return events, None if end == len(content) else "it ends within an event, as after a kill"


def _event(found: Any) -> Spooled:
    if isinstance(found, (list, tuple)) and [type(part) for part in found] == [str, bytes, bytes]:
        return Spooled(*found)
    raise ValueError(f"must be an id, a key and a record, got a value of type {type(found).__name__}")

"""Events in files, while the broker is away: in their order, and sent by a later process if this one ends before.

A spool is a folder with one folder for each process, which holds a lock on it while it lives; the folders of processes
that are gone are taken over. A file holds at most 100 events, so that sending one again after a crash repeats no event
that is older than the 128 of its run among which the judge recognises redeliveries.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import deque
from pathlib import Path
from typing import IO, Final, NamedTuple

import msgpack

EVENTS_A_FILE: Final = 100

_FIRST: Final = 10**9
"""What is left in memory at the end is older than what is in files, so numbers must be free below the first."""

_SUFFIX: Final = ".events"
_LOCK: Final = "lock"


class Spooled(NamedTuple):
    """One event in a file."""

    event_id: str
    key: bytes
    record: bytes


class Segment:
    """One file of events, deleted when all of them are acknowledged."""

    __slots__ = ("events", "path", "unsettled")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events = _read(path)
        self.unsettled = len(self.events)

    def settle(self) -> None:
        """One more of its events is settled."""
        self.unsettled -= 1
        if self.unsettled <= 0:
            self.path.unlink(missing_ok=True)


class Spool:
    """The events of one gateway that lie in files, oldest first. Not safe for several threads: the buffer's lock is."""

    def __init__(self, folder: Path, name: str) -> None:
        """Raises OSError where the folder cannot be written."""
        self._own = folder / name
        self._own.mkdir(parents=True, exist_ok=True)
        self._locks = [_lock(self._own)]
        self._segments: deque[Path] = deque()
        self._file: IO[bytes] | None = None
        self._in_file = 0
        self._written = _FIRST
        self._taken: list[Path] = []
        for other in sorted(path for path in folder.iterdir() if path.is_dir() and path != self._own):
            with contextlib.suppress(OSError):
                self._locks.append(_lock(other))
                self._taken.append(other)
                self._segments.extend(sorted(other.glob(f"*{_SUFFIX}")))

    def __bool__(self) -> bool:
        return bool(self._segments) or self._in_file > 0

    def append(self, event: Spooled) -> None:
        """Write one event. Raises OSError where that fails."""
        if self._file is None:
            path = self._own / f"{self._written:012d}{_SUFFIX}"
            self._file = path.open("wb")
            self._written += 1
            self._segments.append(path)
        self._file.write(msgpack.packb(event))
        self._file.flush()
        self._in_file += 1
        if self._in_file == EVENTS_A_FILE:
            self._finish_file()

    def next_segment(self) -> Segment | None:
        """Take the oldest file."""
        while self._segments:
            if len(self._segments) == 1:
                self._finish_file()
            segment = Segment(self._segments.popleft())
            if segment.events:
                return segment
            segment.settle()
        return None

    def put_before(self, events: list[Spooled]) -> None:
        """Write events that are older than all in files: those that are in memory at the end."""
        count = -(-len(events) // EVENTS_A_FILE)
        for number in range(count):
            path = self._own / f"{_FIRST - count + number:012d}{_SUFFIX}"
            part = events[number * EVENTS_A_FILE : (number + 1) * EVENTS_A_FILE]
            path.write_bytes(b"".join(msgpack.packb(event) for event in part))

    def close(self) -> None:
        """Give the folders up; those without events are removed."""
        self._finish_file()
        for folder, lock in zip([self._own, *self._taken], self._locks, strict=True):
            if not any(folder.glob(f"*{_SUFFIX}")):
                (folder / _LOCK).unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    folder.rmdir()
            os.close(lock)

    def _finish_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._in_file = 0


def _lock(folder: Path) -> int:
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _read(path: Path) -> list[Spooled]:
    # A process that was killed may have left half an event at the end: it was never promised to anyone.
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(path.read_bytes())
    events = []
    with contextlib.suppress(msgpack.UnpackException, ValueError, TypeError):
        for each in unpacker:
            events.append(Spooled(*each))  # noqa: PERF401 - what was read before the damage counts
    return events

"""A file of runs that is still being written: what is new in it, whenever one asks.

Most grow by lines. A document is written anew as a whole, and a database changes; their events are told apart by their
ids. A file that is replaced, or cut off, is read from its beginning, and what was there before is not told again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from loopwarden.importers import source
from loopwarden.importers.contract import Checked, CheckedItem, check
from loopwarden.importers.copies import CopiedCalls
from loopwarden.importers.document import is_document
from loopwarden.importers.formats import FORMATS, Format, read_events, read_growing
from loopwarden.importers.items import BadLine, CaughtUp, InputError, Recorded
from loopwarden.importers.opencode_storage import is_storage, parts_since
from loopwarden.importers.rows import Row, rows
from loopwarden.importers.source import Line, open_source

_HEAD_BYTES: Final = 64 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"

_A_DAY_MS: Final = 24 * 3600 * 1000
"""After a day without an event a run begins anew: what is older says nothing about it. (design.md, "How a call...".)"""

_Items: TypeAlias = Iterator[CheckedItem]
_Stamp: TypeAlias = tuple[int, ...] | None


class GrowingFile:
    """A file that is read on as it grows. It need not be there yet.

    Args:
        path: The file, or opencode's database.
        from_start: Whether what is in it now is new, too. Else it is only read so that what follows is understood.
        expected: The formats that it may have.
        sought: Whether it was only come upon in a search; see `read_events`.
        copies: Tells copies of the calls of other files; see `read_events`.

    Attributes:
        name: What to call it in messages.
        size: None: it is not known how much there will be.
        new: Whether the item that was returned last was not there when this began.
    """

    size: None = None

    def __init__(
        self,
        path: Path,
        from_start: bool = True,
        expected: tuple[Format, ...] = FORMATS,
        sought: bool = False,
        copies: CopiedCalls | None = None,
    ) -> None:
        self.name = str(path)
        self._path = path
        self._expected = expected
        self._sought = sought
        self._copies = copies
        self._began_ms = 0 if from_start else time.time_ns() // 1_000_000
        self._known_bytes = 0 if from_start else _size(path)
        self.new = self._known_bytes == 0
        self._read_as: _Stamp = None if from_start else self._stamp()
        self._seen: set[tuple[object, ...]] = set()
        self._again = False
        """Whether what is read may have been read before."""

    @property
    def position(self) -> int:
        """How much is read of what is not known how much it is."""
        return 0

    def changed(self) -> bool:
        """Whether the file changed since it was read to its end, or since this began."""
        return self._stamp() != self._read_as

    def items(self) -> _Items:
        """Return what is in the file, without an end: `CaughtUp` stands where there is no more for now.

        Raises:
            InputError: it has another format than expected, or can no longer be read.
        """
        while True:
            for item in self._of_one_file():
                if isinstance(item, CaughtUp):
                    self.new = True
                    yield item
                    continue
                key = _key(item)
                if not (self._again and key in self._seen):
                    self._seen.add(key)
                    yield item
            self._again = True

    def _of_one_file(self) -> _Items:
        """The items until the file is replaced by another one."""
        while not (head := self.head):
            yield self._caught_up(0, self._stamp())
        if is_storage(self._path):
            yield from check(read_growing(self.name, self._rows_of_database(), self._expected, False, self._copies))
        elif head.startswith(_GZIP_MAGIC) or self._path.suffix == ".json" or is_document(head):
            yield from self._documents()
        else:
            yield from check(
                read_growing(self.name, rows(self._lines(), self.name), self._expected, self._sought, self._copies)
            )

    def _lines(self) -> Iterator[Line | BadLine | CaughtUp]:
        """The lines until the file is replaced. In between it is not held open: there may be thousands of them."""
        line = _LineSoFar()
        position = 0
        ours: tuple[int, int] | None = None
        gone = False
        while True:
            stamp = self._stamp()
            try:
                stream = self._path.open("rb")
            except OSError:
                # What was read of it stays read, and another one may come.
                gone = ours is not None
                yield self._caught_up(line.number, stamp)
                continue
            with stream:
                status = os.fstat(stream.fileno())
                if gone or ours not in (None, (status.st_ino, status.st_dev)) or status.st_size < position:
                    return
                ours = (status.st_ino, status.st_dev)
                stream.seek(position)
                while piece := stream.readline(source.MAX_LINE_BYTES):
                    position += len(piece)
                    if self._known_bytes and position > self._known_bytes:
                        self._known_bytes = 0
                        yield CaughtUp(line.number)
                    whole = line.add(piece)
                    if whole is not None:
                        yield whole
            self._known_bytes = 0
            yield self._caught_up(line.number, stamp)

    def _documents(self) -> _Items:
        """The document as often as it is written anew."""
        doubtful: _Stamp = None
        while True:
            stamp = self._stamp()
            if stamp is None or (stamp == self._read_as and stamp != doubtful):
                yield self._caught_up(0, stamp)
                continue
            try:
                found = self._document()
            except InputError:
                if stamp == doubtful:
                    raise
                found = None
            if stamp != doubtful and (found is None or any(isinstance(item, BadLine) for item in found)):
                # It may be half written.
                doubtful = stamp
                yield CaughtUp(0)
                continue
            if found is not None:
                doubtful = None
                for item in found:
                    self.new = not isinstance(item, Checked) or item.event.ts >= self._began_ms
                    yield item
            self._again = True
            self._read_as = stamp
            yield CaughtUp(0)

    def _document(self) -> list[CheckedItem]:
        with open_source(self._path) as opened:
            return list(check(read_events(opened, self._expected, self._sought, self._copies)))

    def _rows_of_database(self) -> Iterator[Row | BadLine | CaughtUp]:
        newest = max(0, self._began_ms - _A_DAY_MS)
        at_newest: set[str] = set()
        number = 0
        in_context = self._began_ms > 0
        while True:
            self._read_as = self._stamp()
            for part, updated in parts_since(self._path, newest):
                if updated == newest and part["id"] in at_newest:
                    continue
                if updated != newest:
                    newest = updated
                    at_newest.clear()
                at_newest.add(part["id"])
                if in_context and updated >= self._began_ms:
                    in_context = False
                    yield CaughtUp(number)
                number += 1
                yield Row(number, part)
            yield CaughtUp(number)

    def _caught_up(self, line: int, stamp: _Stamp) -> CaughtUp:
        """The end for now. The stamp is of before it was read: what came meanwhile is a change."""
        self._read_as = stamp
        return CaughtUp(line)

    @property
    def head(self) -> bytes:
        """Its first bytes, as they are now; none where it is not there."""
        try:
            with self._path.open("rb") as stream:
                return stream.read(_HEAD_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read: {error.strerror}") from None

    def _stamp(self) -> _Stamp:
        """What changes with the file. A database writes its newest pages beside it."""
        stamp: list[int] = []
        beside = [self._path.with_name(f"{self._path.name}-wal")] if self._path.suffix == ".db" else []
        for path in (self._path, *beside):
            try:
                status = path.stat()
            except OSError:
                continue
            stamp += (status.st_ino, status.st_size, status.st_mtime_ns)
        return tuple(stamp) or None


def _key(item: CheckedItem) -> tuple[object, ...]:
    """What is the same when an item is read again."""
    if isinstance(item, Checked):
        return item.wire.get("run_id"), item.event.event_id
    return (item.line, *map(str, item.value.values())) if isinstance(item, Recorded) else item


class _LineSoFar:
    """The line that is being read, of which there may be only a part yet.

    Attributes:
        number: Of the last line that was whole.
    """

    def __init__(self) -> None:
        self.number = 0
        self._length = 0
        self._pieces: list[bytes] = []

    def add(self, piece: bytes) -> Line | BadLine | None:
        """Add what was read; return the line where it is whole with that."""
        self._length += len(piece)
        too_long = self._length > source.MAX_LINE_BYTES
        if too_long:
            self._pieces.clear()
        else:
            self._pieces.append(piece)
        if not piece.endswith(b"\n"):
            return None
        text = b"".join(self._pieces)
        self.number += 1
        self._length = 0
        self._pieces.clear()
        if too_long:
            return BadLine(self.number, source.LINE_TOO_LONG)
        return Line(self.number, text.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n"), True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

"""A file of runs, or standard input, as numbered lines; gzip is recognised by its first bytes."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from loopwarden.importers.items import BadLine, InputError
from loopwarden.importers.opencode_storage import LinesRead, is_storage, stored_lines

STDIN: Final = "-"

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""What one line may take of the memory. An event is at most 1 MiB; a session's entry may carry images besides."""

LINE_TOO_LONG: Final = f"a line must be at most {MAX_LINE_BYTES} bytes long: this one is left out"

_HEAD_BYTES: Final = 64 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"


class Line(NamedTuple):
    """One line, counted from 1, without its end. `whole` is False where the file stops before the line's end."""

    number: int
    text: bytes
    whole: bool


class Source:
    """An open file of runs. It is read once, line by line.

    Attributes:
        name: What to call it in messages.
        size: Its bytes, as they lie on disk; None where that is not known.
        head: Its first bytes, decompressed, some 8 to 128 KiB: to recognise what it is.
    """

    def __init__(self, name: str, raw: io.RawIOBase, size: int | None) -> None:
        self.name = name
        self.size = size
        self._raw = raw
        packed = io.BufferedReader(raw, _HEAD_BYTES)
        self._compressed = packed.peek(2)[:2] == _GZIP_MAGIC
        # Not buffered once more: of a file that is cut off, a buffer would lose what it had read before the cut.
        self._plain = gzip.GzipFile(fileobj=packed) if self._compressed else packed
        self.head = b""
        self._failure: Exception | None = None
        try:
            self.head = self._plain.peek(_HEAD_BYTES)
        except (OSError, EOFError, zlib.error) as error:
            # For `lines` to report; reading on would meet another one.
            self._failure = error

    @property
    def position(self) -> int:
        """How many of `size` bytes are read."""
        return self._raw.tell() if self.size is not None else 0

    def lines(self) -> Iterator[Line | BadLine]:
        """Return the lines. What cannot be decompressed ends them, with a `BadLine` that says so."""
        number = 0
        while True:
            number += 1
            try:
                if self._failure is not None:
                    raise self._failure
                text = self._plain.readline(MAX_LINE_BYTES + 1)
                if len(text) > MAX_LINE_BYTES:
                    yield BadLine(number, LINE_TOO_LONG)
                    while text and not text.endswith(b"\n"):
                        text = self._plain.readline(MAX_LINE_BYTES)
                    continue
            except EOFError:
                yield BadLine(number, "the compressed file ends in the middle: the rest of it is missing")
                return
            except (OSError, zlib.error) as error:
                cause = "the compressed file is damaged" if self._compressed else "cannot be read further"
                yield BadLine(number, f"{cause}: {error}")
                return
            if not text:
                return
            if number == 1:
                text = text.removeprefix(b"\xef\xbb\xbf")
            yield Line(number, text.rstrip(b"\r\n"), text.endswith(b"\n"))


@contextmanager
def open_source(path: Path | str) -> Iterator[Source]:
    """Open a file of runs, or the storage of opencode; `-` is standard input.

    Raises:
        InputError: there is no such file, or it must not be read.
    """
    if str(path) == STDIN:
        if sys.stdin is None:
            raise InputError("standard input: is closed")
        # Unbuffered, since a buffer would wait until it is full, and events may come slowly.
        with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stream:
            yield Source("standard input", stream, None)
        return
    if is_storage(Path(path)):
        yield Source(str(path), LinesRead(stored_lines(Path(path))), None)
        return
    try:
        file = Path(path).open("rb", buffering=0)  # noqa: SIM115 closed below; opening alone may fail as a mistake
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: must be a file, not a directory") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    with file:
        status = os.fstat(file.fileno())
        # A pipe or a device tells neither its size nor a position.
        size = status.st_size if status.st_size and file.seekable() else None
        yield Source(str(path), file, size)

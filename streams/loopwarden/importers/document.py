"""A file that is one JSON value over many lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from loopwarden.importers.items import BadLine
from loopwarden.importers.rows import Row
from loopwarden.importers.source import Line

MAX_DOCUMENT_BYTES: Final = 256 * 1024 * 1024
"""What one document may take of the memory, some four times over while it is read."""


def is_document(head: bytes) -> bool:
    """Whether a file's first bytes begin a value that goes on over the next lines: of JSON lines, none is so short."""
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)
    return len(first) == 2 and first[0].strip() in (b"{", b"[")


def document(lines: Iterable[Line | BadLine], file: str) -> Iterator[Row | BadLine]:
    """Return the one value that the lines of a file hold, or why there is none."""
    text = bytearray()
    for line in lines:
        if isinstance(line, BadLine):
            yield line
            return
        text += line.text + b"\n"
        if len(text) > MAX_DOCUMENT_BYTES:
            yield BadLine(line.number, f"a document must be at most {MAX_DOCUMENT_BYTES} bytes long")
            return
    try:
        yield Row(1, orjson.loads(text), file)
    except orjson.JSONDecodeError as error:
        where = "ends in the middle" if error.pos >= len(text.rstrip()) else f"is not JSON: {error.msg}"
        yield BadLine(error.lineno, f"the document that begins with the first line {where} (column {error.colno})")

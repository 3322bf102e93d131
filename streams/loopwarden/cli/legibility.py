"""A file that cannot be one of runs at all is refused in one line, instead of every line of it."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Final

import orjson

from loopwarden.importers import Source
from loopwarden.importers.growing import GrowingFile
from loopwarden.importers.items import InputError
from loopwarden.importers.opencode_storage import is_database

_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_TEXT: Final = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
"""Control characters that no text has, and that JSON forbids."""

_GZIP_MAGIC: Final = b"\x1f\x8b"


def must_be_text(source: Source | GrowingFile) -> None:
    """Look at a file's first bytes.

    Raises:
        InputError: they are UTF-16, or no text.
    """
    head = source.head
    if is_database(head):
        return
    if head.startswith(_UTF16) or _is_unmarked_utf16(head[:4]):
        raise InputError(
            f"{source.name}: must be UTF-8 text, but this is UTF-16; `iconv -f UTF-16 -t UTF-8` makes UTF-8 of it"
        )
    found = _NO_TEXT.search(head)
    # One line that is JSON makes it a file of runs that was damaged: the other lines are told by their numbers.
    if found is not None and not any(_is_json(line) for line in head.split(b"\n")):
        raise InputError(
            f"{source.name}: must be text (JSON lines in UTF-8), but this is binary:"
            f" no line at its beginning is JSON, and byte {found.start()} is 0x{found[0].hex()}{_no_gzip(source)}"
        )


def _is_unmarked_utf16(first: bytes) -> bool:
    even, odd = first[0::2], first[1::2]
    return (b"\0\0", True) in ((even, all(odd)), (odd, all(even)))


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _no_gzip(source: Source | GrowingFile) -> str:
    file = Path(source.name)
    if file.suffix != ".gz" or not file.is_file():
        return ""
    with file.open("rb") as stream:
        begins = stream.read(len(_GZIP_MAGIC))
    return "" if begins == _GZIP_MAGIC else "; its name ends in .gz, but it is not gzip"

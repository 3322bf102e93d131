"""Lines as JSON values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from loopwarden.importers.items import BadLine, CaughtUp
from loopwarden.importers.source import Line

CUT_LINE: Final = "the file ends in the middle of this line"
"""Why a last line cannot be read: no mistake where an agent is still writing it."""

_CONSTANT: Final = re.compile(rb"NaN|Infinity|undefined|None|True|False")
"""What other languages write where JSON has no such value."""


class Row(NamedTuple):
    """The value on a line of a file."""

    line: int
    value: Any
    file: str = ""


Rows: TypeAlias = Iterable[Row | BadLine | CaughtUp]
"""What a format reads. Everything in it that is no `Row` is handed on as it is."""


def rows(lines: Iterable[Line | BadLine | CaughtUp], file: str) -> Iterator[Row | BadLine | CaughtUp]:
    """Return the value of each line of a file that is not blank, or why it has none."""
    for line in lines:
        if not isinstance(line, Line):
            yield line
        elif line.text.strip():
            try:
                yield Row(line.number, orjson.loads(line.text), file)
            except orjson.JSONDecodeError as error:
                yield BadLine(line.number, _why(line, error))


def _why(line: Line, error: orjson.JSONDecodeError) -> str:
    if not line.whole:
        return CUT_LINE
    constant = _CONSTANT.match(line.text, error.colno - 1)
    if constant is not None:
        return f"not JSON: {constant[0].decode()} is none of its values (column {error.colno}); write null, or text"
    try:
        line.text.decode()
    except UnicodeDecodeError as wrong:
        return f"not JSON: must be UTF-8 text, got byte 0x{line.text[wrong.start]:02x} (byte {wrong.start + 1})"
    # A line has no lines of its own: orjson's "line 1 column N" would read as another line of the file.
    return f"not JSON: {error.msg} (column {error.colno})"

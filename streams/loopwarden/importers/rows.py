"""Lines as JSON values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from loopwarden.importers.items import BadLine
from loopwarden.importers.source import Line


class Row(NamedTuple):
    """The value on a line."""

    line: int
    value: Any


def rows(lines: Iterable[Line | BadLine]) -> Iterator[Row | BadLine]:
    """Return the value of each line that is not blank, or why it has none."""
    for line in lines:
        if isinstance(line, BadLine):
            yield line
        elif line.text.strip():
            try:
                yield Row(line.number, orjson.loads(line.text))
            except orjson.JSONDecodeError as error:
                yield BadLine(line.number, _why(line, error))


def _why(line: Line, error: orjson.JSONDecodeError) -> str:
    if not line.whole:
        return "the file ends in the middle of this line"
    # A line has no lines of its own: orjson's "line 1 column N" would read as another line of the file.
    return f"not JSON: {error.msg} (column {error.colno})"

"""Wire events as JSON lines: one event a line, or a list of them, as `loopwarden import` and `export` write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from loopwarden.importers.items import BadLine, Item, Recorded, WireEvent
from loopwarden.importers.rows import Row, Rows
from loopwarden_schemas.events import EVENT_TYPES

RECORDED: Final = frozenset(("verdict.recorded", "run.exported"))
"""The types of the lines of an export that are no events."""


def recognises(value: Any) -> bool:
    """Whether a line's value is meant as a wire event."""
    if isinstance(value, list):
        return bool(value) and recognises(value[0])
    if not isinstance(value, dict):
        return False
    return _type(value) in EVENT_TYPES | RECORDED or "event_id" in value or "run_id" in value


def read(rows: Rows) -> Iterator[Item]:
    """Return the events. Where `event_id` or `ts` is missing the line number stands in."""
    for row in rows:
        if not isinstance(row, Row):
            yield row
        elif isinstance(row.value, list):
            for index, element in enumerate(row.value):
                yield _event(row.line, element, f"{row.line}/{index}")
        else:
            yield _event(row.line, row.value, str(row.line))


def _event(line: int, value: Any, stand_in: str) -> WireEvent | BadLine | Recorded:
    if not isinstance(value, dict):
        return BadLine(line, f"an event must be an object, got {_shown(value)}")
    if _type(value) in RECORDED:
        return Recorded(line, value)
    value.setdefault("event_id", stand_in)
    value.setdefault("ts", line)
    return WireEvent(line, value)


def _type(value: dict[str, Any]) -> str | None:
    kind = value.get("type")
    return kind if isinstance(kind, str) else None


def _shown(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."

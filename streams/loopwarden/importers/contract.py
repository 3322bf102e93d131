"""Imported events held to the contract: each as the record that would be published, and as the event that it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec

from loopwarden.importers.items import BadLine, CaughtUp, Item, LeftOut, Recorded, WireEvent
from loopwarden_schemas.codec import decode_record, encode_event
from loopwarden_schemas.structs import Event, Rejected


class Checked(NamedTuple):
    """An event that the contract accepts. `append_time` of `event` is its own `ts`. (design.md: "in files: `ts`".)"""

    line: int
    wire: dict[str, Any]
    """The event as it was imported."""
    record: bytes
    """The same as MessagePack: the value of a record of `agent-events`."""
    event: Event


CheckedItem: TypeAlias = Checked | BadLine | LeftOut | Recorded | CaughtUp


def check(items: Iterable[Item]) -> Iterator[CheckedItem]:
    """Return the items with each event checked, or the line it stands on as a bad one.

    An event goes through the very bytes that `publish` would send, so that a file judged here and the same file judged
    by a worker cannot differ.
    """
    for item in items:
        yield _checked(item) if isinstance(item, WireEvent) else item


def _checked(item: WireEvent) -> Checked | BadLine:
    try:
        record = encode_event(item.event)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        return BadLine(item.line, f"invalid_payload: {error or type(error).__name__}")
    event = decode_record(record)[0]
    if isinstance(event, Rejected):
        return BadLine(item.line, f"{event.reason}: {event.detail}")
    return Checked(item.line, item.event, record, event)

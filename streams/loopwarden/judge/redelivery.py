"""An event that comes again changes nothing: which events of a run are recognised. (design.md, "Events".)"""

from __future__ import annotations

from collections import deque
from typing import Final

from loopwarden_schemas.digests import id_hash
from loopwarden_schemas.structs import (
    Compaction,
    EventOfRun,
    OperatorOverride,
    RunFinished,
    RunStarted,
    ToolCallBlocked,
    ToolCallFinished,
    ToolCallStarted,
)

MAX_SEEN: Final = 128
"""How many of a run's newest events a redelivery is recognised among."""

_KIND: Final = {
    RunStarted: id_hash(b"run.started"),
    ToolCallStarted: id_hash(b"tool_call.started"),
    ToolCallFinished: id_hash(b"tool_call.finished"),
    ToolCallBlocked: id_hash(b"tool_call.blocked"),
    Compaction: id_hash(b"compaction"),
    RunFinished: id_hash(b"run.finished"),
    OperatorOverride: id_hash(b"operator.override"),
}
"""64 mixed bits for each type of event; part of what is stored. Small numbers would not do: XXH3 of a short id under
one seed is often that of another short id under a neighbouring seed."""


def identity(event: EventOfRun, call_id: int | None = None) -> int:
    """Return the 8-byte hash that a redelivery shares: of `event_id`, `type` and `call_id` (given as its hash)."""
    kind = _KIND[type(event)]
    return id_hash(event.event_id.encode(), kind if call_id is None else kind ^ call_id)


class Seen:
    """The newest events of a run, to recognise redeliveries."""

    __slots__ = ("identities", "order")

    def __init__(self) -> None:
        self.order: deque[int] = deque()
        self.identities: set[int] = set()

    def add(self, identity: int) -> bool:
        """Remember an event, and forget the oldest for it; return False where it is known already."""
        identities, order = self.identities, self.order
        if identity in identities:
            return False
        if len(order) == MAX_SEEN:
            identities.discard(order.popleft())
        order.append(identity)
        identities.add(identity)
        return True

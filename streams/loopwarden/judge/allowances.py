"""What a person has allowed for a while: no call of these tools is blocked. (`operator.override`, action `allow`.)"""

from __future__ import annotations

from typing import Final

from loopwarden_schemas.digests import id_hash

MAX_ALLOWANCES: Final = 64
"""Allowances of a run; the oldest goes first."""

_ALL_TOOLS: Final = 0


class Allowances:
    """Tools (as hashes) and the append time (ms) until which each is allowed; None: until the run ends."""

    __slots__ = ("until",)

    def __init__(self) -> None:
        self.until: dict[int, int | None] = {}

    def add(self, tool: str | None, until: int | None) -> None:
        """Allow a tool (its normalised name), or with None every tool."""
        key = _key(tool)
        self.until.pop(key, None)
        self.until[key] = until
        if len(self.until) > MAX_ALLOWANCES:
            del self.until[next(iter(self.until))]

    def covers(self, tool: str) -> bool:
        """Whether the calls of a tool are allowed."""
        return bool(self.until) and (_ALL_TOOLS in self.until or _key(tool) in self.until)

    def expire(self, at: int) -> bool:
        """Drop what ended before this append time (ms), that of an event; return whether anything did.

        The event itself is still judged with it: a runner cannot know that it is over before it has read an order.
        """
        over = [key for key, until in self.until.items() if until is not None and until < at]
        for key in over:
            del self.until[key]
        return bool(over)


def _key(tool: str | None) -> int:
    return _ALL_TOOLS if tool is None else id_hash(tool.encode()) or 1

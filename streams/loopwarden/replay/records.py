"""The records of one partition to events, as the worker takes them. (design.md, "Topics".)"""

from __future__ import annotations

from collections import Counter
from typing import Final

from loopwarden.replay.log_part import LogPart
from loopwarden_schemas.codec import Rejected, decode_record
from loopwarden_schemas.structs import Event, PolicyApplied
from loopwarden_schemas.topics import partition_for

_ROUTES_KEPT: Final = 100_000
"""Where a key belongs takes 10 us to compute: it is remembered for so many runs."""


class Records:
    """Decodes records and leaves out what the worker puts to the dead letters.

    Attributes:
        read: Records taken, those of runs that are not wanted among them.
        events: Events returned.
        dead: How often something was left out, by the reason.
    """

    def __init__(self, part: LogPart) -> None:
        self.read = self.events = 0
        self.dead: Counter[str] = Counter()
        self._part = part
        self._routes: dict[bytes, bool] = {}

    def take(self, key: bytes | None, value: bytes | None, append_time: int, content_type: str | None) -> list[Event]:
        """Return the events of the next record."""
        self.read += 1
        part = self._part
        if key is not None and not part.wants(key):
            return []
        events: list[Event] = []
        for event in decode_record(value, append_time, content_type):
            if isinstance(event, Rejected):
                self.reject(event.reason, key)
            elif isinstance(event, PolicyApplied) or self._belongs(key, event.run_id):
                events.append(event)
            else:
                self.reject("misrouted", key)
        self.events += len(events)
        return events

    def reject(self, reason: str, key: bytes | None = None) -> None:
        """Count something that the worker refuses. What has no key is seen by every shard, and counted by one."""
        if key is not None or self._part.shard == 0:
            self.dead[reason] += 1

    def _belongs(self, key: bytes | None, run_id: str) -> bool:
        if key is None or key != run_id.encode("utf-8", "surrogatepass"):
            return False
        right = self._routes.get(key)
        if right is None:
            if len(self._routes) >= _ROUTES_KEPT:
                self._routes.clear()
            right = self._routes[key] = partition_for(key, self._part.partitions) == self._part.partition
        return right

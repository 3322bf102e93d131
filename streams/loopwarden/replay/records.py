"""The records of one partition to events, as the worker takes them. (design.md, "Topics".)"""

from __future__ import annotations

from collections import Counter
from typing import Final

from loopwarden.replay.log_part import LogPart
from loopwarden_schemas.codec import decode_record
from loopwarden_schemas.structs import Event, PolicyApplied, Rejected
from loopwarden_schemas.topics import partition_for

_ROUTES_KEPT: Final = 100_000
"""Where a key belongs takes 10 us to compute: it is remembered for so many keys."""

_UNKNOWN: Final = object()
_NOT_WANTED: Final = object()


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
        self._routes: dict[bytes | None, object] = {None: None}
        """By the key: the run whose events may come under it here; None: no run's may."""

    def take(self, key: bytes | None, value: bytes | None, append_time: int, content_type: str | None) -> list[Event]:
        """Return the events of the next record."""
        self.read += 1
        run_id = self._routes.get(key, _UNKNOWN)
        if run_id is _UNKNOWN:
            run_id = self._route(key)
        if run_id is _NOT_WANTED:
            return []
        decoded = decode_record(value, append_time, content_type)
        events: list[Event] = []
        for event in decoded:
            if type(event) is Rejected:
                self.reject(event.reason, key)
            elif type(event) is PolicyApplied or event.run_id == run_id:  # type: ignore[union-attr]
                events.append(event)  # type: ignore[arg-type]
            else:
                self.reject("misrouted", key)
        self.events += len(events)
        return events

    def reject(self, reason: str, key: bytes | None = None) -> None:
        """Count something that the worker refuses. What has no key is seen by every shard, and counted by one."""
        if key is not None or self._part.shard == 0:
            self.dead[reason] += 1

    def _route(self, key: bytes | None) -> object:
        assert key is not None, "remembered from the beginning"
        if len(self._routes) >= _ROUTES_KEPT:
            self._routes = {None: None}
        part = self._part
        route: object = _NOT_WANTED
        if part.wants(key):
            try:
                route = key.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                route = None
            if partition_for(key, part.partitions) != part.partition:
                route = None
        self._routes[key] = route
        return route

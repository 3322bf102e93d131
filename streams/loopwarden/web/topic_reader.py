"""A topic, read from a while back to its end and on and on, without a group, by a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from loopwarden.client import ClusterError, Connection, Record, following
from loopwarden.web.fleet import now_ms

_PAUSES_S: Final = (0.5, 1.0, 2.0)
_POLL_S: Final = 0.25

_logger = logging.getLogger("loopwarden.web")


class TopicReader(threading.Thread):
    """Hands each poll's records on; connects again whatever goes wrong, and goes on where it was.

    Attributes:
        trouble: Why nothing is read just now; None: all is well.
        caught_up: Whether everything that was there at the start has been handed on.
    """

    def __init__(
        self, connection: Connection, topic: str, look_back_ms: int, take: Callable[[list[Record]], None]
    ) -> None:
        """`take` is called in this thread with each poll's records."""
        super().__init__(name=f"read {topic}", daemon=True)
        self.trouble: str | None = None
        self.caught_up = False
        self._connection = connection
        self._topic = topic
        self._look_back_ms = look_back_ms
        self._take = take
        self._positions: dict[int, int] = {}
        self._closing = threading.Event()

    def close(self) -> None:
        """End the thread, and wait for it."""
        self._closing.set()
        self.join(10)

    def run(self) -> None:
        """Read until `close`."""
        failures = 0
        while not self._closing.is_set():
            try:
                self._follow()
            except Exception as error:  # noqa: PERF203 - the thread must outlive whatever happens to one connection
                if self.trouble is None:
                    # What the broker says is for people; of anything else the place matters.
                    trace = None if isinstance(error, ClusterError) else error
                    _logger.warning("%s is not read: %s", self._topic, error, exc_info=trace)
                    failures = 0
                self.trouble = str(error)
                self._closing.wait(_PAUSES_S[min(failures, len(_PAUSES_S) - 1)])
                failures += 1

    def _follow(self) -> None:
        with following(self._connection, self._topic) as follower:
            ends = follower.ends()
            beginnings = follower.at_time(now_ms() - self._look_back_ms) if self._look_back_ms else ends
            # What was read before the connection was lost is not read again.
            self._positions = {**beginnings, **self._positions}
            follower.start(self._positions)
            self.trouble = None
            while not self._closing.is_set():
                records = follower.poll(_POLL_S)
                # Before they are taken: whatever one of them did would happen again and again.
                for record in records:
                    self._positions[record.partition] = record.offset + 1
                if records:
                    self._take(records)
                if not self.caught_up:
                    # Not the offsets of records: the end may be one that holds none.
                    self.caught_up = all(follower.position(each) >= end for each, end in ends.items())

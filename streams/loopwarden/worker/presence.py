"""Whether this worker was away longer than its session: paused, or on a machine that slept.

Then its partitions belong to others, though nobody told it yet. (design.md, "A state never goes backwards".)
"""

from __future__ import annotations

import time
from collections.abc import Callable


def uptime() -> float:
    """Seconds on a clock that goes on while the machine sleeps, where there is one."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Presence:
    """Knows the last moment at which this process surely ran, and which generation of the group it slept through."""

    def __init__(self, session_seconds: float, clock: Callable[[], float] = uptime) -> None:
        self._session = session_seconds
        self._clock = clock
        self._last = clock()
        self._abandoned: int | None = None

    def begin(self) -> None:
        """Partitions were assigned anew: what was slept through is over. (A group that was empty may count from 1.)"""
        self._abandoned = None
        self._last = self._clock()

    def still_in(self, generation: int) -> bool:
        """Note that the process runs; return whether what was begun in this generation may still be written.

        To be called often, with the current generation: one that was slept through stays abandoned.
        """
        now = self._clock()
        if now - self._last > self._session:
            self._abandoned = generation
        self._last = now
        return self._abandoned != generation

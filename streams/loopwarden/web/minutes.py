"""How often something happened, minute by minute."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final

MINUTES: Final = 60
"""Shown, and kept: what is older goes."""

MINUTE_MS: Final = 60_000


class PerMinute:
    """Counts of some kinds in the newest minutes."""

    def __init__(self) -> None:
        self._counts: OrderedDict[int, Counter[str]] = OrderedDict()

    def add(self, at: int, kinds: Iterable[str]) -> None:
        """Count something that happened `at` (ms since the epoch)."""
        minute = at // MINUTE_MS
        counts = self._counts.get(minute)
        if counts is None:
            counts = self._counts[minute] = Counter()
            while len(self._counts) > 2 * MINUTES:
                del self._counts[min(self._counts)]
        counts.update(kinds)

    def until(self, now: int) -> list[tuple[int, Counter[str]]]:
        """Return the start (ms) and the counts of each of the newest minutes, oldest first; the last one goes on."""
        last = now // MINUTE_MS
        return [
            (minute * MINUTE_MS, Counter(self._counts.get(minute, {})))
            for minute in range(last - MINUTES + 1, last + 1)
        ]

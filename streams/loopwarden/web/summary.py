"""The fleet in numbers, made once for all who ask at about the same time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from loopwarden.web.bodies import Run, run_body
from loopwarden.web.fleet import Fleet, now_ms, worst
from loopwarden.web.watched_run import WatchedRun

WORST: Final = 25
ACTIVE_MS: Final = 5 * 60_000

_KEPT_MS: Final = 500
"""Looking at ten thousand runs takes some milliseconds: however many ask, it is done twice a second."""


@dataclass(frozen=True)
class Summary:
    """The fleet at a moment.

    Attributes:
        now: When, in ms since the epoch.
        live: Runs that have neither ended nor been idle for a day; of them `active`: heard of in the last 5 minutes.
        watched: Runs that are kept.
        events: Of each of the last 60 minutes.
        verdicts: The same by action, with the minute's start (ms).
        worst: Those that someone should look at first.
    """

    now: int
    live: int
    active: int
    watched: int
    forgotten: int
    unreadable: int
    refused: int
    disobeyed: int
    events: list[int]
    verdicts: list[tuple[int, Counter[str]]]
    worst: list[Run]


class Summaries:
    """Makes them. May be called from any thread."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._lock = threading.Lock()
        self._made: Summary | None = None

    def summary(self) -> Summary:
        """Return the fleet as it was a moment ago."""
        with self._lock:
            now = now_ms()
            if self._made is None or now - self._made.now > _KEPT_MS:
                self._made = self._fleet.ask(lambda runs: self._look(runs, now))
            return self._made

    def _look(self, runs: Iterable[WatchedRun], now: int) -> Summary:
        live = active = watched = refused = disobeyed = 0
        known = list(runs)
        for run in known:
            watched += 1
            refused += run.refused
            disobeyed += run.disobeyed
            if run.status(now) == "live":
                live += 1
                active += now - run.newest_at <= ACTIVE_MS
        return Summary(
            now=now,
            live=live,
            active=active,
            watched=watched,
            forgotten=self._fleet.forgotten,
            unreadable=self._fleet.unreadable,
            refused=refused,
            disobeyed=disobeyed,
            events=[counts["events"] for _, counts in self._fleet.events_per_minute.until(now)],
            verdicts=self._fleet.verdicts_per_minute.until(now),
            worst=[run_body(run, now) for run in worst(known, WORST, now)],
        )

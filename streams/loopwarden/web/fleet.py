"""The fleet as it is now: runs and verdicts, told by those who read the topics, asked by those who show them.

Memory is bounded whatever happens: so many runs, of each so many calls, and so many verdicts.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from loopwarden.web.minutes import PerMinute
from loopwarden.web.watched_run import GRAVITY, WatchedRun
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.structs import EventOfRun, Verdict

_T = TypeVar("_T")

MAX_RUNS: Final = 20_000
"""Those that were not heard of for longest are forgotten first; their pages are still read from the log."""

MAX_VERDICTS: Final = 5_000
_IDS_REMEMBERED: Final = 100_000
"""A worker publishes verdicts again after a crash."""

WORST_WITHIN_MS: Final = 3600_000
"""A run that was not heard of for so long is over, whatever it was."""


class Published(NamedTuple):
    """A verdict with the append time (ms) of its record."""

    at: int
    verdict: Verdict


class Fleet:
    """All that is watched. Every method may be called from any thread.

    Attributes:
        version: Rises with everything that is taken.
        forgotten: Runs that there was no more room for.
        unreadable: Records and events that cannot be read, or that lie where they do not belong.
        events_per_minute: By their append time.
        verdicts_per_minute: By action.
    """

    def __init__(self, max_runs: int = MAX_RUNS) -> None:
        self.version = 0
        self.forgotten = 0
        self.unreadable = 0
        self.events_per_minute = PerMinute()
        self.verdicts_per_minute = PerMinute()
        self._max_runs = max_runs
        self._runs: OrderedDict[str, WatchedRun] = OrderedDict()
        self._verdicts: deque[Published] = deque(maxlen=MAX_VERDICTS)
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def take_events(self, partition: int, events: Iterable[EventOfRun], unreadable: int = 0) -> None:
        """Take the next events of a partition, and how many could not be read."""
        with self._lock:
            self.version += 1
            self.unreadable += unreadable
            for event in events:
                self.events_per_minute.add(event.append_time, ("events",))
                try:
                    self._run(event.run_id, partition).see_event(event)
                except NotCanonical:
                    self.unreadable += 1

    def take_verdicts(self, partition: int, verdicts: Iterable[Published], unreadable: int = 0) -> None:
        """Take the next verdicts of a partition; one that comes again changes nothing."""
        with self._lock:
            self.version += 1
            self.unreadable += unreadable
            for published in verdicts:
                at, verdict = published
                if verdict.verdict_id in self._ids:
                    continue
                self._ids[verdict.verdict_id] = None
                if len(self._ids) > _IDS_REMEMBERED:
                    self._ids.popitem(last=False)
                self._verdicts.append(published)
                self.verdicts_per_minute.add(at, (verdict.action,))
                self._run(verdict.run_id, partition).see_verdict(verdict, at)

    def _run(self, run_id: str, partition: int) -> WatchedRun:
        run = self._runs.get(run_id)
        if run is None:
            run = self._runs[run_id] = WatchedRun(run_id, partition)
            if len(self._runs) > self._max_runs:
                self._runs.popitem(last=False)
                self.forgotten += 1
        else:
            self._runs.move_to_end(run_id)
        return run

    def __len__(self) -> int:
        return len(self._runs)

    def run(self, run_id: str) -> WatchedRun | None:
        """Return a run, if it is watched."""
        with self._lock:
            return self._runs.get(run_id)

    def ask(self, show: Callable[[Iterable[WatchedRun]], _T]) -> _T:
        """Return what a function makes of all runs, those heard of last at the end. Nothing changes meanwhile."""
        with self._lock:
            return show(self._runs.values())

    def verdicts(self, wanted: Callable[[Verdict], bool], limit: int) -> list[Published]:
        """Return the newest verdicts that are wanted, the newest first."""
        with self._lock:
            known = list(self._verdicts)
        # Of those with the same time the one that came last is the newest: `nlargest` keeps the order of equals.
        found = [each for each in reversed(known) if wanted(each.verdict)]
        return heapq.nlargest(limit, found, key=lambda each: each.at)


def gravity(run: WatchedRun) -> tuple[bool, int, int, int, int, int]:
    """What makes a run worse than another, what counts most first.

    That it was not heard to be over; its gravest verdict; disobedience; verdicts; calls for nothing; how new it is.
    """
    verdicts = run.warnings + run.blocks + run.aborts
    return not run.finished, GRAVITY[run.severity], run.disobeyed, verdicts, run.repeats, run.newest_at


def worst(runs: Iterable[WatchedRun], limit: int, now: int) -> list[WatchedRun]:
    """Return those that someone should look at first."""
    heard = (run for run in runs if now - run.newest_at <= WORST_WITHIN_MS and (run.severity != "quiet" or run.repeats))
    return heapq.nlargest(limit, heard, key=gravity)


def now_ms() -> int:
    """Return the time now, in ms since the epoch."""
    return time.time_ns() // 1_000_000

"""The runs that someone looks at: each read from the log when its page is opened, then told what comes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeAlias

from loopwarden.client import Connection
from loopwarden.report import Timeline
from loopwarden.web.fleet import Fleet
from loopwarden.web.run_reading import RunReading, read_run
from loopwarden_schemas.structs import EventOfRun, PolicyApplied, Verdict

Show: TypeAlias = Callable[[Timeline], str]

MAX_OPEN: Final = 32
UNUSED_S: Final = 60.0
"""A run that nobody asked for so long is closed: then nothing of it is kept."""

_DRAWING_SHARE: Final = 5
"""A long run takes a while to draw: it is drawn anew when so many times as long has passed."""


class OpenRun:
    """One of them. Told by the readers' threads, asked by those of requests."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.used_at = time.monotonic()
        self._waiting: list[tuple[int, EventOfRun | PolicyApplied | Verdict]] = []
        self._told = threading.Lock()
        self._drawing = threading.Lock()
        self._reading: RunReading | None = None
        self._timeline: Timeline | None = None
        self._shown: dict[Show, str] = {}
        self._stale = True
        self._draw_after = 0.0

    def tell(self, offset: int, what: EventOfRun | PolicyApplied | Verdict) -> None:
        """Take something of the run as it comes; `offset`: of an event or a policy."""
        with self._told:
            self._waiting.append((offset, what))

    def shown(self, connection: Connection, fleet: Fleet, show: Show) -> str | None:
        """Return what a function makes of the run as it is now, or was a moment ago; None: the log holds nothing of it.

        Raises:
            ClusterError: the log cannot be read.
        """
        self.used_at = time.monotonic()
        with self._drawing:
            if self._reading is None:
                # From here on everything is told: what was told before and read again is left out by its offset.
                self._reading = read_run(connection, self.run_id, fleet.run(self.run_id))
            with self._told:
                waiting, self._waiting = self._waiting, []
            for offset, what in waiting:
                self._stale |= self._reading.take(offset, what)
            started = time.monotonic()
            if self._stale and started >= self._draw_after:
                self._timeline = self._reading.timeline()
                self._shown.clear()
                self._stale = False
            if self._timeline is None or not (self._timeline.cells or self._timeline.marks):
                return None
            if show not in self._shown:
                self._shown[show] = show(self._timeline)
                now = time.monotonic()
                self._draw_after = now + _DRAWING_SHARE * (now - started)
            return self._shown[show]


class OpenRuns:
    """All of them; few, however many are watched."""

    def __init__(self, connection: Connection, fleet: Fleet) -> None:
        self._connection = connection
        self._fleet = fleet
        self._open: OrderedDict[str, OpenRun] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def shown(self, run_id: str, show: Show) -> str | None:
        """Return what a function makes of a run as it is now, or was a moment ago; None: the log holds nothing of it.

        However many ask for it, and however often, it is done once for what is known. `show` is kept: no lambda.

        Raises:
            ClusterError: the log cannot be read.
        """
        with self._lock:
            run = self._open.setdefault(run_id, OpenRun(run_id))
            self._open.move_to_end(run_id)
            if len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
        text = run.shown(self._connection, self._fleet, show)
        if text is None:
            self._close(run)
        return text

    def take_event(self, offset: int, event: EventOfRun) -> None:
        """Take the next event of any run."""
        run = self._open.get(event.run_id)
        if run is not None:
            run.tell(offset, event)

    def take_policy(self, partition: int, offset: int, event: PolicyApplied) -> None:
        """Take a policy that was applied in a partition."""
        for run in self._all():
            watched = self._fleet.run(run.run_id)
            if watched is None or watched.partition == partition:
                run.tell(offset, event)

    def take_verdict(self, verdict: Verdict) -> None:
        """Take the next verdict on any run."""
        run = self._open.get(verdict.run_id)
        if run is not None:
            run.tell(-1, verdict)

    def close_unused(self) -> None:
        """Close those that nobody asked for."""
        limit = time.monotonic() - UNUSED_S
        for run in self._all():
            if run.used_at < limit:
                self._close(run)

    def _all(self) -> list[OpenRun]:
        with self._lock:
            return list(self._open.values())

    def _close(self, run: OpenRun) -> None:
        with self._lock:
            if self._open.get(run.run_id) is run:
                del self._open[run.run_id]

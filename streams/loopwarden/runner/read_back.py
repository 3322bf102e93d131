"""From where the verdicts of a run are read when it is guarded."""

from __future__ import annotations

from typing import Final

from loopwarden.gateway import Run

READ_BACK_MS: Final = 25 * 3600 * 1000
"""A run is idle after 24 hours; an hour more for clocks and a worker that was behind."""

_JUST_NOW_MS: Final = 60_000
"""A run that began so recently has no verdict yet that a reader could have passed: far less than clocks differ."""


def read_back_from(run: Run | None, now_ms: int) -> tuple[int | None, bool]:
    """Return the append time (ms) from which a run's verdicts are read, and whether that is by our clock alone.

    None: it begins now. A day and an hour for what may have begun elsewhere.
    """
    if run is not None and run.is_new:
        started, last = run.started, run.last
        if last is None:
            return None, False
        if started is not None and started.append_time is not None and started.append_time > 0:
            is_recent = last is started and abs(now_ms - started.append_time) < _JUST_NOW_MS
            return (None if is_recent else started.append_time), False
        if last is started and not last.done:
            return None, False  # not in the log yet
    return now_ms - READ_BACK_MS, True

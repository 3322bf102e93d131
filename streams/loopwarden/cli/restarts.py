"""A worker that ended by itself is started again: after growing pauses, and not for ever."""

from __future__ import annotations

import time
from typing import Final

from loopwarden.cli.local_worker import LocalWorker, WorkerEnded
from loopwarden.cli.terminal import say

_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0)
"""One for each quick failure in a row; after one more it is given up."""

_QUICK_S: Final = 60.0
"""Longer than a worker takes to have its partitions and to meet again what ended it: sooner, it did not recover."""

_WRONG_SETTING: Final = 2
"""The worker's exit code where it could not begin with its settings: another start changes nothing."""


class Restarts:
    """Looks after one worker that has been started."""

    def __init__(self, worker: LocalWorker) -> None:
        self._worker = worker
        self._started_at = time.monotonic()
        self._quick_failures = 0
        self._due_at: float | None = None

    def look(self) -> None:
        """Start the worker again where it ended and its pause is over. To be called again and again.

        Raises:
            WorkerEnded: it ended, and starting it again is of no use.
            Mistake, SettingsError: it cannot be started any more.
        """
        if self._due_at is None:
            if self._worker.exit_code is not None:
                self._plan()
        elif time.monotonic() >= self._due_at:
            self._due_at = None
            self._started_at = time.monotonic()
            self._worker.launch()

    def _plan(self) -> None:
        now = time.monotonic()
        self._quick_failures = self._quick_failures + 1 if now - self._started_at < _QUICK_S else 1
        if self._worker.exit_code == _WRONG_SETTING:
            raise WorkerEnded(self._worker.ended_in_words())
        if self._quick_failures > len(_PAUSES_S):
            raise WorkerEnded(f"{self._worker.ended_in_words()}\nit ended {self._quick_failures} times in a row")
        pause = _PAUSES_S[self._quick_failures - 1]
        self._due_at = now + pause
        say(
            f"the worker ended by itself with exit code {self._worker.exit_code}: it is started again in {pause:g} s"
            f" (its log: {self._worker.log_file})"
        )

"""The end of a command that runs other processes: the first signal ends it in order, another one hurries that."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_SAME_S: Final = 0.25
"""A supervisor, or a shell, may send the same signal to a process and to its group: within so long it is one."""

_HURRYING: Final = b"hurrying: what still runs is killed; nothing that was acknowledged is lost\n"


class Ending:
    """While it is entered, SIGINT (Ctrl-C), SIGTERM and SIGHUP raise KeyboardInterrupt once.

    After that, or after `begin`, they kill the processes that are still there and raise nothing: so that what stops
    them in order comes to its end soon, and none is left behind.
    """

    def __init__(self) -> None:
        self._begun = False
        self._asked_at: float | None = None
        self._pids: list[Callable[[], int | None]] = []
        self._before: list[tuple[signal.Signals, Any]] = []

    def kills(self, pid: Callable[[], int | None]) -> None:
        """Name a process to kill in a hurry; `pid` returns None while it does not run."""
        self._pids.append(pid)

    def begin(self) -> None:
        """The end has begun by itself: a signal only hurries it."""
        self._begun = True

    def __enter__(self) -> Ending:
        self._before = [(number, signal.signal(number, self._on_signal)) for number in _SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before:
            # Somebody who presses Ctrl-C a third time must not meet the interpreter while it ends.
            signal.signal(number, handler if self._asked_at is None else signal.SIG_IGN)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        asked_at, now = self._asked_at, time.monotonic()
        self._asked_at = now if asked_at is None else asked_at
        if not self._begun:
            self._begun = True
            raise KeyboardInterrupt
        if asked_at is not None and now - asked_at < _SAME_S:
            return
        # Whatever this interrupts may hold a lock, of the output or of a process: neither is touched.
        with suppress(OSError):
            os.write(2, _HURRYING)
        for pid_of in self._pids:
            pid = pid_of()
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

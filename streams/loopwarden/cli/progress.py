"""How much of a file is read, on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

_QUICK: Final = 1.0
"""Seconds without a bar: what is done before needs none."""

_EVERY: Final = 256
"""Looking at the clock for each event would cost more than it tells."""


class ReadingBar:
    """A bar on standard error while a file is read. It does nothing where that is no terminal.

    Args:
        name: What is read.
        size: Its bytes; None where nobody knows, and the bar only shows that it goes on.
        position: How many of them are read.
    """

    def __init__(self, name: str, size: int | None, position: Callable[[], int]) -> None:
        self._name = name
        self._size = size
        self._position = position
        self._events = 0
        self._on = sys.stderr.isatty()
        self._show_at = time.monotonic() + _QUICK
        self._bar: Progress | None = None

    def advance(self) -> None:
        """Count one event."""
        self._events += 1
        if not self._on or self._events % _EVERY or time.monotonic() < self._show_at:
            return
        if self._bar is None:
            self._bar = _new_bar(self._name, self._size)
            self._bar.start()
        read = self._position() if self._size is not None else None
        self._bar.update(self._bar.task_ids[0], completed=read, events=self._events)

    def hide(self) -> None:
        """Clear the line, for other output or at the end; it comes back when there is nothing else for a second."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._show_at = time.monotonic() + _QUICK


def _new_bar(name: str, size: int | None) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    counted = TextColumn("{task.fields[events]:,} events")
    # Rows go to standard output meanwhile, which is not the bar's to redirect.
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        counted,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task(name, total=size, events=0)
    return bar

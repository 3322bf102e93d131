"""How far a topic is read, how fast and how long it will still take, on a terminal, once it takes over a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

_QUICK_S: Final = 1.0


@contextmanager
def scanning_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told the records read and those there are; gone from the screen at the end."""
    show_at = time.monotonic() + _QUICK_S
    bar: Progress | None = None

    def advance(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            if time.monotonic() < show_at or not sys.stderr.isatty():
                return
            bar = _new_bar(what)
            bar.start()
        bar.update(bar.task_ids[0], completed=done, total=total)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _new_bar(what: str) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f}/s")

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, Rate(), TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    bar.add_task(what, total=None)
    return bar

"""How a long step tells that it goes on, and that on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Bar


class Progress(Protocol):
    """Called with the name of the step that runs, and, where its size is known, the bytes done of the bytes in all.

    It may be called from any thread.
    """

    def __call__(self, step: str, done: int = 0, total: int = 0) -> None: ...


def silent(step: str, done: int = 0, total: int = 0) -> None:
    """Shows nothing."""


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[Progress]:
    """A bar for a download, a turning sign for the other steps; gone from the screen at the end.

    Where the output is no terminal, each step is one line.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield _each_step_once(console)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    download = Bar(*columns, console=console, transient=True)
    waiting = Bar(SpinnerColumn(), TextColumn("{task.description}"), console=console, transient=True)
    shown: dict[str, tuple[Bar, TaskID]] = {}

    def show(step: str, done: int = 0, total: int = 0) -> None:
        if step not in shown:
            for bar, task in shown.values():
                bar.update(task, visible=False)
                bar.stop()
            bar = download if total else waiting
            bar.start()
            shown[step] = (bar, bar.add_task(step, total=total or None))
        bar, task = shown[step]
        if total:
            bar.update(task, completed=done)

    try:
        yield show
    finally:
        download.stop()
        waiting.stop()


def _each_step_once(console: Console) -> Progress:
    said: set[str] = set()

    def say(step: str, done: int = 0, total: int = 0) -> None:
        if step not in said:
            said.add(step)
            console.print(step, highlight=False)

    return say

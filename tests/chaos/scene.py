"""Everything that a fault may touch."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from loopwarden.broker import LocalCluster
from loopwarden.client import Connection
from loopwarden_schemas.topics import Topics

from .disk import Disk
from .fleet import Fleet


class Journal:
    """What happened, in order: shown as it happens, kept in a file, counted by what it was."""

    def __init__(self, file: Path, console: Console) -> None:
        self.counts: Counter[str] = Counter()
        self._file = file
        self._console = console
        self._begun = time.monotonic()
        self._lock = threading.Lock()

    def tell(self, text: str) -> None:
        """Note something."""
        line = f"{time.monotonic() - self._begun:7.1f} s  {text}"
        with self._lock, self._file.open("a") as file:
            file.write(line + "\n")
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def count(self, what: str, text: str) -> None:
        """Note something that is counted."""
        with self._lock:
            self.counts[what] += 1
        self.tell(text)


@dataclass
class Scene:
    """The brokers, the workers, and what is known of them."""

    cluster: LocalCluster
    fleet: Fleet
    connection: Connection
    topics: Topics
    journal: Journal
    session_seconds: float
    workers: int
    """How many workers there are when nothing happens to their number."""
    disk: Disk | None
    """Where the brokers' data lie; None where it is not theirs alone."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when there is nothing to wait for any more."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.ended.wait(seconds)

"""Start a worker from a program: what `loopwarden worker` does."""

from __future__ import annotations

import logging
import sys
import time

from loopwarden.worker.errors import NotAdmitted
from loopwarden.worker.settings import Settings

# Faust and aiokafka tell at length what they do; what a person has to know, this package says itself.
_LIBRARIES = ("faust", "aiokafka", "mode")

_MOST_LINES = 1_000


class Sparingly(logging.Filter):
    """Lets the same line through once in a while only.

    While a broker is away aiokafka tries, and says so, twenty times a second.
    """

    def __init__(self, seconds: float = 10.0) -> None:
        super().__init__()
        self._seconds = seconds
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        line, now = record.getMessage(), time.monotonic()
        if now - self._said.get(line, -self._seconds) < self._seconds:
            return False
        if len(self._said) > _MOST_LINES:
            self._said.clear()
        self._said[line] = now
        return True


def run_worker(settings: Settings, *, log_level: str = "info") -> int:
    """Run a worker until SIGTERM or SIGINT, in this process and its main thread; return the exit code.

    0: it was asked to stop, and what it had judged is durable. 1: it stopped by itself; the log says why, and the next
    start goes on from what is committed. 2: it could not begin with these settings.

    Args:
        settings: Where the broker is, and the like.
        log_level: Of this package's log on stderr; at "debug" the libraries' log comes, too.
    """
    from loopwarden.worker.app import WorkerApp
    from loopwarden.worker.stopping import StoppingWorker

    try:
        app = WorkerApp(settings)
    except OSError as error:
        print(f"LOOPWARDEN_DATA_DIR: must be a folder that can be written: {error}", file=sys.stderr)
        return 2
    worker = StoppingWorker(app, loglevel=log_level, redirect_stdouts=False, quiet=True)
    # Faust turns it where its own log is quiet, with a terminal's control codes, also into files.
    worker.spinner = None
    if log_level != "debug":
        _quieten_libraries()
    try:
        worker.execute_from_commandline()
    except SystemExit as end:
        if isinstance(app.crash_reason, NotAdmitted) and app.partitions is None:
            return 2
        return end.code if isinstance(end.code, int) else 1
    return 0


def _quieten_libraries() -> None:
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.ERROR)
    for name in ("faust.worker", "mode.worker"):
        # Says once more that there was a crash.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    sparingly = Sparingly()
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("aiokafka"):
            logging.getLogger(name).addFilter(sparingly)

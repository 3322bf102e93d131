"""The workers: processes of their own, so that a signal is what it is in life. Whichever ends is started again.

Each has a place with a folder and settings of its own, as a pod of a StatefulSet: whoever is started there finds the
databases of the one before, and may have its name.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from signal import Signals
from typing import Final

from loopwarden.broker.process import spawn

_READY: Final = "ready, judging partitions"
"""What a worker logs each time its partitions are assigned."""

_STOPS: Final = "the worker stops: "

_STOP_S: Final = 60.0
_WATCH_S: Final = 0.2
_RESTART_AFTER_S: Final = 0.5


class Worker:
    """One process."""

    def __init__(self, place: int, number: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self.place = place
        self.name = f"worker {number} (place {place})"
        self.log = log
        self.borrowed = False
        self._process = process

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()

    @property
    def last_words(self) -> str:
        """Why it stopped, as its log says; else what its log ends with."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return "".join([line for line in lines if _STOPS in line][-1:] or lines[-1:])

    @property
    def assignments(self) -> int:
        """How often it began to judge the partitions of a new assignment."""
        return self.log.read_text(errors="replace").count(_READY)

    def send(self, number: Signals) -> None:
        """Send a signal; nothing where it is gone already."""
        self._process.send_signal(number)

    def end(self, number: Signals) -> int:
        """End it with a signal; return its exit code.

        Raises:
            TimeoutError: it lives on.
        """
        self.send(number)
        try:
            return self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.name} lives on {_STOP_S:.0f} s after {number.name}; see {self.log}") from None


class Fleet:
    """As many workers as are wanted.

    Attributes:
        started: How many processes were started.
        gave_up: How many of them ended by themselves, or not cleanly when they were told to stop.
    """

    def __init__(
        self,
        folder: Path,
        environment: Callable[[int], Mapping[str, str]],
        random: Random,
        tell: Callable[[str], None],
    ) -> None:
        """Prepare a fleet without workers.

        Args:
            folder: For logs and the workers' own folders.
            environment: The settings of a place.
            random: Chooses among workers.
            tell: Told what ends by itself.
        """
        self.started = 0
        self.gave_up = 0
        self._folder = folder
        self._environment = environment
        self._random = random
        self._tell = tell
        self._wanted = 0
        self._workers: list[Worker] = []
        self._ended: list[Worker] = []
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="fleet", daemon=True)
        self._watcher.start()

    @property
    def rebalances(self) -> int:
        """How often a worker began to judge the partitions of a new assignment."""
        return sum(worker.assignments for worker in [*self._workers, *self._ended])

    def scale(self, wanted: int) -> None:
        """Have so many; those that are too many, the oldest of those that nobody has borrowed, are told to stop."""
        with self._lock:
            self._wanted = wanted
            self._fill()
            free = [each for each in self._workers if not each.borrowed]
            surplus = free[: max(0, len(self._workers) - wanted)]
            for worker in surplus:
                worker.borrowed = True
        for worker in surplus:
            self.stop(worker)
        with self._lock:
            self._bury(surplus)

    @contextmanager
    def borrow(self) -> Iterator[Worker | None]:
        """A worker of which this block decides alone; None where there is none free. If it is dead then, the next one
        takes its place."""
        with self._lock:
            free = [each for each in self._workers if not each.borrowed and each.exit_code is None]
            worker = self._random.choice(free) if free else None
            if worker is not None:
                worker.borrowed = True
        try:
            yield worker
        finally:
            if worker is not None:
                with self._lock:
                    worker.borrowed = False
                    if worker.exit_code is not None:
                        self._bury([worker])
                        self._fill()

    def stop(self, worker: Worker) -> None:
        """Tell a worker to stop, and count it where it does not end cleanly."""
        code = worker.end(Signals.SIGTERM)
        # One that had not said a word yet was still being loaded: there was nothing to end.
        if code != 0 and not (code == -Signals.SIGTERM and not worker.last_words):
            self.gave_up += 1
            self._tell(f"{worker.name} was told to stop and ended with {code}: {worker.last_words}")

    def close(self) -> None:
        """Kill all."""
        self._closed.set()
        self._watcher.join()
        for worker in self._workers:
            worker.end(Signals.SIGKILL)

    def _fill(self) -> None:
        while len(self._workers) < self._wanted and not self._closed.is_set():
            taken = {worker.place for worker in self._workers}
            place = next(place for place in itertools.count() if place not in taken)
            log = self._folder / f"worker-{self.started}.log"
            environment = {
                **os.environ,
                "LOOPWARDEN_DATA_DIR": str(self._folder / f"place-{place}"),
                **self._environment(place),
            }
            process = spawn([sys.executable, "-m", "loopwarden.worker"], log, environment=environment)
            self._workers.append(Worker(place, self.started, process, log))
            self.started += 1

    def _bury(self, workers: list[Worker]) -> None:
        for worker in workers:
            self._workers.remove(worker)
            self._ended.append(worker)

    def _watch(self) -> None:
        while not self._closed.wait(_WATCH_S):
            with self._lock:
                ended = [each for each in self._workers if each.exit_code is not None and not each.borrowed]
                self._bury(ended)
            for worker in ended:
                self.gave_up += 1
                self._tell(f"{worker.name} ended by itself with {worker.exit_code}: {worker.last_words[:200]}")
            if ended and not self._closed.wait(_RESTART_AFTER_S):
                with self._lock:
                    self._fill()

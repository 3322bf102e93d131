"""One worker as a process beside `loopwarden up`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from loopwarden.broker.process import kill, spawn, stop
from loopwarden.cli.mistakes import Mistake
from loopwarden.client import Connection, following
from loopwarden.client.properties import FILE_VARIABLE, VARIABLE_PREFIX
from loopwarden.client.security import Security

_READY_S: Final = 120.0
_STOP_S: Final = 30.0

_SESSION_SECONDS: Final = "6"
"""Shorter than a fleet's, the least that Kafka takes: a worker that was killed keeps its successor from its partitions
for so long."""

_LAST_WORDS: Final = "the worker stops: "
_LOG_LINES_TOLD: Final = 8


class WorkerEnded(Exception):
    """The worker ended before it was ready, or is not ready in time. The text says what its log says."""


class LocalWorker:
    """A worker in a session of its own, that does not outlive this process (Linux).

    Attributes:
        log_file: What it says, over all its starts.
    """

    def __init__(self, connection: Connection, folder: Path, properties_file: str | None = None) -> None:
        """`folder` is for its log and for Faust; it is created. `properties_file`: as on the command line."""
        self.log_file = folder / "worker.log"
        self._connection = connection
        self._folder = folder
        self._properties_file = properties_file
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """Its process id, while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll() if self._process else None

    def start(self, waiting: Callable[[], None]) -> None:
        """Start it and return once it has taken over every partition. `waiting` is called again and again until then.

        Raises:
            WorkerEnded: it ended instead, or it takes too long.
            ClusterError: the broker or a topic is not there.
            Mistake, SettingsError: as `launch`.
        """
        # Whoever takes over a partition says in `loop-progress` how far it is judged.
        with following(self._connection, self._connection.topics().progress.name) as follower:
            follower.start("now")
            self.launch()
            missing = set(follower.partitions)
            deadline = time.monotonic() + _READY_S
            while missing:
                waiting()
                missing -= {record.partition for record in follower.poll(0.1)}
                if self.exit_code is not None:
                    raise WorkerEnded(self.ended_in_words())
                if time.monotonic() > deadline:
                    raise WorkerEnded(f"the worker was not ready in {_READY_S:.0f} s; {self._log_in_words()}")

    def check(self) -> None:
        """Look at its settings, as it will itself.

        Raises:
            MissingExtra: its packages are not installed.
            SettingsError: a variable of the environment has a value that cannot be.
        """
        from loopwarden.worker import Settings

        Settings.from_environment(self._environment())

    def launch(self) -> None:
        """Start it and return at once.

        Raises:
            Mistake: the folder cannot be written.
            SettingsError: as `check`.
        """
        self.check()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
            self._process = spawn(
                [sys.executable, "-m", "loopwarden.worker"], self.log_file, environment=self._environment()
            )
        except OSError as error:
            raise Mistake(f"{self._folder}: the worker's log and data must have a folder here, got {error}") from error

    def stop(self, timeout: float = _STOP_S) -> None:
        """Let it make durable what it judged and end; kill it after `timeout` seconds, which loses nothing either."""
        if self._process is not None:
            stop(self._process, timeout)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            kill(self._process)

    def ended_in_words(self) -> str:
        """Say how it ended, and what it said last."""
        return f"the worker ended by itself with exit code {self.exit_code}; {self._log_in_words()}"

    def _log(self) -> list[str]:
        with self.log_file.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace").splitlines()

    def _log_in_words(self) -> str:
        lines = self._log()
        said = next((number for number, line in enumerate(lines) if _LAST_WORDS in line), len(lines) - _LOG_LINES_TOLD)
        told = lines[max(0, said) :][:_LOG_LINES_TOLD]
        return f"its log, {self.log_file}, says:\n" + ("\n".join(told) or "(nothing)")

    def _environment(self) -> dict[str, str]:
        environment = {"LOOPWARDEN_SESSION_SECONDS": _SESSION_SECONDS, **os.environ}
        if self._connection.security == Security():
            # What the environment says of another cluster is not about the broker that was started here.
            for name in [name for name in environment if name.startswith((FILE_VARIABLE, VARIABLE_PREFIX))]:
                del environment[name]
        elif self._properties_file is not None:
            environment[FILE_VARIABLE] = self._properties_file
        return {
            **environment,
            "LOOPWARDEN_BOOTSTRAP_SERVERS": self._connection.bootstrap_servers,
            "LOOPWARDEN_TOPIC_PREFIX": self._connection.topic_prefix,
            "LOOPWARDEN_DATA_DIR": str(self._folder / "worker"),
        }

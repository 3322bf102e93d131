"""Apache Kafka itself on this machine: one node, data on disk, reached on loopback only."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import time
import uuid
from pathlib import Path
from types import TracebackType

from loopwarden.broker.data_dir import DataDir, lock, write_owner
from loopwarden.broker.errors import BrokerFailed
from loopwarden.broker.jars import ensure_jars
from loopwarden.broker.java import BROKER, STORAGE_TOOL, command, java
from loopwarden.broker.ports import free_port
from loopwarden.broker.process import kill, spawn, stop
from loopwarden.broker.progress import Progress, silent
from loopwarden.broker.properties import HOST, node_properties, render
from loopwarden.client import BrokerUnavailable, TopicsFailed, admin_client
from loopwarden.client.admin import wait_for_leaders

DEFAULT_PORT = 9092

# Between the look for a free port and Kafka binding it, somebody else may take it.
_PORT_ATTEMPTS = 3
_PORT_TAKEN = "Address already in use"


class LocalBroker:
    """A broker in a data folder. Started again on the same folder it goes on with its data, on another port, too.

    As a context manager it starts and stops. It takes `port` when nobody listens there, else any free one (0: any); see
    `bootstrap_servers`. It does not outlive this process (Linux; see `process`).
    """

    def __init__(
        self, data_dir: Path, *, port: int = DEFAULT_PORT, cache: Path | None = None, start_timeout: float = 60.0
    ) -> None:
        """`cache` is where Kafka's jars are kept (default: `jars.cache_folder()`); `start_timeout` is in seconds."""
        self._folder = DataDir(data_dir.absolute())
        self._port = port
        self._cache = cache
        self._start_timeout = start_timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self._log_start = 0

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, `HOST:PORT`; final once `start` returned."""
        return f"{HOST}:{self._port}"

    @property
    def log_file(self) -> Path:
        """Kafka's own log: warnings and worse."""
        return self._folder.log

    @property
    def pid(self) -> int | None:
        """The broker's process id, while it is started."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """How the broker ended by itself, as `subprocess` says it; None while it runs, and when it was not started."""
        return self._process.poll() if self._process else None

    def ended(self, within: float = 0.0) -> bool:
        """Whether the broker was started and has ended by itself; waits for that up to `within` seconds."""
        if self._process and within:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(within)
        return self.exit_code is not None

    def ended_in_words(self) -> str:
        """Says how the broker that was started here ended, and what it said last."""
        return str(self._failure(f"the broker started here ended by itself with exit code {self.exit_code}"))

    def start(self, progress: Progress = silent) -> None:
        """Fetches Kafka if that was never done, starts it and returns when every partition has its leader.

        Raises:
            MissingExtra, DownloadFailed, JarChanged: see `ensure_jars`.
            DataDirInUse: another broker runs on the data.
            BrokerFailed: Kafka stopped, or was not ready in `start_timeout`.
        """
        if self._process:
            return
        java()  # before anything is fetched or created
        jars = ensure_jars(self._cache, progress)
        self._lock = lock(self._folder)
        try:
            shutil.rmtree(self._folder.temporary, ignore_errors=True)
            self._folder.temporary.mkdir(exist_ok=True)
            if not self._folder.data.exists():
                progress("Preparing the broker's data folder")
                self._format(jars)
            progress("Starting Apache Kafka")
            for attempt in range(1, _PORT_ATTEMPTS + 1):
                self._port = free_port(self._port)
                if self._launch(jars, last_attempt=attempt == _PORT_ATTEMPTS):
                    break
        except BaseException:
            self.kill()
            raise

    def stop(self, timeout: float = 30.0) -> None:
        """Lets Kafka close its files and end; kills it after `timeout` seconds, which its data survive as well."""
        try:
            if self._process:
                stop(self._process, timeout)
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends Kafka with SIGKILL, as a crash would."""
        if self._process:
            kill(self._process)
            self._process = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def restart(self) -> None:
        """Stops, and starts again on the same port if it is still free."""
        self.stop()
        self.start()

    def __enter__(self) -> LocalBroker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _format(self, jars: Path) -> None:
        """Prepares the data under another name first: an interruption leaves none rather than half."""
        shutil.rmtree(self._folder.unfinished_data, ignore_errors=True)
        self._write_properties(self._folder.unfinished_data)
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        arguments = ("format", f"--cluster-id={cluster_id}", "--config", str(self._folder.properties))
        self._log_start = self._log_size()
        self._process = self._spawn(jars, STORAGE_TOOL, *arguments)
        try:
            code = self._process.wait(self._start_timeout)
        except subprocess.TimeoutExpired:
            raise self._failure(f"{STORAGE_TOOL} did not end in {self._start_timeout:.0f} s") from None
        self._process = None
        if code != 0:
            raise self._failure(f"{STORAGE_TOOL} ended with exit code {code}")
        self._folder.unfinished_data.rename(self._folder.data)

    def _launch(self, jars: Path, *, last_attempt: bool) -> bool:
        """False: its port was taken by somebody else in the meantime."""
        assert self._lock is not None
        self._write_properties(self._folder.data)
        self._log_start = self._log_size()
        self._process = self._spawn(jars, BROKER, str(self._folder.properties))
        write_owner(self._lock, f"process {self._process.pid}, {self.bootstrap_servers}")
        deadline = time.monotonic() + self._start_timeout
        while not self._answers(deadline):
            code = self._process.poll()
            if code is not None:
                self._process = None
                if _PORT_TAKEN in self._log() and not last_attempt:
                    return False
                raise self._failure(f"Apache Kafka stopped while it started, with exit code {code}")
            if time.monotonic() > deadline:
                raise self._failure(f"Apache Kafka was not ready in {self._start_timeout:.0f} s")
            time.sleep(0.02)
        return True

    def _answers(self, deadline: float) -> bool:
        try:
            socket.create_connection((HOST, self._port), timeout=1).close()
        except OSError:
            return False
        with contextlib.suppress(BrokerUnavailable, TopicsFailed), admin_client(self.bootstrap_servers) as client:
            wait_for_leaders(client, client.list_topics(), deadline)
            return True
        return False

    def _write_properties(self, log_dir: Path) -> None:
        controller_port = free_port()
        while controller_port == self._port:
            controller_port = free_port()
        settings = node_properties(log_dir, self._port, controller_port)
        self._folder.properties.write_text(render(settings), encoding="ascii")

    def _spawn(self, jars: Path, main_class: str, *arguments: str) -> subprocess.Popen[bytes]:
        assert self._lock is not None
        line = command(jars, self._folder.log, self._folder.temporary, main_class, *arguments)
        return spawn(line, self._folder.log, self._lock)

    def _log_size(self) -> int:
        return self._folder.log.stat().st_size if self._folder.log.exists() else 0

    def _log(self) -> str:
        """What it said since it was started last."""
        with self._folder.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def _failure(self, what: str) -> BrokerFailed:
        said = [line for line in self._log().splitlines() if not line.startswith("\tat ")]
        return BrokerFailed(
            f"{what}; its log, {self._folder.log}, ends with:\n" + ("\n".join(said[-5:]) or "(nothing)")
        )

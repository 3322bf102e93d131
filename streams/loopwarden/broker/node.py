"""One process of Apache Kafka on a data folder: formatted once, then started and ended as often as wanted."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from pathlib import Path

from loopwarden.broker.data_dir import DataDir, lock, write_owner
from loopwarden.broker.errors import BrokerFailed, PortTaken
from loopwarden.broker.java import BROKER, STORAGE_TOOL, command
from loopwarden.broker.process import kill, spawn, stop
from loopwarden.broker.progress import Progress, silent
from loopwarden.broker.properties import NodeSettings, node_properties, render
from loopwarden.client import BrokerUnavailable, admin_client
from loopwarden.client.connect import CONNECT_S

_PORT_TAKEN = "Address already in use"


def new_cluster_id() -> str:
    """What all nodes of a cluster are formatted with, in the form that Kafka's own tool gives it."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


class Node:
    """A node of a cluster, maybe its only one. It does not outlive this process (Linux; see `process`)."""

    def __init__(self, data_dir: Path, *, heap_mb: int) -> None:
        """`heap_mb` is the most memory for Java's objects; the process takes about 150 MB beside it."""
        self._folder = DataDir(data_dir.absolute())
        self._heap_mb = heap_mb
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self._log_start = 0
        self._address = ""

    @property
    def log_file(self) -> Path:
        """Kafka's own log: warnings and worse."""
        return self._folder.log

    @property
    def pid(self) -> int | None:
        """The process id, while it is started."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """How it ended by itself, as `subprocess` says it; None while it runs, and when it was not started."""
        return self._process.poll() if self._process else None

    def ended(self, within: float = 0.0) -> bool:
        """Whether it was started and has ended by itself; waits for that up to `within` seconds."""
        if self._process and within:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(within)
        return self.exit_code is not None

    def launch(
        self, jars: Path, settings: NodeSettings, cluster_id: str, deadline: float, progress: Progress = silent
    ) -> None:
        """Formats the data folder if that was never done, starts Kafka and returns at once: see `wait_until_ready`.

        `cluster_id` counts when it is formatted only. `deadline` is a time of `time.monotonic()`.

        Raises:
            MissingExtra: Java is not installed.
            DataDirInUse: another one runs on the data.
            BrokerFailed: the folder cannot be written or formatted.
        """
        if self._lock is None:
            self._lock = lock(self._folder)
        try:
            shutil.rmtree(self._folder.temporary, ignore_errors=True)
            self._folder.temporary.mkdir(exist_ok=True)
            if not self._folder.data.exists():
                progress("Preparing the broker's data folder")
                self._format(jars, settings, cluster_id, deadline)
            progress("Starting Apache Kafka")
            self._address = settings.address()
            self._write_properties(self._folder.data, settings)
            self._log_start = self._log_size()
            self._process = self._spawn(jars, BROKER, str(self._folder.properties))
            write_owner(self._lock, f"process {self._process.pid}, {self._address}")
        except BaseException:
            self.kill()
            raise

    def wait_until_ready(self, deadline: float) -> None:
        """Returns when it answers clients, which it does once the controllers have let it in.

        Raises:
            PortTaken: somebody else listens at a port of its own.
            BrokerFailed: it stopped, or did not answer by `deadline`.
        """
        started = time.monotonic()
        while not self._answers(deadline):
            if self._process is None:
                raise BrokerFailed(f"{self._folder.root}: the node must be started, but was ended")
            code = self._process.poll()
            if code is not None:
                failure = PortTaken if _PORT_TAKEN in self._log_since(self._log_start) else BrokerFailed
                raise failure(self.failure(f"Apache Kafka stopped while it started, with exit code {code}"))
            if time.monotonic() > deadline:
                raise BrokerFailed(self.failure(f"Apache Kafka was not ready in {time.monotonic() - started:.0f} s"))
            time.sleep(0.02)

    def stop(self, timeout: float = 30.0) -> None:
        """Lets Kafka close its files and end (SIGTERM); kills it after `timeout` seconds, which its data survive."""
        self.resume()  # who is paused hears nothing
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

    def pause(self) -> None:
        """Lets it do nothing at all (SIGSTOP), while its connections stay open."""
        if self._process:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets it go on after a pause (SIGCONT)."""
        if self._process:
            self._process.send_signal(signal.SIGCONT)

    def failure(self, what: str) -> str:
        """A message that says where its log is, and what was said there since it was launched."""
        said = [line for line in self._log_since(self._log_start).splitlines() if not line.startswith("\tat ")]
        return f"{what}; its log, {self._folder.log}, ends with:\n" + ("\n".join(said[-5:]) or "(nothing)")

    def _format(self, jars: Path, settings: NodeSettings, cluster_id: str, deadline: float) -> None:
        """Prepares the data under another name first: an interruption leaves none rather than half."""
        shutil.rmtree(self._folder.unfinished_data, ignore_errors=True)
        self._write_properties(self._folder.unfinished_data, settings)
        arguments = ("format", f"--cluster-id={cluster_id}", "--config", str(self._folder.properties))
        self._log_start = self._log_size()
        self._process = self._spawn(jars, STORAGE_TOOL, *arguments)
        timeout = max(0.0, deadline - time.monotonic())
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise BrokerFailed(self.failure(f"{STORAGE_TOOL} did not end in {timeout:.0f} s")) from None
        self._process = None
        if code != 0:
            raise BrokerFailed(self.failure(f"{STORAGE_TOOL} ended with exit code {code}"))
        self._folder.unfinished_data.rename(self._folder.data)

    def _answers(self, deadline: float) -> bool:
        host, port = self._address.split(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            return False
        left = max(1.0, min(CONNECT_S, deadline - time.monotonic()))
        with contextlib.suppress(BrokerUnavailable), admin_client(self._address, left) as client:
            client.list_topics()
            # Where two began at the same port at the same time, the other one may be who answers.
            return bool(client.describe_cluster()["cluster_id"] == self._cluster_id())
        return False

    def _cluster_id(self) -> str:
        text = (self._folder.data / "meta.properties").read_text(encoding="ascii")
        return next(line.partition("=")[2] for line in text.splitlines() if line.startswith("cluster.id="))

    def _write_properties(self, log_dir: Path, settings: NodeSettings) -> None:
        # It may hold passwords.
        self._folder.properties.touch(mode=0o600)
        self._folder.properties.write_text(render(node_properties(log_dir, settings)), encoding="ascii")

    def _spawn(self, jars: Path, main_class: str, *arguments: str) -> subprocess.Popen[bytes]:
        assert self._lock is not None
        folder = self._folder
        line = command(jars, folder.log, folder.temporary, main_class, *arguments, heap_mb=self._heap_mb)
        return spawn(line, folder.log, self._lock)

    def _log_size(self) -> int:
        return self._folder.log.stat().st_size if self._folder.log.exists() else 0

    def _log_since(self, start: int) -> str:
        with self._folder.log.open("rb") as file:
            file.seek(start)
            return file.read().decode(errors="replace")

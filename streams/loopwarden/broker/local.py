"""Apache Kafka itself on this machine: one node, data on disk, reached on loopback only."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

from loopwarden.broker.errors import BrokerFailed, PortTaken
from loopwarden.broker.jars import ensure_jars
from loopwarden.broker.java import java
from loopwarden.broker.node import Node, new_cluster_id
from loopwarden.broker.ports import free_port
from loopwarden.broker.progress import Progress, silent
from loopwarden.broker.properties import HOST, NodeSettings
from loopwarden.client import BrokerUnavailable, TopicsFailed, admin_client
from loopwarden.client.admin import wait_for_leaders

DEFAULT_PORT = 9092

_NODE_ID = 1
_HEAP_MB = 512

# Between the look for a free port and Kafka binding it, somebody else may take it.
_PORT_ATTEMPTS = 3


class LocalBroker:
    """A broker in a data folder. Started again on the same folder it goes on with its data, on another port, too.

    As a context manager it starts and stops. It takes `port` when nobody listens there, else any free one (0: any); see
    `bootstrap_servers`. It does not outlive this process (Linux; see `process`).
    """

    def __init__(
        self, data_dir: Path, *, port: int = DEFAULT_PORT, cache: Path | None = None, start_timeout: float = 60.0
    ) -> None:
        """`cache` is where Kafka's jars are kept (default: `jars.cache_folder()`); `start_timeout` is in seconds."""
        self._node = Node(data_dir, heap_mb=_HEAP_MB)
        self._port = port
        self._cache = cache
        self._start_timeout = start_timeout

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, `HOST:PORT`; final once `start` returned."""
        return f"{HOST}:{self._port}"

    @property
    def log_file(self) -> Path:
        """Kafka's own log: warnings and worse."""
        return self._node.log_file

    @property
    def pid(self) -> int | None:
        """The broker's process id, while it is started."""
        return self._node.pid

    @property
    def exit_code(self) -> int | None:
        """How the broker ended by itself, as `subprocess` says it; None while it runs, and when it was not started."""
        return self._node.exit_code

    def ended(self, within: float = 0.0) -> bool:
        """Whether the broker was started and has ended by itself; waits for that up to `within` seconds."""
        return self._node.ended(within)

    def ended_in_words(self) -> str:
        """Says how the broker that was started here ended, and what it said last."""
        return self._node.failure(f"the broker started here ended by itself with exit code {self.exit_code}")

    def start(self, progress: Progress = silent) -> None:
        """Fetches Kafka if that was never done, starts it and returns when every partition has its leader.

        Raises:
            MissingExtra, DownloadFailed, JarChanged: see `ensure_jars`.
            DataDirInUse: another broker runs on the data.
            BrokerFailed: Kafka stopped, or was not ready in `start_timeout`.
        """
        if self._node.pid:
            return
        java()  # before anything is fetched or created
        jars = ensure_jars(self._cache, progress)
        try:
            for attempt in range(1, _PORT_ATTEMPTS + 1):
                self._port = free_port(self._port)
                try:
                    self._start_at_port(jars, progress)
                    break
                except PortTaken:
                    if attempt == _PORT_ATTEMPTS:
                        raise
        except BaseException:
            self.kill()
            raise

    def stop(self, timeout: float = 30.0) -> None:
        """Lets Kafka close its files and end; kills it after `timeout` seconds, which its data survive as well."""
        self._node.stop(timeout)

    def kill(self) -> None:
        """Ends Kafka with SIGKILL, as a crash would."""
        self._node.kill()

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

    def _start_at_port(self, jars: Path, progress: Progress) -> None:
        controller_port = free_port()
        while controller_port == self._port:
            controller_port = free_port()
        settings = NodeSettings(_NODE_ID, {"PLAINTEXT": self._port}, {_NODE_ID: controller_port})
        deadline = time.monotonic() + self._start_timeout
        self._node.launch(jars, settings, new_cluster_id(), deadline, progress)
        self._node.wait_until_ready(deadline)
        try:
            with admin_client(self.bootstrap_servers) as client:
                wait_for_leaders(client, client.list_topics(), deadline)
        except (BrokerUnavailable, TopicsFailed) as error:
            raise BrokerFailed(self._node.failure(f"Apache Kafka was not ready: {error}")) from error

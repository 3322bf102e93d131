"""A cluster of Apache Kafka on this machine, of one node or more: to break it, and to try its locks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from loopwarden.broker.errors import BrokerFailed
from loopwarden.broker.jars import ensure_jars
from loopwarden.broker.java import java
from loopwarden.broker.node import Node, new_cluster_id
from loopwarden.broker.ports import free_ports
from loopwarden.broker.properties import NodeSettings
from loopwarden.broker.security import ListenerSecurity, Protocol
from loopwarden.client import TopicsFailed, admin_client
from loopwarden.client.admin import wait_for_leaders

# Three of them must leave room for what is tested with them.
_HEAP_MB = 256


class LocalCluster:
    """Nodes with the ids 1, 2, … in a data folder, each broker and controller, on ports that stay theirs.

    With three nodes a topic has three replicas and needs two of them in sync. As a context manager it starts, and kills
    at the end. It does not outlive this process (Linux; see `process`).
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        nodes: int = 3,
        protocols: Sequence[Protocol] = ("PLAINTEXT",),
        security: ListenerSecurity | None = None,
        cache: Path | None = None,
        start_timeout: float = 120.0,
    ) -> None:
        """Each node listens for each of `protocols`, and for PLAINTEXT in any case.

        `cache` is where Kafka's jars are kept (default: `jars.cache_folder()`); `start_timeout` is in seconds.

        Raises:
            BrokerFailed: there are not enough free ports.
        """
        self._data_dir = data_dir
        self._cache = cache
        self._start_timeout = start_timeout
        self._settings = _settings(nodes, protocols, security or ListenerSecurity())
        self._nodes = {node: Node(data_dir / f"node-{node}", heap_mb=_HEAP_MB) for node in self._settings}

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes for PLAINTEXT, `HOST:PORT` with commas between."""
        return self.bootstrap("PLAINTEXT")

    def bootstrap(self, protocol: Protocol) -> str:
        """The addresses of all nodes for a protocol, `HOST:PORT` with commas between."""
        return ",".join(self.address(node, protocol) for node in self.node_ids)

    def address(self, node: int, protocol: Protocol = "PLAINTEXT") -> str:
        """The address of one node, `HOST:PORT`."""
        return self._settings[node].address(protocol)

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Kafka's ids of the nodes: 1, 2, …"""
        return tuple(self._nodes)

    @property
    def running(self) -> tuple[int, ...]:
        """The nodes that are started and did not end by themselves."""
        return tuple(node for node, each in self._nodes.items() if each.pid and each.exit_code is None)

    def pid(self, node: int) -> int | None:
        """The process id of a node, while it is started."""
        return self._nodes[node].pid

    def log_file(self, node: int) -> Path:
        """The log of a node: warnings and worse."""
        return self._nodes[node].log_file

    def start(self, *nodes: int) -> None:
        """Starts these nodes (none named: all) on their data and ports, and returns when they answer.

        A node that answers may still lack records: see `wait_until_in_sync`. One that is alone with its vote does not
        answer: start enough of them at once.

        Raises:
            MissingExtra, DownloadFailed, JarChanged: see `ensure_jars`.
            DataDirInUse: another cluster runs on the data.
            BrokerFailed: a node stopped, or did not answer in `start_timeout`.
        """
        java()  # before anything is fetched or created
        jars = ensure_jars(self._cache)
        cluster_id = self._cluster_id()
        deadline = time.monotonic() + self._start_timeout
        missing = [node for node in self._chosen(nodes) if node not in self.running]

        def launch(node: int) -> None:
            self._nodes[node].launch(jars, self._settings[node], cluster_id, deadline)

        try:
            self._each(missing, launch)
            self._each(missing, lambda node: self._nodes[node].wait_until_ready(deadline))
        except BaseException:
            for node in missing:
                self._nodes[node].kill()
            raise

    def stop(self, *nodes: int, timeout: float = 30.0) -> None:
        """Lets these nodes (none named: all) end in order (SIGTERM), one after the other.

        Killed, which their data survive: one that did not end after `timeout` seconds, and one that cannot hand its
        partitions over, since too few nodes are left for the controllers to decide.
        """
        for node in self._chosen(nodes):
            decisive = len(self.running) > len(self._nodes) / 2
            self._nodes[node].stop(timeout if decisive else 0.0)

    def kill(self, *nodes: int) -> None:
        """Ends these nodes (none named: all) with SIGKILL, as a crash would."""
        for node in self._chosen(nodes):
            self._nodes[node].kill()

    def pause(self, *nodes: int) -> None:
        """Lets these nodes (none named: all) do nothing at all (SIGSTOP), while their connections stay open."""
        for node in self._chosen(nodes):
            self._nodes[node].pause()

    def resume(self, *nodes: int) -> None:
        """Lets these nodes (none named: all) go on after a pause (SIGCONT)."""
        for node in self._chosen(nodes):
            self._nodes[node].resume()

    def restart(self, *nodes: int) -> None:
        """Stops these nodes (none named: all) in order, and starts them again on their data and ports."""
        self.stop(*nodes)
        self.start(*nodes)

    def wait_until_in_sync(self, timeout: float = 60.0) -> None:
        """Returns when every partition of every topic has its leader, and all its replicas have all its records.

        Raises:
            TopicsFailed: it is not so after `timeout` seconds.
            BrokerUnavailable: no node answers.
        """
        deadline = time.monotonic() + timeout
        with admin_client(self.bootstrap_servers) as client:
            topics = client.list_topics()
            wait_for_leaders(client, topics, deadline)
            while behind := _behind(client.describe_topics(topics)):
                if time.monotonic() > deadline:
                    raise TopicsFailed(f"every replica must be in sync, but after {timeout:.0f} s are not: {behind}")
                time.sleep(0.1)

    def __enter__(self) -> LocalCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def _chosen(self, nodes: Sequence[int]) -> Sequence[int]:
        return nodes or self.node_ids

    def _each(self, nodes: Sequence[int], do: Callable[[int], None]) -> None:
        """At the same time for all of them: they start, and end, only together."""
        with ThreadPoolExecutor(len(self._nodes)) as pool:
            list(pool.map(do, nodes))

    def _cluster_id(self) -> str:
        """The same for all nodes, also for one whose data folder was emptied."""
        file = self._data_dir / "cluster.id"
        try:
            if not file.exists():
                self._data_dir.mkdir(parents=True, exist_ok=True)
                file.write_text(new_cluster_id())
            return file.read_text()
        except OSError as error:
            raise BrokerFailed(f"{self._data_dir}: the cluster's data folder must be writable, got {error}") from error


def _behind(topics: list[dict[str, Any]]) -> str:
    """The partitions that lack a replica in sync, as text; empty where none does."""
    return ", ".join(
        f"{topic['name']}[{partition['partition_index']}]"
        for topic in topics
        for partition in topic["partitions"]
        if set(partition["isr_nodes"]) != set(partition["replica_nodes"])
    )


def _settings(nodes: int, protocols: Sequence[Protocol], security: ListenerSecurity) -> dict[int, NodeSettings]:
    listeners: list[Protocol] = ["PLAINTEXT", *(protocol for protocol in protocols if protocol != "PLAINTEXT")]
    node_ids = range(1, nodes + 1)
    ports = iter(free_ports(nodes * (len(listeners) + 1)))
    controllers = {node: next(ports) for node in node_ids}
    return {
        node: NodeSettings(node, {protocol: next(ports) for protocol in listeners}, controllers, security)
        for node in node_ids
    }

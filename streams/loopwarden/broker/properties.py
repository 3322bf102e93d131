"""The settings of one Kafka node, as a pure function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loopwarden.broker.security import ListenerSecurity, Protocol, security_properties

HOST = "127.0.0.1"

# More replicas than that are of no use to anybody, however many nodes there are.
_REPLICAS = 3


@dataclass(frozen=True)
class NodeSettings:
    """A node among others: its id, the port of each of its listeners (PLAINTEXT is always one of them: the nodes talk
    to each other by it), and the ports of the controllers by the ids of all nodes, itself included."""

    node_id: int
    ports: Mapping[Protocol, int]
    controllers: Mapping[int, int]
    security: ListenerSecurity = field(default_factory=ListenerSecurity)

    def address(self, protocol: Protocol = "PLAINTEXT") -> str:
        """A listener's `HOST:PORT`."""
        return f"{HOST}:{self.ports[protocol]}"


def node_properties(log_dir: Path, settings: NodeSettings) -> dict[str, str]:
    """A node that is broker and controller at once, reached on loopback only, with its data in `log_dir`.

    The voters are named by their ports in the settings, not in the data: the same data go on with other ports.

    Raises:
        ValueError: a listener needs TLS, and a file of it is missing.
    """
    listeners = [f"{protocol}://{settings.address(protocol)}" for protocol in settings.ports]
    controller = f"CONTROLLER://{HOST}:{settings.controllers[settings.node_id]}"
    protocol_map = [f"{protocol}:{protocol}" for protocol in settings.ports]
    # A topic goes on without one of its replicas, where it has more than one.
    replicas = min(_REPLICAS, len(settings.controllers))
    in_sync = max(1, replicas - 1)
    return {
        "process.roles": "broker,controller",
        "node.id": str(settings.node_id),
        "controller.quorum.voters": ",".join(f"{node}@{HOST}:{port}" for node, port in settings.controllers.items()),
        "listeners": ",".join([*listeners, controller]),
        "advertised.listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join([*protocol_map, "CONTROLLER:PLAINTEXT"]),
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(log_dir),
        # Topics are declared; one that appears by itself hides a wrong name behind default settings.
        "auto.create.topics.enable": "false",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        # 50 partitions by default, each with files to open at every start.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        # The default waits 3 s for further members before a group's first member gets its partitions.
        "group.initial.rebalance.delay.ms": "0",
        # After a crash the node is let in again only when its former self is given up: after 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # 128 MB of the heap by default, for logs far larger than those on one's own machine.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        **security_properties(settings.ports.keys(), settings.security),
    }


def render(properties: Mapping[str, str]) -> str:
    """The text of a Java properties file."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(value: str) -> str:
    """A path may hold a backslash, or characters that Java reads as Latin-1 in such a file."""
    escaped = value.replace("\\", "\\\\")
    units = escaped.encode("utf-16-be")
    pairs = (int.from_bytes(units[index : index + 2], "big") for index in range(0, len(units), 2))
    return "".join(chr(unit) if 0x20 <= unit < 0x7F else f"\\u{unit:04x}" for unit in pairs)

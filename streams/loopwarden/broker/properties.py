"""The settings of one Kafka node, as a pure function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

HOST = "127.0.0.1"
NODE_ID = 1


def node_properties(log_dir: Path, port: int, controller_port: int) -> dict[str, str]:
    """A node that is broker and controller at once, reached on loopback only, with its data in `log_dir`.

    The voter is named by its port in the settings, not in the data: the same data go on with other ports.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(log_dir),
        # Topics are declared; one that appears by itself hides a wrong name behind default settings.
        "auto.create.topics.enable": "false",
        # One node can hold one replica.
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # 50 partitions by default, each with files to open at every start.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        # The default waits 3 s for further members before a group's first member gets its partitions.
        "group.initial.rebalance.delay.ms": "0",
        # After a crash the node is let in again only when its former self is given up: after 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # 128 MB of a heap of 512 by default, for logs far larger than those on one's own machine.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
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

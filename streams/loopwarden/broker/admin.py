"""Kafka's admin API as we use it: connect or say clearly why not, create what is declared, wait for leaders."""

from __future__ import annotations

import logging
import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, KafkaTimeoutError, for_code
from kafka.net.compat import KafkaNetClient

from loopwarden.broker.errors import BrokerUnavailable, TopicsFailed
from loopwarden_schemas.topics import Topics

DEFAULT_PORT = 9092

_CONNECT_S = 8.0
"""A broker that is not there is reported well within 10 s."""

_TOPIC_ALREADY_EXISTS = 36


@contextmanager
def admin_client(bootstrap_servers: str, connect_timeout: float = _CONNECT_S) -> Iterator[KafkaAdminClient]:
    """An admin client of kafka-python, closed at the end; what goes wrong on the way is a `BrokerUnavailable`.

    `bootstrap_servers` is `HOST:PORT`, or several with commas between; `connect_timeout` is in seconds.

    Raises:
        BrokerUnavailable: nothing answers as Kafka there, within about `connect_timeout`.
    """
    deadline = time.monotonic() + connect_timeout
    servers = [server.strip() for server in bootstrap_servers.split(",")]
    reachable = _first_to_answer(servers, connect_timeout)
    clients: list[KafkaNetClient] = []

    def network(**settings: Any) -> KafkaNetClient:
        clients.append(KafkaNetClient(**settings))
        return clients[-1]

    with _kafka_python_silenced():
        try:
            client = KafkaAdminClient(
                bootstrap_servers=reachable,
                bootstrap_timeout_ms=max(1000, (deadline - time.monotonic()) * 1000),
                kafka_client=network,
            )
        except (KafkaError, OSError) as error:
            # kafka-python leaves its thread and its sockets behind when it cannot connect.
            for each in clients:
                each.close()
                each._net.stop()
            raise BrokerUnavailable(
                f"{bootstrap_servers}: must be a Kafka broker that this machine can reach, but what listens there"
                f" does not answer as one: {error}"
            ) from error
        try:
            yield client
        except (KafkaError, OSError) as error:
            raise BrokerUnavailable(f"{bootstrap_servers}: the broker stopped answering: {error}") from error
        finally:
            client.close()


def create_topics(
    bootstrap_servers: str, topics: Topics, *, replication_factor: int = 1, timeout: float = 30.0
) -> list[str]:
    """Creates the topics that are missing, leaves those that exist as they are, and waits until every partition of all
    has its leader: before that, clients get NotLeaderForPartition for a second. `timeout` is in seconds.

    Returns the names of those it created.

    Raises:
        BrokerUnavailable: no broker there.
        TopicsFailed: the broker refused, or a leader is missing at the end of `timeout`.
    """
    deadline = time.monotonic() + timeout
    with admin_client(bootstrap_servers, min(timeout, _CONNECT_S)) as client:
        present = set(client.list_topics())
        missing = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": replication_factor,
                "configs": dict(topic.config),
            }
            for topic in topics.all()
            if topic.name not in present
        }
        created = _create(client, missing, deadline) if missing else []
        wait_for_leaders(client, [topic.name for topic in topics.all()], deadline)
    return created


def wait_for_leaders(client: KafkaAdminClient, names: list[str], deadline: float) -> None:
    """Waits until every partition of the topics has its leader. `deadline` is a time of `time.monotonic()`.

    Raises:
        TopicsFailed: it was not so by then.
    """
    try:
        client.wait_for_topics(names, timeout_ms=max(0.0, deadline - time.monotonic()) * 1000)
    except KafkaTimeoutError as error:
        raise TopicsFailed(f"every partition must have a leader: {error}") from error


def _create(client: KafkaAdminClient, missing: dict[str, dict[str, Any]], deadline: float) -> list[str]:
    left_ms = max(1000, int((deadline - time.monotonic()) * 1000))
    results = client.create_topics(missing, timeout_ms=left_ms, raise_errors=False)["topics"]
    created = []
    for result in results:
        if result["error_code"] == 0:
            created.append(result["name"])
        elif result["error_code"] != _TOPIC_ALREADY_EXISTS:  # somebody else created it in between
            error = for_code(result["error_code"]).__name__
            raise TopicsFailed(
                f"{result['name']}: the broker refused to create the topic: {error}: {result['error_message']}"
            )
    return created


def _first_to_answer(servers: list[str], timeout: float) -> str:
    """Connects to the servers, all at once and in threads, since looking up a name knows no time-out.

    kafka-python would go on trying at a closed port until its time-out, and leave a socket behind each time.
    """
    addresses = [_host_and_port(server) for server in servers]
    answers: queue.SimpleQueue[tuple[str, OSError | None]] = queue.SimpleQueue()

    def connect(server: str, address: tuple[str, int]) -> None:
        try:
            socket.create_connection(address, timeout=timeout).close()
        except OSError as error:
            answers.put((server, error))
        else:
            answers.put((server, None))

    for asked in zip(servers, addresses, strict=True):
        threading.Thread(target=connect, args=asked, daemon=True, name=f"connect {asked[0]}").start()
    deadline = time.monotonic() + timeout
    failures = []
    for _ in servers:
        try:
            server, error = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            failures.append(f"no answer in {timeout:.0f} s")
            break
        if error is None:
            return server
        failures.append(f"{server}: {error}")
    raise BrokerUnavailable(
        f"{','.join(servers)}: must be a Kafka broker that this machine can reach, got: {'; '.join(failures)}."
        " Is it running? `loopwarden up` starts one on this machine"
    )


def _host_and_port(server: str) -> tuple[str, int]:
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        host, port = server, str(DEFAULT_PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BrokerUnavailable(
            f"bootstrap servers: each must be HOST:PORT with a port from 1 to 65535, commas between, got {server!r}"
        )
    return host.strip("[]"), int(port)


@contextmanager
def _kafka_python_silenced() -> Iterator[None]:
    """kafka-python logs every attempt to connect; what matters of it is in the exception."""
    logger = logging.getLogger("kafka")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)

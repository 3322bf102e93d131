"""Connections of kafka-python that fail soon, with a message, and leave nothing behind."""

from __future__ import annotations

import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient

from loopwarden.client.errors import BrokerUnavailable, WrongSetting

DEFAULT_PORT: Final = 9092

CONNECT_S: Final = 8.0
"""A broker that is not there is reported well within 10 s."""

# To close at the end, and after an error: then nothing is waited for that may never come.
_CLOSE_S: Final = 5.0
_CLOSE_IN_HASTE_S: Final = 0.5


@contextmanager
def connected(
    make: Callable[..., Any], bootstrap_servers: str, connect_timeout: float = CONNECT_S, **settings: Any
) -> Iterator[Any]:
    """A client of kafka-python, closed at the end; what goes wrong on the way is a `BrokerUnavailable`.

    Args:
        make: `KafkaAdminClient`, `KafkaConsumer` or `KafkaProducer`.
        bootstrap_servers: `HOST:PORT`, or several with commas between.
        connect_timeout: In seconds.
        settings: Others of kafka-python's.

    Raises:
        BrokerUnavailable: nothing answers as Kafka there, within about `connect_timeout`; or it stopped answering.
        WrongSetting: `bootstrap_servers` is no address.
    """
    deadline = time.monotonic() + connect_timeout
    reachable = first_to_answer(bootstrap_servers, connect_timeout)
    networks: list[KafkaNetClient] = []

    def network(**network_settings: Any) -> KafkaNetClient:
        networks.append(KafkaNetClient(**network_settings))
        return networks[-1]

    with _kafka_python_silenced():
        try:
            client = make(
                bootstrap_servers=reachable,
                bootstrap_timeout_ms=max(1000, (deadline - time.monotonic()) * 1000),
                kafka_client=network,
                **settings,
            )
        except (KafkaError, OSError) as error:
            # kafka-python leaves its thread and its sockets behind when it cannot connect.
            for each in networks:
                each.close()
                each._net.stop()
            raise BrokerUnavailable(
                f"{bootstrap_servers}: must be a Kafka broker that this machine can reach, but what listens there"
                f" does not answer as one: {error}"
            ) from error
        seconds = _CLOSE_IN_HASTE_S
        try:
            yield client
            seconds = _CLOSE_S
        except KafkaError as error:
            raise BrokerUnavailable(f"{bootstrap_servers}: the broker stopped answering: {error}") from error
        finally:
            _close(client, seconds)


def _close(client: Any, seconds: float) -> None:
    # Each of the three takes its time-out differently; none of them may outlast a broker that went away.
    if isinstance(client, KafkaProducer):
        try:
            client.close(timeout=seconds)
        except KafkaError:
            client._sender.force_close()
    elif isinstance(client, KafkaConsumer):
        client.close(autocommit=False, timeout_ms=seconds * 1000)
    else:
        client.close()


def first_to_answer(bootstrap_servers: str, timeout: float = CONNECT_S) -> str:
    """Return the first of the servers that takes a connection.

    All are tried at once and in threads, since looking up a name knows no time-out. kafka-python would go on trying at
    a closed port until its time-out, and leave a socket behind each time.

    Raises:
        BrokerUnavailable: none does within `timeout` seconds.
        WrongSetting: one is no address.
    """
    servers = [server.strip() for server in bootstrap_servers.split(",")]
    addresses = [host_and_port(server) for server in servers]
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


def host_and_port(server: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`; without a port it is 9092.

    Raises:
        WrongSetting: it is neither.
    """
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        host, port = server, str(DEFAULT_PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise WrongSetting(
            f"bootstrap servers: each must be HOST:PORT with a port from 1 to 65535, commas between, got {server!r}"
        )
    return host.strip("[]"), int(port)


_silencing = threading.Lock()
_silenced_by = 0
_level_before = logging.NOTSET


@contextmanager
def _kafka_python_silenced() -> Iterator[None]:
    """kafka-python logs every attempt to connect; what matters of it is in the exception.

    Gateways and guards hold connections in threads of their own: the last one to leave puts the level back.
    """
    global _silenced_by, _level_before
    logger = logging.getLogger("kafka")
    with _silencing:
        if _silenced_by == 0:
            _level_before = logger.level
            logger.setLevel(logging.CRITICAL + 1)
        _silenced_by += 1
    try:
        yield
    finally:
        with _silencing:
            _silenced_by -= 1
            if _silenced_by == 0:
                logger.setLevel(_level_before)

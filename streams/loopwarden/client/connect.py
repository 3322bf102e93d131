"""Connections of kafka-python that fail soon, with a message, and leave nothing behind."""

from __future__ import annotations

import logging
import os
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import (
    ClusterAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from loopwarden.client.addresses import host_and_port
from loopwarden.client.errors import BrokerUnavailable, ClusterError, Missing, NotAuthorized, NotLetIn
from loopwarden.client.settings import Connection, as_connection

CONNECT_S: Final = 8.0
"""A broker that is not there is reported well within 10 s."""

# To close at the end, and after an error: then nothing is waited for that may never come.
_CLOSE_S: Final = 5.0
_CLOSE_IN_HASTE_S: Final = 0.5

_REFUSED: Final = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, IllegalSaslStateError)


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """Notices why the broker did not let a connection in, and does not try again in vain.

    kafka-python itself keeps trying, and says in the end that it took too long.
    """

    def __init__(self, net: Any, **settings: Any) -> None:
        super().__init__(net, **settings)
        self.failure: BaseException | None = None
        """The last one; None once a connection was let in."""
        self._refusals: dict[Any, BaseException] = {}

    def get_connection(self, node_id: Any, *arguments: Any, **options: Any) -> Any:
        if node_id in self._refusals:
            raise self._refusals[node_id]
        known = self._conns.get(node_id)
        connection = super().get_connection(node_id, *arguments, **options)
        if connection is not known:
            connection.init_future.add_callback(self._let_in)
            connection.init_future.add_errback(self._failed, node_id)
        return connection

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        # As kafka-python does it, but for the socket, which it leaves open when the handshake fails.
        options, settings = self.config["socket_options"], {"ssl_context": self.config["ssl_context"]}
        sock = await create_connection(self._net, node.host, node.port, options, timeout_at=timeout_at)
        kind = KafkaSSLTransport if self.ssl_enabled else KafkaTCPTransport
        transport = kind(self._net, sock, host=node.host, **(settings if self.ssl_enabled else {}))
        try:
            await transport.handshake()
        except Exception as error:
            transport.abort(error)
            raise KafkaConnectionError(f"Handshake failed: {error}") from error
        # Where the broker closes the connection right behind its answer, kafka-python drops the answer: just the one
        # that says that the password is wrong.
        receive = transport._sock_recv
        held: list[BaseException] = []

        def receive_all() -> tuple[bytes, BaseException | None]:
            received, error = (b"", held.pop()) if held else receive()
            if received and error is not None:
                held.append(error)
                error = None
            return received, error

        transport._sock_recv = receive_all
        return transport

    def _let_in(self, _: object) -> None:
        self.failure = None

    def _failed(self, node_id: Any, error: BaseException) -> None:
        _forget_frames(error)
        self.failure = error
        if isinstance(error, _REFUSED) or _tls_refusal(error) is not None:
            self._refusals[node_id] = error


@contextmanager
def connected(
    make: Callable[..., Any], cluster: Connection | str, connect_timeout: float = CONNECT_S, **settings: Any
) -> Iterator[Any]:
    """A client of kafka-python, closed at the end; what goes wrong on the way is a `BrokerUnavailable`.

    Args:
        make: `KafkaAdminClient`, `KafkaConsumer` or `KafkaProducer`.
        cluster: The connection; or only `HOST:PORT`, or several with commas between, where it asks for nothing.
        connect_timeout: In seconds.
        settings: Others of kafka-python's.

    Raises:
        BrokerUnavailable: nothing answers as Kafka there, within about `connect_timeout`; or it stopped answering.
        NotAuthorized: a right is missing.
        NotLetIn: what answers refuses this client, or has a certificate that is not to be trusted.
        WrongSetting: it is no address, or a file of its security cannot be read.
    """
    connection = as_connection(cluster)
    deadline = time.monotonic() + connect_timeout
    security = connection.security.for_kafka_python()
    reachable = first_to_answer(connection.bootstrap_servers, connect_timeout)
    networks: list[KafkaNetClient] = []

    def network(**network_settings: Any) -> KafkaNetClient:
        selector = NetworkSelector(**network_settings)
        manager = _Manager(selector, **network_settings)
        networks.append(KafkaNetClient(net=selector, manager=manager, **network_settings))
        return networks[-1]

    with _kafka_python_silenced():
        try:
            client = make(
                bootstrap_servers=reachable,
                bootstrap_timeout_ms=max(1000, (deadline - time.monotonic()) * 1000),
                kafka_client=network,
                **security,
                **settings,
            )
        except (KafkaError, OSError) as error:
            # kafka-python leaves its thread and its sockets behind when it cannot connect.
            for each in networks:
                each.close()
                each._net.stop()
            raise _not_connected(connection, _failure(networks) or error) from error
        seconds = _CLOSE_IN_HASTE_S
        try:
            yield client
            seconds = _CLOSE_S
        except KafkaError as error:
            raise _stopped(connection, make, error, _failure(networks)) from error
        finally:
            _close(client, seconds)


def _failure(networks: list[KafkaNetClient]) -> BaseException | None:
    return next((each._manager.failure for each in networks if each._manager.failure is not None), None)


def _not_connected(connection: Connection, error: BaseException) -> BrokerUnavailable:
    refusal = _refusal(connection, error)
    if refusal is not None:
        return refusal
    asks = (
        " Does that listener ask for another security.protocol?"
        if connection.security.protocol != "PLAINTEXT" or not isinstance(error, OSError)
        else ""
    )
    return BrokerUnavailable(
        f"{connection.bootstrap_servers}: must be a Kafka broker that this machine can reach by"
        f" {connection.security.protocol}, but what listens there does not answer as one: {error}.{asks}"
    )


def _stopped(
    connection: Connection, make: Callable[..., Any], error: KafkaError, failure: BaseException | None
) -> ClusterError:
    for each in (error, failure):
        refusal = None if each is None else _refusal(connection, each)
        if refusal is not None:
            return refusal
    if isinstance(error, TopicAuthorizationFailedError) and error.args:
        named = error.args[0]
        right = "Write" if make is KafkaProducer else "Read" if make is KafkaConsumer else "Create"
        missing = [Missing("topic", name, right) for name in ([named] if isinstance(named, str) else sorted(named))]
        return NotAuthorized(connection.security.principal, connection.bootstrap_servers, *missing)
    if isinstance(error, ClusterAuthorizationFailedError) and make is KafkaProducer:
        # An idempotent producer must have the right to write to any topic at all.
        missing = [Missing("topic", connection.topics().events.name, "Write")]
        return NotAuthorized(connection.security.principal, connection.bootstrap_servers, *missing)
    # The cluster names a broker that died for some seconds more.
    several = "," in connection.bootstrap_servers
    others = ". Where one of them just went, the others soon take over: try again" if several else ""
    return BrokerUnavailable(f"{connection.bootstrap_servers}: the broker stopped answering: {error}{others}")


def _refusal(connection: Connection, error: BaseException) -> NotLetIn | None:
    """What to tell where the broker does not let this client in, or is not the one it should be."""
    servers, security = connection.bootstrap_servers, connection.security
    if isinstance(error, SaslAuthenticationFailedError):
        return NotLetIn(
            f"{servers}: the broker must let {security.principal} in by {security.mechanism}, but refuses: it knows no"
            " such user, or another password (sasl.jaas.config), or not by this mechanism (sasl.mechanism)"
        )
    if isinstance(error, (UnsupportedSaslMechanismError, IllegalSaslStateError)):
        why = (
            "it asks for no SASL, but security.protocol says so"
            if isinstance(error, IllegalSaslStateError)
            else "it knows another only"
        )
        return NotLetIn(
            f"{servers}: must be a listener that takes sasl.mechanism {security.mechanism}, but does not: {why}"
        )
    tls = _tls_refusal(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        trusted = security.truststore or ("ssl.truststore.certificates" if security.trusted else "this machine's own")
        return NotLetIn(
            f"{servers}: the broker's certificate must be for that host, and signed by a CA in {trusted}"
            f" (ssl.truststore.location), but is not: {tls.verify_message}"
        )
    if tls is not None:
        with_certificate = "the client certificate given" if security.keystore or security.key else "no certificate"
        return NotLetIn(
            f"{servers}: the broker must let this client in with {with_certificate} (ssl.keystore.location), but"
            f" refuses: {(tls.reason or str(tls)).replace('_', ' ').lower()}"
        )
    return None


def _tls_refusal(error: BaseException | None) -> ssl.SSLError | None:
    """The refusal of a certificate, by one side or the other, where the error comes of that."""
    while error is not None:
        inner = error.args[0] if error.args and isinstance(error.args[0], BaseException) else None
        for each in (error, inner):
            if isinstance(each, ssl.SSLCertVerificationError):
                return each
            if isinstance(each, ssl.SSLError) and ("ALERT" in (each.reason or "") or "CERT" in (each.reason or "")):
                return each
        error = error.__cause__ or error.__context__
    return None


def _forget_frames(error: BaseException | None) -> None:
    """An error that is kept must not keep alive what was on the stack: the socket, among others."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


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


_silencing = threading.Lock()
_silenced_by = 0
_level_before = logging.NOTSET


def _begin_afresh() -> None:
    """In a forked child: the lock may have been held, and the threads that silenced are not there."""
    global _silencing, _silenced_by
    if _silenced_by:
        logging.getLogger("kafka").setLevel(_level_before)
    _silencing, _silenced_by = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_afresh)


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

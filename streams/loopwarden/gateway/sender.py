"""The one thread that talks to the broker: connects, sends in order, and begins anew after whatever goes wrong."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Final

from kafka import KafkaProducer
from kafka.errors import AuthorizationError, MessageSizeTooLargeError, RecordListTooLargeError

from loopwarden.client.errors import BrokerUnavailable
from loopwarden.client.kept_connection import KeptConnection
from loopwarden.client.producer import HEADERS, PRODUCER_SETTINGS
from loopwarden.client.rights import why_not
from loopwarden.client.settings import Connection
from loopwarden.gateway.buffer import Buffer, Entry

_SETTINGS: Final[dict[str, Any]] = {
    **PRODUCER_SETTINGS,
    # Never given up on by kafka-python itself: after a batch that it gave up it would send the next one, and the events
    # of a run behind a gap would be judged before those in it. What is stuck is noticed here, and all sent again.
    "delivery_timeout_ms": 24 * 3600 * 1000,
    "reconnect_backoff_max_ms": 1_000,
    "max_block_ms": 5_000,
    # The thread takes what has gathered meanwhile; waiting for more would only delay a verdict.
    "linger_ms": 0,
}

_STUCK_S: Final = 30.0
"""Nothing acknowledged for so long: connect anew. Longer than a cluster takes to choose new leaders."""

_ATTEMPTS: Final = 3
"""So often an event is sent that the broker calls too large."""

_TICK_S: Final = 0.5

_JOIN_S: Final = 0.1
"""For a thread that has nothing to do but to end."""

logger = logging.getLogger("loopwarden.gateway")


sending: Final[set[Sender]] = set()
"""Those with a thread; what they have is sent though nobody holds their gateway any more."""


class Sender:
    """Sends what is in the buffer.

    Attributes:
        partitions: How many `agent-events` has; None until that is known.
    """

    def __init__(self, connection: Connection, buffer: Buffer) -> None:
        self.partitions: int | None = None
        self._connection = connection
        self._topic = connection.topics().events.name
        self._buffer = buffer
        self._link = KeptConnection(KafkaProducer, connection, _SETTINGS, logger, "events wait for the broker")
        self._thread = threading.Thread(target=self._run, name="loopwarden gateway", daemon=True)

    def start(self) -> None:
        """Begin."""
        sending.add(self)
        self._thread.start()

    def abandon(self) -> None:
        """Send what waits, then end; nobody waits for it. Takes no lock: a garbage collector may call it."""
        self._buffer.is_abandoned = True

    def close(self, timeout: float) -> None:
        """Wait at most so many seconds for what waits, then end: what is left is spooled, or dropped and counted."""
        deadline = time.monotonic() + timeout
        try:
            if self._thread.ident is not None:
                self._buffer.wait_until_empty(timeout)
                self._link.closing.set()
                self._buffer.wake()
                self._thread.join(max(_JOIN_S, deadline - time.monotonic()))
        finally:  # after Ctrl-C, too, which ends the waiting
            self._link.closing.set()
            self._buffer.close()
            sending.discard(self)

    def _run(self) -> None:
        self._link.keep(self._send_until_closed, on_loss=self._lost)
        if self._buffer.is_abandoned:
            self._buffer.close()
            sending.discard(self)

    def _lost(self) -> None:
        self._buffer.send_again()
        self._end_if_abandoned()

    def _end_if_abandoned(self) -> None:
        if self._buffer.is_abandoned and self._buffer.is_empty:
            self._link.closing.set()

    def _send_until_closed(self, producer: Any) -> None:
        # kafka-python would close it at the interpreter's exit before the gateway has sent what is left.
        producer._unregister_cleanup()
        try:
            found = producer.partitions_for(self._topic)
            if not found:
                raise why_not(self._connection, self._topic, "Write")
            self.partitions = len(found)
            self._link.note_established()
            logger.info("connected to %s", self._connection.bootstrap_servers)
            failures: list[BaseException] = []
            while not self._link.closing.is_set():
                for entry in self._buffer.take(_TICK_S):
                    self._send(producer, entry, failures)
                self._check(failures)
                self._end_if_abandoned()
            if self._buffer.oldest_on_the_way() is not None:
                producer._sender.force_close()
        except BaseException:
            # Nothing later may reach the log before what failed.
            producer._sender.force_close()
            raise

    def _send(self, producer: Any, entry: Entry, failures: list[BaseException]) -> None:
        try:
            # Without a partition: Kafka's own partitioner chooses it from the key, as the judge checks.
            sent = producer.send(self._topic, entry.record, key=entry.key, headers=HEADERS)
        except (MessageSizeTooLargeError, TypeError, ValueError) as error:
            self._buffer.refused(entry, error)  # kafka-python would say so each time
            return
        sent.add_callback(self._acknowledged, entry)
        sent.add_errback(self._failed, entry, failures)

    def _check(self, failures: list[BaseException]) -> None:
        servers = self._connection.bootstrap_servers
        if failures:
            if isinstance(failures[0], AuthorizationError):
                raise failures[0]  # `connected` says which right is missing
            raise BrokerUnavailable(f"{servers}: {failures[0]!r}")
        oldest = self._buffer.oldest_on_the_way()
        if oldest is not None and time.monotonic() - oldest > _STUCK_S:
            raise BrokerUnavailable(f"{servers}: nothing was acknowledged for {_STUCK_S:.0f} s")

    def _acknowledged(self, entry: Entry, metadata: Any) -> None:
        self._buffer.acknowledged(entry, metadata.partition, metadata.offset, metadata.timestamp)

    def _failed(self, entry: Entry, failures: list[BaseException], error: BaseException) -> None:
        if isinstance(error, (MessageSizeTooLargeError, RecordListTooLargeError)):
            entry.attempts += 1
            if entry.attempts >= _ATTEMPTS:
                self._buffer.refused(entry, error)
        failures.append(error)
        self._buffer.wake()

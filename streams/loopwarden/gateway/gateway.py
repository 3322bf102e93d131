"""The gateway: what an agent does, into the log, without ever standing in the agent's way."""

from __future__ import annotations

import functools
import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from msgspec import UNSET, UnsetType

from loopwarden.client.settings import Connection
from loopwarden.gateway.buffer import Buffer, WhenAway
from loopwarden.gateway.errors import Refused
from loopwarden.gateway.ids import new_id
from loopwarden.gateway.payloads import safe_name, safe_text
from loopwarden.gateway.process import end_with_process, gateways
from loopwarden.gateway.receipts import Receipt
from loopwarden.gateway.run import Run
from loopwarden.gateway.sender import Sender
from loopwarden.gateway.spool import Spool
from loopwarden.gateway.stats import GatewayStats
from loopwarden.gateway.writer import MAX_PAYLOAD_BYTES, Arguments, PayloadMode, Redact, Writer

_CLOSE_S: Final = 5.0

Listener = Callable[[str, str, Receipt], None]
"""`listener(type, run_id, receipt)`, called for every event in the thread that sends it."""

logger = logging.getLogger("loopwarden.gateway")


class Gateway:
    """Publishes the events of any number of runs, from any number of threads, through one thread of its own.

    Nothing here waits for the broker, unless `when_away="block"` and the buffer is full, and no exception of ours
    reaches the caller unless `strict`: errors are logged (`loopwarden.gateway`) and counted in `stats`. Each event has
    an id that survives whatever resending; per run, events come in the order in which they were sent. A gateway that is
    not closed still sends what waits, for at most 2 s at the end of the process. In a forked process it begins afresh,
    with the next event there: with its own connection, `source` and folder in the spool, and without what waits.
    """

    def __init__(
        self,
        connection: Connection | None = None,
        *,
        bootstrap_servers: str | None = None,
        prefix: str | None = None,
        payload: PayloadMode = "full",
        max_payload_bytes: int = 64 * 1024,
        redact: Redact | None = None,
        when_away: WhenAway = "drop_oldest",
        max_buffer_bytes: int = 32 * 1024 * 1024,
        max_block_s: float | None = None,
        spool_dir: Path | str | None = None,
        strict: bool = False,
        _blocks: bool = True,
    ) -> None:
        """Begin; the broker need not be there.

        Args:
            connection: The cluster and the topics' prefix; default: `bootstrap_servers` and `prefix`, each else from
                the environment (`LOOPWARDEN_BOOTSTRAP_SERVERS`, `LOOPWARDEN_TOPIC_PREFIX`), TLS and SASL too
                (`LOOPWARDEN_CLIENT_PROPERTIES`: a file with Kafka's own names).
            payload: `hash`: arguments and results never leave this process, only what the judge needs of them.
            max_payload_bytes: With `full`: what is larger travels as its hash; at most 400 KiB. A run is judged the
                same either way.
            redact: Called with tool, part (`args`, `result`, `error`) and a copy of the value; returns what may be
                sent. It comes before hashing: what it makes equal is equal to the judge. Where it fails, only the
                hash is sent.
            when_away: When the buffer is full, since the broker is away or too slow: `drop_oldest` and count, `block`
                the caller (at most `max_block_s`, then the event is dropped), or `spool` to files.
            max_buffer_bytes: Events that may wait in memory.
            max_block_s: With `block`; default: as long as it takes.
            spool_dir: With `spool`: the files' folder. What is left there is sent by the next gateway with the folder.
            strict: Raise our own errors.

        Raises:
            ValueError: a setting is none; `WrongSetting` for the connection.
        """
        if payload not in ("full", "hash"):
            raise ValueError(f'payload: must be "full" or "hash", got {payload!r}')
        if when_away not in ("block", "drop_oldest", "spool"):
            raise ValueError(f'when_away: must be "block", "drop_oldest" or "spool", got {when_away!r}')
        if not 0 <= max_payload_bytes <= MAX_PAYLOAD_BYTES:
            raise ValueError(f"max_payload_bytes: must be 0 to {MAX_PAYLOAD_BYTES}, got {max_payload_bytes}")
        if max_buffer_bytes < 1:
            raise ValueError(f"max_buffer_bytes: must be at least 1, got {max_buffer_bytes}")
        if (when_away == "spool") != (spool_dir is not None):
            raise ValueError('spool_dir: must be given with when_away="spool", and only then')
        self.connection = connection or Connection.given(bootstrap_servers, prefix)
        self._strict = strict
        self._failed = 0
        self._listeners: list[Listener] = []
        spool = None if spool_dir is None else Spool(Path(spool_dir))
        try:
            if spool is not None:
                spool.open()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ValueError(
                f"spool_dir: must be a folder that can be written, got {str(spool_dir)!r}: {why}"
            ) from error

        def buffer(spool: Spool | None) -> Buffer:
            return Buffer(when_away, max_buffer_bytes, spool, max_block_s=max_block_s, blocks=_blocks)

        self._new_writer = functools.partial(Writer, payload, max_payload_bytes, redact)
        self._new_buffer = buffer
        self._writer = self._new_writer()
        self._buffer = buffer(spool)
        self._sender = Sender(self.connection, self._buffer)
        self._abandoned = weakref.finalize(self, self._sender.abandon)
        self._abandoned.atexit = False
        self._closed = self._begun = False
        self._beginning = threading.RLock()
        gateways.add(self)
        self._begin()

    @property
    def stats(self) -> GatewayStats:
        """What was done so far."""
        buffer, writer = self._buffer, self._writer
        buffer.accept()
        return GatewayStats(
            sent=buffer.sent,
            acknowledged=buffer.acknowledged_count,
            dropped=buffer.dropped,
            spooled=buffer.spooled,
            hashed=writer.hashed,
            failed=buffer.failed + writer.failed + self._failed,
            buffered=buffer.count,
        )

    @property
    def partitions(self) -> int | None:
        """How many `agent-events` has; None until the broker said so."""
        return self._sender.partitions

    @property
    def buffer(self) -> Buffer:
        """Where events wait. (For `AsyncGateway`.)"""
        return self._buffer

    def run(
        self,
        run_id: str | None = None,
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        parent_run_id: str | None = None,
        cause: str | None = None,
        policy: Any = None,
    ) -> Run:
        """Return a run; as a context manager it sends `run.started` and `run.finished`.

        Args:
            run_id: Default: a random one.
            agent_id: Chooses the agent's overlay of the policy.
            session_id: The conversation.
            parent_run_id: The run that called for this one.
            cause: Why it begins.
            policy: A `loopDetection` block laid over the fleet's, for this run.
        """
        given = run_id if type(run_id) is str else safe_name(run_id)
        run_id = given or f"run-{new_id()}"
        return Run(self, run_id, agent_id, session_id, parent_run_id, cause, policy, is_new=not given)

    def run_started(self, /, run_id: str, **fields: Any) -> Receipt:
        """Send `run.started`, with any of `agent_id`, `session_id`, `parent_run_id`, `cause`, `policy`."""
        return self.send({"type": "run.started", "run_id": run_id, **fields})

    def started(
        self, /, run_id: str, tool: str, args: Any = None, *, call_id: str | None = None, **fields: Any
    ) -> Receipt:
        """Send `tool_call.started`; `fields` are further ones of the contract, such as `agent_id`, `known_poll`."""
        return self.send(
            {**fields, "type": "tool_call.started", "run_id": run_id, "tool": tool, "args": args, "call_id": call_id}
        )

    def finished(
        self,
        /,
        run_id: str,
        tool: str,
        args: Any = None,
        *,
        call_id: str | None = None,
        result: Any | UnsetType = UNSET,
        error: Any | UnsetType = UNSET,
        **fields: Any,
    ) -> Receipt:
        """Send `tool_call.finished`. The arguments are repeated: what was executed, and what an outcome is hashed by.

        Args:
            run_id: The run.
            tool: The one that was executed.
            args: Those it was executed with.
            call_id: As on `started`.
            result: What it returned; left out it returned nothing, None is an outcome.
            error: An exception, or what the tool said.
            fields: Further ones of the contract, such as `verdict_id`, `usage`, `duration_ms`.
        """
        outcome = {} if result is UNSET else {"result": result}
        outcome = outcome if error is UNSET else {"error": error}
        call = {"type": "tool_call.finished", "run_id": run_id, "tool": tool, "args": args, "call_id": call_id}
        return self.send({**fields, **call, **outcome})

    def blocked(
        self,
        /,
        run_id: str,
        tool: str,
        args: Any = None,
        *,
        call_id: str | None = None,
        verdict_id: str | None = None,
        **fields: Any,
    ) -> Receipt:
        """Send `tool_call.blocked`: the runner obeyed the verdict, the call was not made."""
        call = {"type": "tool_call.blocked", "run_id": run_id, "tool": tool, "args": args, "call_id": call_id}
        return self.send({**fields, **call, "verdict_id": verdict_id})

    def compaction(self, /, run_id: str, trigger: str = "overflow", succeeded: bool = True, **fields: Any) -> Receipt:
        """Send `compaction`: the run's context was compacted (overflow, timeout, continuation, in_attempt, manual)."""
        more = {"type": "compaction", "run_id": run_id, "trigger": trigger, "succeeded": succeeded}
        return self.send({**fields, **more})

    def run_finished(self, /, run_id: str, reason: str = "done", **fields: Any) -> Receipt:
        """Send `run.finished`: no call of this run follows."""
        return self.send({**fields, "type": "run.finished", "run_id": run_id, "reason": reason})

    def send(self, event: Mapping[str, Any], arguments: Arguments | None = None, *, wait: bool = True) -> Receipt:
        """Send any event of the contract, given by its fields: what everything above comes down to.

        Args:
            event: `type`, `run_id`, and what the type has; `event_id` and `ts` where it has its own. `args`, `result`
                and `error` may hold anything.
            arguments: What `arguments` returned for the call.
            wait: With `when_away="block"`: False where the caller has no time. The event is kept though all is full.

        Returns:
            A receipt: partition and offset, once the broker has the event.
        """
        try:
            if not self._begun:
                self._begin()
            written = self._writer.write(event, arguments)
            receipt = self._buffer.put(written.event_id, written.run_id.encode(), written.record, wait=wait)
        except Exception as error:
            return self._spared(error)
        try:
            for listener in self._listeners:
                listener(str(event["type"]), written.run_id, receipt)
        except Exception as error:
            self._spared(error)
        return receipt

    def arguments(self, tool: str, args: Any, known_poll: bool | None = None) -> Arguments | None:
        """Return a call's arguments as its events will carry them; None where even that failed."""
        try:
            return self._writer.arguments(tool, args, known_poll)
        except Exception as error:
            self._spared(error)
            return None

    def signature(self, tool: str, args: Any) -> tuple[str, str]:
        """Return the tool's name and the `args_hash` of a call, as its events will say them."""
        return self._writer.signature(tool, args)

    def listen(self, listener: Listener) -> None:
        """Call this for every event that is sent. (How a `RunGuard` knows how far its runs are.)"""
        self._listeners.append(listener)

    def unlisten(self, listener: Listener) -> None:
        """Do not call it any more."""
        self._listeners.remove(listener)

    def flush(self, timeout: float | None = 10.0) -> bool:
        """Wait at most so many seconds until the broker has everything; return whether it has."""
        return self._buffer.wait_until_empty(timeout)

    def close(self, timeout: float = _CLOSE_S) -> None:
        """Wait at most so many seconds for what waits, then end: what is left is spooled, or dropped and counted."""
        self._closed = True
        self._sender.close(timeout)

    def begin_afresh(self) -> None:
        """Begin again, in a process that was forked: whatever there was is the parent's. (`process` calls it.)"""
        # Whoever held a lock is not in this process.
        self._beginning = threading.RLock()
        buffer, partitions = self._buffer, self._sender.partitions
        buffer.leave_to_parent()
        self._failed = 0
        self._writer = self._new_writer()
        self._buffer = self._new_buffer(None if buffer.spool_folder is None else Spool(buffer.spool_folder))
        self._sender = Sender(self.connection, self._buffer)
        self._sender.partitions = partitions
        self._abandoned.detach()
        self._abandoned = weakref.finalize(self, self._sender.abandon)
        self._abandoned.atexit = False
        self._begun = False
        if self._closed:
            self._buffer.close()

    def _begin(self) -> None:
        """Begin to send."""
        with self._beginning:
            if not self._begun and not self._closed:
                self._begun = True
                end_with_process()
                self._buffer.open()
                self._sender.start()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _spared(self, error: Exception) -> Receipt:
        if self._strict:
            raise error
        self._failed += 1
        problem = safe_text(error)
        logger.warning("an event was not sent: %s", problem)
        receipt = Receipt("", self._buffer.moved)
        receipt.settle(error=Refused(problem))
        return receipt

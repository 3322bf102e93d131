"""What a gateway gives back for an event: where it lies in the log, once the broker has said so."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Generator
from typing import Any

from loopwarden.gateway.errors import GatewayError


class Receipt:
    """Of one event. Can be waited for (`wait`, `result`), or awaited.

    Attributes:
        event_id: The event's; it stays the same when the event is sent again.
        partition: Of `agent-events`; None until acknowledged.
        offset: There; None until acknowledged, and where the broker did not tell (it had stored the event already).
        append_time: When the broker appended it, in milliseconds; None until acknowledged.
        error: Why it is not in the log; None otherwise.
    """

    __slots__ = (
        "__weakref__",
        "_callbacks",
        "_moved",
        "append_time",
        "done",
        "error",
        "event_id",
        "offset",
        "partition",
    )

    def __init__(self, event_id: str, moved: threading.Condition) -> None:
        self.event_id = event_id
        self.partition: int | None = None
        self.offset: int | None = None
        self.append_time: int | None = None
        self.error: GatewayError | None = None
        self.done = False
        self._moved = moved
        self._callbacks: list[Callable[[], None]] = []

    @property
    def acknowledged(self) -> bool:
        """Whether the event is in the log."""
        return self.done and self.error is None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most so many seconds until it is settled; return whether it is."""
        if not self.done:
            with self._moved:
                self._moved.wait_for(lambda: self.done, timeout)
        return self.done

    def result(self, timeout: float | None = None) -> Receipt:
        """Wait, and return this receipt where the event is in the log.

        Raises:
            GatewayError: it is not, see `errors`.
            TimeoutError: that is not known yet.
        """
        if not self.wait(timeout):
            raise TimeoutError(f"event {self.event_id} was not acknowledged in {timeout} s")
        if self.error is not None:
            raise self.error
        return self

    def __await__(self) -> Generator[Any, None, Receipt]:
        if not self.done:
            loop = asyncio.get_running_loop()
            settled: asyncio.Future[None] = loop.create_future()

            def set_it() -> None:
                if not settled.done():
                    settled.set_result(None)

            def tell() -> None:
                with contextlib.suppress(RuntimeError):  # nobody waits in a loop that is closed
                    loop.call_soon_threadsafe(set_it)

            self.on_done(tell)
            yield from settled
        return self.result(0)

    def on_done(self, callback: Callable[[], None]) -> None:
        """Call this once it is settled, at once where it is; in the gateway's thread, so it must be quick."""
        if not self.done:
            with self._moved:
                if not self.done:
                    self._callbacks.append(callback)
                    return
        callback()

    def settle(
        self,
        *,
        partition: int | None = None,
        offset: int | None = None,
        append_time: int | None = None,
        error: GatewayError | None = None,
    ) -> None:
        """Say what became of the event; the caller holds the lock, and lets `tell` follow. (The gateway's own.)"""
        if not self.done:
            self.partition, self.offset, self.append_time, self.error = partition, offset, append_time, error
            self.done = True

    def tell(self) -> None:
        """Call whom `on_done` was given; without the lock. (The gateway's own.)"""
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def leave_to_parent(self) -> None:
        """In a process that was forked: nobody will say what becomes of the event. (The gateway's own.)"""
        # Whoever held the lock is not in this process.
        self._moved, self._callbacks = threading.Condition(), []
        self.settle(error=GatewayError(f"event {self.event_id} is sent by the process that this one was forked from"))

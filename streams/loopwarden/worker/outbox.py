"""What a partition's lane publishes, verdicts and dead letters, and how far all of it is acknowledged."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from loopwarden.worker.errors import ProduceFailed
from loopwarden.worker.records import Header, Records


class _Sent:
    """Outputs of one batch of events that the broker has not acknowledged yet."""

    __slots__ = ("judged", "unacknowledged")

    def __init__(self, judged: int, unacknowledged: int) -> None:
        self.judged = judged
        self.unacknowledged = unacknowledged


class Outbox:
    """Sends the outputs of one partition in order and knows up to which input offset all are acknowledged.

    Attributes:
        judged: Every event below this offset is judged, and its outputs are acknowledged.
        verdicts: They lie below this offset of the partition of `loop-verdicts`.
    """

    def __init__(
        self,
        verdicts: Records,
        dead_letters: Records,
        *,
        judged: int,
        verdicts_end: int,
        on_progress: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`judged` is the committed offset, `verdicts_end` where the partition of `loop-verdicts` ended, both from when
        this worker took the partition over."""
        self.judged = judged
        self.verdicts = verdicts_end
        self._verdicts = verdicts
        self._dead_letters = dead_letters
        self._sent: deque[_Sent] = deque()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._on_progress = on_progress
        self._on_failure = on_failure
        self._closed = False

    def add_verdict(self, key: bytes, value: bytes, headers: list[Header]) -> None:
        """Add a verdict to what the next `send` sends."""
        self._verdicts.append(key, value, headers)

    def add_dead_letter(self, key: bytes | None, value: bytes | None, headers: list[Header]) -> None:
        """Add a dead letter to what the next `send` sends."""
        self._dead_letters.append(key, value, headers)

    async def send(self, judged: int) -> None:
        """Send what was added: the outputs of the events below offset `judged`. Does not wait for the broker."""
        sent = _Sent(judged, 0)
        self._sent.append(sent)
        # So that an acknowledgement that comes while the next batch is handed over does not count as the last.
        sent.unacknowledged = 1
        if self._verdicts:
            for count, future in await self._verdicts.send():
                self._expect(future, sent, count)
        if self._dead_letters:
            for _, future in await self._dead_letters.send():
                self._expect(future, sent, 0)
        self._acknowledge(sent)

    def _expect(self, future: asyncio.Future[Any], sent: _Sent, verdicts: int) -> None:
        sent.unacknowledged += 1

        def acknowledged(future: asyncio.Future[Any]) -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is not None:
                if not self._closed:
                    failed = ProduceFailed(f"the broker did not take verdicts or dead letters: {error!r}")
                    failed.__cause__ = error
                    self._on_failure(failed)
                return
            base = future.result().offset
            if verdicts and base < 0:
                # What the broker has stored already it may acknowledge without saying where: then nobody could be told
                # up to where the verdicts lie. A restart asks for the end of the partition.
                if not self._closed:
                    self._on_failure(ProduceFailed("the broker acknowledged verdicts without an offset"))
                return
            self.verdicts = max(self.verdicts, base + verdicts) if verdicts else self.verdicts
            self._acknowledge(sent)

        future.add_done_callback(acknowledged)

    def _acknowledge(self, sent: _Sent) -> None:
        sent.unacknowledged -= 1
        if sent.unacknowledged or self._sent[0] is not sent:
            return
        while self._sent and not self._sent[0].unacknowledged:
            self.judged = self._sent.popleft().judged
        still_waiting = []
        for offset, waiter in self._waiting:
            if offset > self.judged:
                still_waiting.append((offset, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._waiting = still_waiting
        if not self._closed:
            self._on_progress()

    async def acknowledged(self, offset: int) -> None:
        """Wait until the outputs of every event below this offset are acknowledged."""
        if self._closed or self.judged >= offset:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, waiter))
        await waiter

    def close(self) -> None:
        """Nobody waits for anything of this partition any more."""
        self._closed = True
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting = []

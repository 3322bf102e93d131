"""The gateway for asyncio: the same thread behind it, the same events, and nothing that blocks the loop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec

from loopwarden.gateway.buffer import Buffer
from loopwarden.gateway.gateway import Gateway
from loopwarden.gateway.receipts import Receipt
from loopwarden.gateway.run import Call, Run, is_interrupt
from loopwarden.gateway.stats import GatewayStats

P = ParamSpec("P")

_CLOSE_S: Final = 5.0


def _awaited(
    send: Callable[Concatenate[Gateway, P], Receipt],
) -> Callable[Concatenate[AsyncGateway, P], Coroutine[Any, Any, Receipt]]:
    @functools.wraps(send)
    async def sends(self: AsyncGateway, /, *args: P.args, **kwargs: P.kwargs) -> Receipt:
        await self.room()
        return send(self.gateway, *args, **kwargs)

    return sends


class AsyncGateway:
    """`Gateway` for asyncio, with the same arguments; receipts can be awaited.

    With `when_away="block"` and a full buffer it is the task that waits, not the loop. `gateway` is the one beneath.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """See `Gateway`."""
        self.gateway = Gateway(*args, **kwargs, _blocks=False)

    run_started = _awaited(Gateway.run_started)
    started = _awaited(Gateway.started)
    finished = _awaited(Gateway.finished)
    blocked = _awaited(Gateway.blocked)
    compaction = _awaited(Gateway.compaction)
    run_finished = _awaited(Gateway.run_finished)
    send = _awaited(Gateway.send)

    @property
    def stats(self) -> GatewayStats:
        """What was done so far."""
        return self.gateway.stats

    def run(self, run_id: str | None = None, **fields: Any) -> AsyncRun:
        """Return a run, an asynchronous context manager; see `Gateway.run`."""
        return AsyncRun(self, self.gateway.run(run_id, **fields))

    async def room(self) -> None:
        """Wait while the buffer is full and the gateway is to block then, or for `max_block_s`."""
        buffer = self.gateway.buffer
        if buffer.blocks_when_full and buffer.is_full:
            await _until(buffer, lambda: not buffer.is_full, buffer.max_block_s)

    async def flush(self, timeout: float | None = 10.0) -> bool:
        """Wait at most so many seconds until the broker has everything; return whether it has."""
        buffer = self.gateway.buffer
        return await _until(buffer, lambda: buffer.is_empty, timeout)

    async def close(self, timeout: float = _CLOSE_S) -> None:
        """See `Gateway.close`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        await self.flush(timeout)
        closed = loop.create_future()

        def close() -> None:
            self.gateway.close(max(0.0, deadline - loop.time()))
            _call_in(loop, closed)

        # A thread of its own: those of the loop may all be taken by the agent.
        threading.Thread(target=close, name="loopwarden gateway closes", daemon=True).start()
        await closed

    async def __aenter__(self) -> AsyncGateway:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


async def _until(buffer: Buffer, holds: Callable[[], bool], timeout: float | None) -> bool:
    """Wait until it holds, at most so many seconds; return whether it does."""
    loop = asyncio.get_running_loop()
    deadline = None if timeout is None else loop.time() + timeout
    while not holds():
        moved = loop.create_future()
        left = None if deadline is None else deadline - loop.time()
        if left is not None and left <= 0:
            return False
        with buffer.watching(holds, functools.partial(_call_in, loop, moved)):
            await asyncio.wait([moved], timeout=left)
    return True


def _call_in(loop: asyncio.AbstractEventLoop, awaited: asyncio.Future[None]) -> None:
    """Let the future be done, from whatever thread."""

    def done() -> None:
        if not awaited.done():
            awaited.set_result(None)

    with contextlib.suppress(RuntimeError):  # nobody waits in a loop that is closed
        loop.call_soon_threadsafe(done)


class AsyncRun:
    """`Run` for asyncio. `run` is the one beneath, for a `RunGuard`."""

    def __init__(self, gateway: AsyncGateway, run: Run) -> None:
        self.run = run
        self._gateway = gateway

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id

    def call(self, tool: str, args: Any = None, **fields: Any) -> AsyncCall:
        """Return a call, an asynchronous context manager; see `Run.call`."""
        return AsyncCall(self._gateway, self.run.call(tool, args, **fields))

    async def compaction(self, trigger: str = "overflow", succeeded: bool = True) -> Receipt:
        """See `Run.compaction`."""
        await self._gateway.room()
        return self.run.compaction(trigger, succeeded)

    async def finish(self, reason: str = "done") -> Receipt | None:
        """See `Run.finish`."""
        await self._gateway.room()
        return self.run.finish(reason)

    async def __aenter__(self) -> AsyncRun:
        await self._gateway.room()
        self.run.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not is_interrupt(error):
            await self._gateway.room()
        self.run.__exit__(kind, error, traceback)


class AsyncCall:
    """`Call` for asyncio. `call` is the one beneath, for a `RunGuard`."""

    def __init__(self, gateway: AsyncGateway, call: Call) -> None:
        self.call = call
        self.result = call.result
        self.error = call.error
        self.usage = call.usage
        self._gateway = gateway

    async def __aenter__(self) -> AsyncCall:
        await self._gateway.room()
        self.call.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not is_interrupt(error):
            await self._gateway.room()
        self.call.__exit__(kind, error, traceback)

"""Tasks of asyncio that wait for what another thread reads: without a thread for each of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeAlias

Condition: TypeAlias = Callable[[], bool]


class Waiters:
    """Tasks of any number of event loops, each waiting for a condition of its own."""

    def __init__(self) -> None:
        self._loops: dict[asyncio.AbstractEventLoop, dict[asyncio.Future[bool], Condition]] = {}

    def wake(self) -> None:
        """Something changed: let every loop look whether conditions hold now. For any thread; takes no lock of ours."""
        for loop in tuple(self._loops):
            with contextlib.suppress(RuntimeError):  # a loop that is closed: nobody waits there
                loop.call_soon_threadsafe(self._look, loop)

    async def wait_for(self, holds: Condition, timeout: float) -> bool:
        """Wait at most so many seconds until a condition holds; return whether it does."""
        if holds():
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        waiting = self._loops.setdefault(loop, {})
        waiting[future] = holds
        timer = loop.call_later(timeout, _settle, future, False)
        try:
            # It may have come to hold before this loop was one to be woken.
            return holds() or await future
        finally:
            timer.cancel()
            del waiting[future]
            if not waiting:
                self._loops.pop(loop, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        for future, holds in tuple(self._loops.get(loop, {}).items()):
            if not future.done() and holds():
                future.set_result(True)


def _settle(future: asyncio.Future[bool], value: bool) -> None:
    if not future.done():
        future.set_result(value)

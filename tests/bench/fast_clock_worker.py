"""A worker for which time passes faster: each record's append time is moved away from the first one's by a factor.

    python fast_clock_worker.py FACTOR

Nothing else of it is changed, but that it sweeps as often as its own hours ask for.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

from loopwarden.worker import Settings, run_worker, sweep, transport

FACTOR = float(sys.argv[1])

_poll = transport.Consumer.getmany
_first: int | None = None


async def _getmany(self: transport.Consumer, timeout: float) -> AsyncIterator[Any]:
    global _first
    async for tp, message in _poll(self, timeout):
        if isinstance(message.value, transport.Batch):
            for record in message.value.records:
                if _first is None:
                    _first = record.timestamp
                # Frozen, as nobody else has a reason to change it.
                object.__setattr__(record, "timestamp", int(_first + (record.timestamp - _first) * FACTOR))
        yield tp, message


transport.Consumer.getmany = _getmany  # type: ignore[method-assign]
sweep.INTERVAL_S = max(0.2, sweep.INTERVAL_S / FACTOR)  # type: ignore[misc]
sys.exit(run_worker(Settings.from_environment(), log_level="warning"))

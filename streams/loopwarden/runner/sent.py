"""What this process sent for a run: up to which event all must be judged before an answer is certain."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

from loopwarden.gateway import Receipt
from loopwarden.gateway.errors import Spooled

_MAX_RECEIPTS: Final = 4096
"""Remembered of a run while the broker is away; beyond them the oldest are forgotten."""


class Sent:
    """The events of a run that this process sent, as far as they matter still. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._receipts: deque[Receipt] = deque()
        """The newest that may be in the log, and all after it."""

    def note(self, receipt: Receipt) -> None:
        """An event was sent."""
        with self._lock:
            receipts = self._without_lost()
            receipts.append(receipt)
            # What is older than an event in the log need not be looked at: the judge takes them in their order.
            while len(receipts) > 1 and (receipts[1].acknowledged or _is_lost(receipts[0])):
                receipts.popleft()
            if len(receipts) > _MAX_RECEIPTS:
                # Not the oldest, which may be the one that is in the log when all the others are lost.
                del receipts[1]

    def newest(self) -> Receipt | None:
        """The newest event that is in the log or may get there. What was dropped is never judged."""
        with self._lock:
            receipts = self._without_lost()
            return receipts[-1] if receipts else None

    def _without_lost(self) -> deque[Receipt]:
        receipts = self._receipts
        while receipts and _is_lost(receipts[-1]):
            receipts.pop()
        return receipts


def _is_lost(receipt: Receipt) -> bool:
    return receipt.done and receipt.error is not None and not isinstance(receipt.error, Spooled)

"""What a gateway has done so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GatewayStats:
    """A snapshot.

    Attributes:
        sent: Events that were handed over.
        acknowledged: Events that the broker has.
        dropped: Events that were given up to make room, or when the gateway was closed.
        spooled: Events that were written to files.
        hashed: Payloads that were sent as their hash though `payload="full"`: too large, or not to be redacted.
        failed: Errors of ours that the agent was spared, and events that the broker refused.
        buffered: Events that wait now, in memory or in files, or are on their way.
    """

    sent: int
    acknowledged: int
    dropped: int
    spooled: int
    hashed: int
    failed: int
    buffered: int

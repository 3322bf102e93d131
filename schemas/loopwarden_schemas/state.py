"""The state record: what the changelog of the worker's table holds for one run, as compact MessagePack.

An array whose first elements never move: version, offset, index. So recovery can compare two states of a run, and a
version that this build does not know can be named, without reading the rest. Counters are not stored: they are
functions of the calls in the window and are counted again when a state is read.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

STATE_VERSION: Final = 1

MAX_STATE_BYTES: Final = 128 * 1024


class UnknownStateVersion(ValueError):
    """The changelog holds a state that this version of Loopwarden cannot read."""

    def __init__(self, found: object) -> None:
        super().__init__(
            f"state record: version must be {STATE_VERSION}, got {found!r}: it was written by another version of "
            "Loopwarden; run that version, or one that knows how to lift it"
        )


class SignatureRecord(Struct, array_like=True, gc=False):
    """A tool and its arguments, once for all calls that share them. Hashes of 32 hex digits are stored as 16 bytes."""

    tool: str
    args_hash: str | bytes
    known_poll: bool


class CallRecord(Struct, array_like=True, gc=False):
    """One call in the window."""

    signature: int
    """Index into the record's signatures."""
    call_id: str | bytes | None
    event_id: str
    result: bytes | str | None
    unknown_tool: str | None
    lone: bool


class RememberedRecord(Struct, array_like=True, gc=False):
    """A call outside the window whose outcome may still come."""

    call_id: str | bytes
    event_id: str
    args_hash: str | bytes
    known_poll: bool


class WarningRecord(Struct, array_like=True, gc=False):
    """How far a warning was published: see `judge.warnings`."""

    detector: str
    signature: bytes
    other: bytes
    bucket: int


class GuardRecord(Struct, array_like=True, gc=False):
    """The post-compaction guard while it observes."""

    remaining: int
    observed: list[tuple[bytes, str]]


class OrderRecord(Struct, array_like=True, gc=False):
    """A standing block; `args_hash` is None for a whole tool."""

    tool: str
    args_hash: str | bytes | None


class StateHead(Struct, array_like=True, gc=False):
    """The elements that never move."""

    version: int
    offset: int
    """Offset in `agent-events` of the record that held the run's last event."""
    index: int
    """That event's index within its record."""


_head = msgspec.msgpack.Decoder(StateHead)


def state_position(value: bytes) -> tuple[int, int]:
    """Return (offset, index) of the last event that a state record has seen, without decoding the rest.

    Raises:
        UnknownStateVersion: a version that this build does not know, or bytes that are no state record.
    """
    try:
        head = _head.decode(value)
    except msgspec.MsgspecError as error:
        raise UnknownStateVersion(f"unreadable bytes ({error})") from None
    if head.version != STATE_VERSION:
        raise UnknownStateVersion(head.version)
    return head.offset, head.index

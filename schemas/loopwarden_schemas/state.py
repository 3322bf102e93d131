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


class StateHead(Struct, array_like=True, gc=False):
    """The elements that never move."""

    version: int
    offset: int
    """Offset in `agent-events` of the record that held the run's last event."""
    index: int
    """That event's index within its record."""


class StateTimes(StateHead, array_like=True, gc=False):
    """The head, and what tells when the state is not used any more. Times are append times in ms."""

    run_id: str
    begun: int
    n: int
    newest_at: int
    ended_at: int | None


class SignatureRecord(Struct, array_like=True, gc=False):
    """A tool and its arguments, once for all calls that share them."""

    tool: str
    args_hash: bytes
    known_poll: bool


class CallRecord(Struct, array_like=True, gc=False):
    """One call in the window."""

    signature: int
    """Index into the record's signatures."""
    event_id: str
    call_id: int | None
    """Its 8-byte hash."""
    result: bytes | None
    """None: pending."""
    unknown_tool: int | None
    """8-byte hash of the name that the error called unknown."""
    lone: bool


class RememberedRecord(Struct, array_like=True, gc=False):
    """A call outside the window whose outcome may still come."""

    call_id: int
    event_id: str
    args_hash: bytes
    known_poll: bool


class GuardRecord(Struct, array_like=True, gc=False):
    """The post-compaction guard while it observes."""

    remaining: int
    count: int
    tool: str | None
    args_hash: bytes
    result: bytes
    event_ids: list[str]


class EnforcementRecord(Struct, array_like=True, gc=False):
    """What became of the run's verdicts."""

    delivered: int
    obeyed: int
    disobeyed: int
    ignored: int
    event_ids: list[str]
    open: list[int]


class StateRecord(StateTimes, array_like=True, gc=False):
    """The whole record."""

    session_id: str | None
    agent_id: str | None
    policy: list[bool | int | None]
    """The resolved policy's values, in the order of `policy.SETTINGS`."""
    signatures: list[SignatureRecord]
    calls: list[CallRecord]
    remembered: list[RememberedRecord]
    seen: bytes
    """8-byte hashes of the newest events, little-endian, oldest first."""
    warnings: list[tuple[str, int, int, int]]
    """Detector, two hashes, how far it was published."""
    guard: GuardRecord
    abort_after_blocks: int | None
    blocked_tool: str | None
    blocked_calls: list[int]
    """Indices into `signatures`."""
    allowances: list[tuple[int, int | None]]
    """Tools, as 8-byte hashes, and until when each is allowed."""
    enforcement: EnforcementRecord
    aborted: bool
    unjudged: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(StateRecord)
_head = msgspec.msgpack.Decoder(StateHead)
_times = msgspec.msgpack.Decoder(StateTimes)


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


def state_times(value: bytes) -> StateTimes:
    """Return the head and the times of a state record that `state_position` took, without decoding the rest."""
    return _times.decode(value)


def encode_state(record: StateRecord) -> bytes:
    """Return the record's bytes."""
    return _encoder.encode(record)


def decode_state(value: bytes) -> StateRecord:
    """Return the record that the bytes are.

    Raises:
        UnknownStateVersion: a version that this build does not know, or bytes that are no state record.
    """
    state_position(value)
    try:
        return _decoder.decode(value)
    except msgspec.MsgspecError as error:
        raise UnknownStateVersion(f"unreadable bytes ({error})") from None


def pack_hash(text: str) -> bytes:
    """Return a hash as it is stored: 32 lower-case hexadecimal digits in 16 bytes, other text behind a zero byte."""
    if len(text) == 32:
        try:
            packed = bytes.fromhex(text)
        except ValueError:
            pass
        else:
            if packed.hex() == text:
                return b"\x01" + packed
    return b"\x00" + text.encode()


def unpack_hash(stored: bytes) -> str:
    """Return the hash that `pack_hash` stored."""
    return stored[1:].hex() if stored[0] else stored[1:].decode()

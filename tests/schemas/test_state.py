from __future__ import annotations

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwarden_schemas.policy import SETTINGS, resolve
from loopwarden_schemas.state import (
    STATE_VERSION,
    CallRecord,
    EnforcementRecord,
    GuardRecord,
    RememberedRecord,
    SignatureRecord,
    StateRecord,
    UnknownStateVersion,
    decode_state,
    encode_state,
    pack_hash,
    state_position,
    unpack_hash,
)

RECORD = StateRecord(
    version=STATE_VERSION,
    offset=2**40,
    index=99,
    run_id="r",
    begun=1,
    n=2,
    newest_at=3,
    ended_at=None,
    session_id=None,
    agent_id="a",
    policy=[getattr(resolve(), setting.attribute) for setting in SETTINGS],
    signatures=[SignatureRecord("read", pack_hash("0" * 32), False)],
    calls=[CallRecord(0, "e", 2**64 - 1, None, None, True), CallRecord(0, "f", None, b"r" * 16, 5, False)],
    remembered=[RememberedRecord(1, "e", pack_hash("opaque"), True)],
    seen=b"12345678",
    warnings=[("ping_pong", 1, 2, -1)],
    guard=GuardRecord(1, 2, "read", pack_hash("x"), b"r" * 16, ["e"]),
    abort_after_blocks=7,
    blocked_tool=None,
    blocked_calls=[0],
    allowances=[(0, None), (2**64 - 1, 2**40)],
    enforcement=EnforcementRecord(1, 2, 3, 4, ["e"], [2**64 - 1]),
    aborted=False,
    unjudged=5,
)


def test_a_record_is_read_again() -> None:
    assert decode_state(encode_state(RECORD)) == RECORD


def test_the_head_never_moves_so_that_any_version_can_be_named() -> None:
    assert msgpack.unpackb(encode_state(RECORD))[:3] == [STATE_VERSION, 2**40, 99]
    assert state_position(encode_state(RECORD)) == (2**40, 99)


@given(st.integers(0, 2**63 - 1), st.integers(0, 99))
def test_the_position_is_read_without_the_rest(offset: int, index: int) -> None:
    changed = msgspec.structs.replace(RECORD, offset=offset, index=index)
    assert state_position(encode_state(changed)) == (offset, index)


@pytest.mark.parametrize("read", [decode_state, state_position])
@pytest.mark.parametrize("version", [0, STATE_VERSION + 1, 2**31])
def test_an_unknown_version_is_named_and_the_way_out_said(read: object, version: int) -> None:
    record = encode_state(msgspec.structs.replace(RECORD, version=version))
    with pytest.raises(
        UnknownStateVersion, match=rf"version must be {STATE_VERSION}, got {version}: .* run that version"
    ):
        read(record)  # type: ignore[operator]


@pytest.mark.parametrize("version", [0, STATE_VERSION + 1])
def test_an_unknown_version_is_named_whatever_the_shape_of_the_rest(version: int) -> None:
    for record in ([version, 5, 6], [version, 5, 6, {"new": "shape"}], [version, 5, 6, *range(50)]):
        with pytest.raises(UnknownStateVersion, match=f"got {version}"):
            decode_state(msgpack.packb(record))


@pytest.mark.parametrize("read", [decode_state, state_position])
@pytest.mark.parametrize(
    "value", [b"", b"\xc1", b"\xc0", b"\x90", b"{}", b"\x80", b"\x93\xa1a\x00\x00", b"\x91" * 5000]
)
def test_bytes_that_are_no_record_are_refused(read: object, value: bytes) -> None:
    with pytest.raises(UnknownStateVersion, match=r"unreadable bytes"):
        read(value)  # type: ignore[operator]


def test_a_record_cut_short_is_refused_wherever_it_was_cut() -> None:
    record = encode_state(RECORD)
    for length in range(len(record)):
        with pytest.raises(UnknownStateVersion):
            decode_state(record[:length])


@given(st.text(max_size=40))
def test_any_hash_is_stored_and_read_again(text: str) -> None:
    assert unpack_hash(pack_hash(text)) == text


@pytest.mark.parametrize(
    "text", ["0" * 32, "A" * 32, "ab" * 16, "é" * 32, " " * 32, "0" * 31 + "\n", "g" * 32, "0" * 64]
)
def test_only_32_lower_case_digits_are_stored_as_16_bytes(text: str) -> None:
    assert unpack_hash(pack_hash(text)) == text
    assert (len(pack_hash(text)) == 17) is (text in ("0" * 32, "ab" * 16))

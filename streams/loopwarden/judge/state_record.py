"""A run's state to and from its record in the changelog. (`loopwarden_schemas.state` has the record's shape.)"""

from __future__ import annotations

import struct
from typing import Any

from loopwarden.judge.enforcement import Enforcement
from loopwarden.judge.guard import Guard
from loopwarden.judge.orders import Orders
from loopwarden.judge.redelivery import Seen
from loopwarden.judge.run_state import Remembered, RunState, expiry
from loopwarden.judge.window import Signature, Window
from loopwarden_schemas.policy import SETTINGS, Policy
from loopwarden_schemas.state import (
    STATE_VERSION,
    CallRecord,
    EnforcementRecord,
    GuardRecord,
    RememberedRecord,
    SignatureRecord,
    StateRecord,
    decode_state,
    encode_state,
    pack_hash,
    state_times,
    unpack_hash,
)


def freeze(state: RunState) -> bytes:
    """Return the state's record."""
    # In the order of their first calls: the same state has the same bytes, however it came about.
    signatures = {call.signature.key: call.signature for call in state.window.calls}
    places = {key: place for place, key in enumerate(signatures)}
    return encode_state(
        StateRecord(
            version=STATE_VERSION,
            offset=state.offset,
            index=state.index,
            run_id=state.run_id,
            begun=state.begun,
            n=state.n,
            newest_at=state.newest_at,
            ended_at=state.ended_at,
            session_id=state.session_id,
            agent_id=state.agent_id,
            policy=[getattr(state.policy, setting.attribute) for setting in SETTINGS],
            signatures=[SignatureRecord(s.tool, pack_hash(s.args_hash), s.known_poll) for s in signatures.values()],
            calls=_calls_record(state.window, places),
            remembered=[
                RememberedRecord(call_id, call.event_id, pack_hash(call.args_hash), call.known_poll)
                for call_id, call in state.remembered.items()
            ],
            seen=struct.pack(f"<{len(state.seen.order)}Q", *state.seen.order),
            warnings=[(*key, bucket) for key, bucket in state.warnings.published.items()],
            guard=_guard_record(state.guard),
            abort_after_blocks=state.policy.abort_after_blocks,
            blocked_tool=state.orders.tool,
            blocked_calls=sorted(places[key] for key in state.orders.calls),
            allowances=list(state.allowances.until.items()),
            enforcement=_enforcement_record(state.enforcement),
            aborted=state.aborted,
            unjudged=state.unjudged,
        )
    )


def thaw(value: bytes) -> RunState:
    """Return the state that a record holds.

    Raises:
        UnknownStateVersion: a version that this build does not know, or bytes that are no state record.
    """
    record = decode_state(value)
    state = RunState(record.run_id, record.begun, _policy((*record.policy, record.abort_after_blocks)))
    state.offset, state.index = record.offset, record.index
    state.n = record.n
    state.newest_at, state.ended_at = record.newest_at, record.ended_at
    state.session_id, state.agent_id = record.session_id, record.agent_id
    signatures = [Signature((s.tool, unpack_hash(s.args_hash)), s.known_poll) for s in record.signatures]
    _refill(state.window, record.calls, signatures)
    state.remembered = {
        call.call_id: Remembered(call.event_id, unpack_hash(call.args_hash), call.known_poll)
        for call in record.remembered
    }
    state.seen = _seen(record.seen)
    state.warnings.published = {(detector, a, b): bucket for detector, a, b, bucket in record.warnings}
    state.guard = _guard(record.guard)
    state.orders = Orders()
    state.orders.tool = record.blocked_tool
    state.orders.calls = {signatures[place].key: None for place in record.blocked_calls}
    state.allowances.until = dict(record.allowances)
    state.enforcement = _enforcement(record.enforcement)
    state.aborted, state.unjudged = record.aborted, record.unjudged
    return state


def expires_at(value: bytes) -> int:
    """Return what `RunState.expires_at` is of a record, at a tenth of what reading the whole record costs."""
    times = state_times(value)
    return expiry(times.newest_at, times.ended_at)


def _calls_record(window: Window, places: dict[tuple[str, str], int]) -> list[CallRecord]:
    return [
        CallRecord(
            places[call.signature.key],
            call.event_id,
            # A call is looked for by its id only while its outcome or its `started` is missing.
            call.call_id if call.result is None or call.lone else None,
            None if call.result is None else bytes.fromhex(call.result),
            call.unknown_tool,
            call.lone,
        )
        for call in window.calls
    ]


def _refill(window: Window, calls: list[CallRecord], signatures: list[Signature]) -> None:
    for call in calls:
        window.record(signatures[call.signature], call.call_id, call.event_id, call.lone)
        if call.result is not None:
            window.complete(window.calls[-1], call.result.hex(), call.unknown_tool)


def _seen(packed: bytes) -> Seen:
    seen = Seen()
    for identity in struct.unpack(f"<{len(packed) // 8}Q", packed):
        seen.add(identity)
    return seen


def _guard_record(guard: Guard) -> GuardRecord:
    if guard.observed is None:
        return GuardRecord(guard.remaining, guard.count, None, b"", b"", [])
    tool, args_hash, result = guard.observed
    return GuardRecord(guard.remaining, guard.count, tool, pack_hash(args_hash), bytes.fromhex(result), guard.event_ids)


def _guard(record: GuardRecord) -> Guard:
    guard = Guard()
    guard.remaining, guard.count = record.remaining, record.count
    if record.tool is not None:
        guard.observed = (record.tool, unpack_hash(record.args_hash), record.result.hex())
        guard.event_ids = record.event_ids
    return guard


def _enforcement_record(enforcement: Enforcement) -> EnforcementRecord:
    return EnforcementRecord(
        enforcement.delivered,
        enforcement.obeyed,
        enforcement.disobeyed,
        enforcement.ignored,
        enforcement.event_ids,
        list(enforcement.open),
    )


def _enforcement(record: EnforcementRecord) -> Enforcement:
    enforcement = Enforcement()
    enforcement.delivered, enforcement.obeyed = record.delivered, record.obeyed
    enforcement.disobeyed, enforcement.ignored = record.disobeyed, record.ignored
    enforcement.event_ids = record.event_ids
    enforcement.open = dict.fromkeys(record.open)
    return enforcement


_policies: dict[tuple[bool | int | None, ...], Policy] = {}


def _policy(values: tuple[bool | int | None, ...]) -> Policy:
    """The policy with these values: nearly all runs share one, and its digest is computed once."""
    policy = _policies.get(values)
    if policy is None:
        if len(_policies) >= 1024:
            _policies.clear()
        names = (*(setting.attribute for setting in SETTINGS), "abort_after_blocks")
        fields: dict[str, Any] = dict(zip(names, values, strict=True))
        policy = _policies[values] = Policy(**fields)
    return policy

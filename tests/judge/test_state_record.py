from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from loopwarden.judge import RunState, expires_at, freeze, judge, thaw
from loopwarden_schemas.codec import event_from_value
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.state import MAX_STATE_BYTES, UnknownStateVersion, state_position
from loopwarden_schemas.structs import PolicyApplied, Rejected

ALERT = {"enabled": True, "historySize": 256, "warningThreshold": 1, "unknownToolThreshold": 1}
LAST_UNKNOWN = {"error": "unknown tool: nope"}


def fold(wire_events: Iterator[dict[str, Any]], policy: dict[str, Any]) -> RunState:
    document, state = PolicyDocument.from_value({"tools": {"loopDetection": policy}}), None
    for number, wire_event in enumerate(wire_events):
        event = event_from_value({"event_id": f"{number:064}", "run_id": "r" * 256, "ts": 2**52 + number, **wire_event})
        assert not isinstance(event, (Rejected, PolicyApplied)), event
        state = judge(state, event, document).state
    assert state is not None
    return state


def finished(number: int, **fields: Any) -> dict[str, Any]:
    """A lone outcome that shares nothing with others and is as large as the limits allow."""
    longest = {"tool": f"{number:03}".ljust(256, "t"), "args_hash": f"{number:03}".ljust(64, "h")}
    ids = {"call_id": f"{number}", "session_id": "s" * 256, "agent_id": "a" * 256}
    return {"type": "tool_call.finished", **longest, **ids, **fields}


def the_worst_events() -> Iterator[dict[str, Any]]:
    # As many published warnings as are remembered, with the longest name of a detector.
    for number in range(64):
        yield finished(number, known_poll=True, result="x")
        yield {**finished(number, known_poll=True), "type": "tool_call.started", "call_id": f"again {number}"}
    # As many calls as are remembered: they will leave the window while they are pending.
    for number in range(64, 128):
        yield finished(number)
    # A guard that has seen as many equal outcomes as it shows.
    yield {"type": "compaction", "succeeded": True}
    for number in range(10):
        yield finished(128, call_id=f"guarded {number}", result="x")
    # A window of calls that share nothing, none of which has met its `started`, each of an unknown tool.
    for number in range(200, 456):
        yield finished(number, error=f"unknown tool: {number}")
    # As many allowances as a run has, and blocked calls that may still turn out to have been refused.
    for number in range(64):
        yield {"type": "operator.override", "action": "allow", "tool": f"allowed {number}", "until": 2**53}
    for number in range(64):
        yield {**finished(455, call_id=f"blocked {number}"), "type": "tool_call.started", "verdict_id": "v"}


def test_the_largest_state_fits_into_128_kib() -> None:
    policy = {**ALERT, "postCompactionGuard": {"windowSize": 256}}
    state = fold(the_worst_events(), policy)
    assert len(state.window.signatures) == len(state.window.calls) == 256
    assert all(call.lone and call.unknown_tool for call in state.window.calls)
    assert (len(state.remembered), len(state.seen.order), len(state.warnings.published)) == (64, 128, 64)
    assert len(state.guard.event_ids) == 10
    assert state.orders.tool is not None
    assert (len(state.allowances.until), len(state.enforcement.open)) == (64, 64)
    assert len(state.enforcement.event_ids) == 10
    record = freeze(state)
    assert 120 * 1024 < len(record) <= MAX_STATE_BYTES
    assert freeze(thaw(record)) == record


@pytest.mark.parametrize("letter", "İȺ")
def test_a_tool_name_that_outgrows_the_limit_in_lower_case_is_refused(letter: str) -> None:
    """Tools are kept in lower case, and these letters are larger there: a state could outgrow its bound."""
    wire_event = {**finished(1), "event_id": "e", "run_id": "r", "ts": 1}
    assert not isinstance(event_from_value({**wire_event, "tool": letter * 85}), Rejected)
    rejected = event_from_value({**wire_event, "tool": letter * 86})
    assert isinstance(rejected, Rejected)
    assert rejected.detail.startswith("tool: must be at most 256 bytes in lower case, got 258")


def test_an_ordinary_full_window_is_about_5_kb() -> None:
    def events() -> Iterator[dict[str, Any]]:
        for number in range(64):
            call = {"call_id": f"toolu_{uuid.UUID(int=number).hex[:24]}", "tool": "read", "args": {"path": number}}
            for kind in ("tool_call.started", "tool_call.finished"):
                yield {
                    "type": kind,
                    "event_id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {number}")),
                    "run_id": str(uuid.UUID(int=1)),
                    "session_id": str(uuid.UUID(int=2)),
                    "agent_id": "main",
                    "result": number,
                    **call,
                }

    size = len(freeze(fold(events(), {"enabled": True})))
    assert 3500 < size < 5500


def test_a_state_record_carries_the_position_of_the_last_event() -> None:
    state = fold(iter([finished(1)]), ALERT)
    state.offset, state.index = 2**40, 99
    record = freeze(state)
    assert state_position(record) == (2**40, 99)
    assert (thaw(record).offset, thaw(record).index) == (2**40, 99)


@pytest.mark.parametrize("ended", [False, True])
def test_when_a_state_is_over_is_known_without_reading_it_whole(ended: bool) -> None:
    state = fold(iter([finished(1), *([{"type": "run.finished"}] if ended else [])]), ALERT)
    assert expires_at(freeze(state)) == state.expires_at
    assert (state.ended_at is not None) == ended


def test_a_record_cut_short_anywhere_is_refused_and_never_half_read() -> None:
    record = freeze(fold(iter([finished(1), finished(2, result="x"), finished(1, **LAST_UNKNOWN)]), ALERT))
    for length in range(len(record)):
        with pytest.raises(UnknownStateVersion):
            thaw(record[:length])

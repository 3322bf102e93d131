"""Orders that an event changes although its own call is another one."""

from __future__ import annotations

from typing import Any

from .stories import UNKNOWN, finished, fold, of_call, of_tool, orders_at, started

NO_BREAKER: dict[str, Any] = {"globalCircuitBreakerThreshold": 99}
SOON = {"warningThreshold": 2, "criticalThreshold": 3, "detectors": {"pingPong": False}, **NO_BREAKER}


def test_a_third_call_uncovers_the_block_that_a_ping_pong_warning_hid() -> None:
    turns = [turn for number in range(5) for turn in (finished("a", result="x"), finished("b", result=number))]
    events = [*turns, started("c")]
    played = fold(events, warningThreshold=4, criticalThreshold=5, **NO_BREAKER)
    assert orders_at(played, 8) == {of_call("a")}
    assert orders_at(played, 9) == set()
    assert orders_at(played, 10) == {of_call("a")}


def test_the_order_for_a_tool_covers_calls_however_far_back_they_are() -> None:
    others = [finished("read", args, **UNKNOWN) for args in "bcd"]
    events = [*[finished("read", **UNKNOWN)] * 3, *others]
    played = fold(events, unknownToolThreshold=6, **SOON)
    assert orders_at(played, 4) == {of_call("read")}
    assert orders_at(played, 5) == {of_tool("read")}
    assert [verdict["action"] for verdict in played.verdicts if verdict["event_id"] == "5"] == ["block", "clear"]


def test_what_the_order_for_a_tool_covered_is_blocked_again_when_it_is_lifted() -> None:
    others = [finished("read", args, **UNKNOWN) for args in "bcd"]
    events = [*[finished("read", **UNKNOWN)] * 3, *others, started("other")]
    played = fold(events, unknownToolThreshold=3, **SOON)
    assert orders_at(played, 5) == {of_tool("read")}
    assert orders_at(played, 6) == {of_call("read")}
    assert [verdict["action"] for verdict in played.verdicts if verdict["event_id"] == "6"] == ["block", "clear"]


def test_an_outcome_that_left_the_window_does_not_spoil_the_evidence_of_a_ping_pong() -> None:
    events = [finished("a", result=1), finished("b", result="x"), finished("a", result=2), finished("b", result="x")]
    played = fold(events, historySize=3, warningThreshold=3, criticalThreshold=4, **NO_BREAKER)
    assert orders_at(played, 2) == set()
    assert orders_at(played, 3) == {of_call("a")}


def test_a_call_executed_as_another_one_uncovers_the_block_that_its_alternation_hid() -> None:
    same = [finished("b", result="x")] * 5
    turns = [finished("a", result=1), finished("b", result="x"), finished("a", result=2)]
    pending = [started("b", call_id="b1"), finished("a", result=3)]
    events = [*same, *turns, *pending, finished("d", call_id="b1", result="x")]
    played = fold(events, warningThreshold=4, criticalThreshold=5, **NO_BREAKER)
    assert orders_at(played, 4) == {of_call("b")}
    assert orders_at(played, 9) == set()
    assert orders_at(played, 10) == {of_call("b")}

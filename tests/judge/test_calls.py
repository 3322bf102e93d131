"""How a call is put together where the vectors do not say."""

from __future__ import annotations

from typing import Any

import pytest

from .stories import finished, fold, of_call, orders_at, started

SMALL = {"warningThreshold": 2, "criticalThreshold": 3, "globalCircuitBreakerThreshold": 99}
NO_PING_PONG = {"detectors": {"pingPong": False}}


def what_was_decided(events: list[dict[str, Any]], **policy: Any) -> list[tuple[Any, ...]]:
    played = fold(events, **{**SMALL, **policy})
    return [tuple(decision.values()) for decision in played.decisions]


def test_a_void_outcome_of_a_call_outside_the_window_does_not_bring_it_back() -> None:
    pushed_out = [started("a", call_id="1"), started("b", call_id="2"), started("c", call_id="3")]
    void_then_real = [finished("a", call_id="1"), finished("b", call_id="2", result="x")]
    # Had it come back, b would have left the window, and this call of b would be the first.
    events = [*pushed_out, *void_then_real, finished("b", result="x"), started("b")]
    decided = what_was_decided(events, historySize=2, warningThreshold=1, **NO_PING_PONG)
    assert decided == [(5, "warn", "generic_repeat", 1), (6, "warn", "generic_repeat", 1)]


def test_a_call_outside_the_window_is_recorded_with_its_outcome_once() -> None:
    pushed_out = [started("a", call_id="1"), started("b"), started("c")]
    events = [*pushed_out, finished("a", call_id="1", result="x"), finished("a", call_id="1", result="x")]
    # The second outcome is a lone one, and so decided: a warning, for the window holds one call of it.
    decided = what_was_decided(events, historySize=2, warningThreshold=1, **NO_PING_PONG)
    assert decided == [(4, "warn", "generic_repeat", 1)]


def test_what_a_blocked_call_said_of_a_poll_holds_for_its_outcome() -> None:
    events = [
        *[finished("watch", result="x")] * 3,
        started("watch", call_id="1", known_poll=True),
        {"type": "tool_call.finished", "tool": "watch", "call_id": "1", "result": "x"},
        started("watch"),
    ]
    decided = what_was_decided(events)
    assert decided[-2:] == [(3, "block", "generic_repeat", 3), (5, "block", "known_poll_no_progress", 4)]


def test_a_poll_that_was_executed_as_another_call_makes_that_no_poll() -> None:
    poll, kill = {"action": "poll"}, {"action": "kill"}
    events = [
        *[finished("process", poll, result="x")] * 3,
        started("process", poll, call_id="1"),
        *[finished("process", kill, call_id="1", result="x")] * 3,
        started("process", kill),
    ]
    assert what_was_decided(events)[-1] == (7, "block", "generic_repeat", 3)
    assert orders_at(fold(events, **SMALL), 7) == {of_call("process", poll), of_call("process", kill)}


def test_a_call_is_a_poll_as_long_as_the_window_holds_one_that_said_so() -> None:
    said, silent = finished("watch", result="x", known_poll=True), finished("watch", result="x", known_poll=False)
    assert what_was_decided([said, silent, silent])[-1] == (2, "warn", "known_poll_no_progress", 2)
    assert what_was_decided([silent, said, silent])[-1] == (2, "warn", "known_poll_no_progress", 2)
    assert what_was_decided([silent, silent, silent])[-1] == (2, "warn", "generic_repeat", 2)


def test_without_a_call_id_a_started_is_never_late() -> None:
    assert what_was_decided([finished("a", result="x"), finished("a", result="x"), started("a")]) == [
        (2, "warn", "generic_repeat", 2)
    ]


def test_a_refusal_without_a_call_id_removes_nothing() -> None:
    refused = {"type": "tool_call.blocked", "tool": "a", "args": "a"}
    assert what_was_decided([started("a"), started("a"), refused, started("a")]) == [(3, "warn", "generic_repeat", 2)]


def test_an_event_that_takes_the_tool_but_no_arguments_keeps_the_announced_ones() -> None:
    no_args = {"type": "tool_call.finished", "tool": "b", "call_id": "1", "result": "x"}
    assert what_was_decided([started("a", call_id="1"), no_args, finished("b", result="x"), started("b")]) == [
        (3, "warn", "generic_repeat", 2)
    ]


@pytest.mark.parametrize("ends", [{"type": "run.finished"}, {"type": "compaction", "succeeded": True}])
def test_a_compaction_leaves_the_window_and_an_end_does_not(ends: dict[str, Any]) -> None:
    again = {"type": "run.started"}
    decided = what_was_decided([*[finished("a", result="x")] * 2, ends, again, started("a")])
    assert decided == ([] if ends["type"] == "run.finished" else [(4, "warn", "generic_repeat", 2)])


def test_a_call_id_that_is_remembered_again_is_the_newest() -> None:
    def refused(*numbers: int) -> list[dict[str, Any]]:
        return [started("a", call_id=f"{number}") for number in numbers]

    blocking = [finished("a", result="x")] * 2
    after = [finished("a", call_id="0", result="x"), finished("a", call_id="1", result="x")]
    events = [*blocking, *refused(*range(64), 0, 64), *after]
    decided = what_was_decided(events, warningThreshold=1, criticalThreshold=2)
    assert len(decided) == 1 + 66 + 1
    # The outcome of call 0 has no decision; call 1 was the oldest remembered and is a lone one now.
    assert decided[-1] == (len(events) - 1, "block", "generic_repeat", 3)


def test_a_day_of_idleness_counts_from_the_newest_append_time_not_from_the_last() -> None:
    def at(*times: int) -> list[dict[str, Any]]:
        return [{**finished("a", result="x"), "ts": time} for time in times]

    day = 24 * 3600 * 1000
    assert what_was_decided(at(1000, 990, 990 + day, 1000 + day)) == [
        (2, "warn", "generic_repeat", 2),
        (3, "block", "generic_repeat", 3),
    ]
    assert what_was_decided(at(1000, 990, 1001 + day)) == []

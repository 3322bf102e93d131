"""Which calls a verdict names: the newest ten counted, oldest first."""

from __future__ import annotations

from typing import Any

import pytest

from .stories import UNKNOWN, finished, fold, started

ONLY_LATE = {"historySize": 60, "warningThreshold": 12, "criticalThreshold": 13, "globalCircuitBreakerThreshold": 50}


def evidence_of_last(events: list[dict[str, Any]], detector: str, **policy: Any) -> Any:
    verdict = fold(events, **{**ONLY_LATE, **policy}).verdicts[-1]
    assert verdict["detector"] == detector
    return verdict["evidence"]


@pytest.mark.parametrize("poll", [False, True])
def test_a_repeated_call_names_its_newest_ten_and_no_others(poll: bool) -> None:
    call = finished("a", result="x", known_poll=poll)
    events = [*[call] * 6, finished("other"), *[call] * 6, started("a")]
    names = ["2", "3", "4", "5", *(str(at) for at in range(7, 13))]
    assert evidence_of_last(events, "known_poll_no_progress" if poll else "generic_repeat") == names


def test_only_calls_with_the_streaks_outcome_are_named() -> None:
    events = [*[finished("a", result="old")] * 3, started("a"), *[finished("a", result="x")] * 2, started("a")]
    soon = {"warningThreshold": 1, "criticalThreshold": 2, "detectors": {"pingPong": False}}
    assert evidence_of_last(events, "generic_repeat", **soon) == ["4", "5"]


def test_a_ping_pong_names_its_alternating_tail_without_the_call_at_hand() -> None:
    events = [finished("c"), *[finished(tool, result=tool) for tool in "abababababab"], started("a")]
    assert evidence_of_last(events, "ping_pong") == [str(at) for at in range(3, 13)]


def test_an_unknown_tool_names_the_calls_that_failed_in_a_row() -> None:
    events = [finished("a", result="x"), finished("a", 1, **UNKNOWN), finished("a", 2, **UNKNOWN), started("a", 3)]
    assert evidence_of_last(events, "unknown_tool_repeat", unknownToolThreshold=2) == ["1", "2"]


def test_the_guard_names_the_outcomes_it_observed() -> None:
    calls = [
        event
        for at in range(12)
        for event in (started("a", call_id=f"{at}"), finished("a", call_id=f"{at}", result="x"))
    ]
    events = [{"type": "compaction", "succeeded": True}, *calls]
    policy = {"postCompactionGuard": {"windowSize": 12}, "enabled": None}
    assert evidence_of_last(events, "compaction_loop_persisted", **policy) == [str(at) for at in range(6, 25, 2)]


def test_a_call_is_named_by_its_started_and_a_long_id_by_its_hash() -> None:
    long_id = "x" * 65
    events = [{**started("a", call_id="1"), "event_id": long_id}, finished("a", call_id="1", result="x"), started("a")]
    evidence = evidence_of_last(events, "generic_repeat", warningThreshold=1)
    assert evidence == ["fe55772baf900dc819228ac7c2afb5d4"]  # XXH3-128 of the 65 bytes

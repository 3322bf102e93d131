from __future__ import annotations

import pytest

from loopwarden.testing import ToldRun, judged, run
from loopwarden_schemas.codec import event_from_value
from loopwarden_schemas.structs import Rejected

STRICT = {
    "tools": {
        "loopDetection": {"enabled": True, "warningThreshold": 2, "criticalThreshold": 3},
        "loopwarden": {"abortAfterBlocks": 2},
    }
}


def test_a_call_is_its_start_and_its_outcome_a_second_apart() -> None:
    first, second = run("r", agent_id="a", session_id="s").call("read", {"path": "/x"}, result=None).events
    assert first["type"] == "tool_call.started" and second["type"] == "tool_call.finished"
    assert first["call_id"] == second["call_id"] and first["args"] == {"path": "/x"}
    assert second["ts"] - first["ts"] == 1000
    assert (second["result"], second["agent_id"], second["session_id"]) == (None, "a", "s")


def test_without_an_outcome_a_call_returned_nothing() -> None:
    finished = run().call("read").events[1]
    assert not {"result", "error"} & finished.keys()


def test_repeat_makes_a_call_so_many_times_in_all() -> None:
    told = run().call("read", result="same").repeat(1).repeat(4)
    assert len(told.events) == 8
    assert len({event["event_id"] for event in told.events}) == 8
    assert len({event["call_id"] for event in told.events}) == 4


def test_repeat_after_another_call_is_about_that_one() -> None:
    told = run().call("read", result="same").repeat(3).call("write").repeat(2)
    assert [event["tool"] for event in told.events[::2]] == ["read"] * 3 + ["write"] * 2


def test_functions_are_asked_with_the_number_of_the_call() -> None:
    told = run().call("poll", lambda number: {"page": number}, result=lambda number: number * 10).repeat(3)
    assert [event["args"]["page"] for event in told.events[::2]] == [1, 2, 3]
    assert [event["result"] for event in told.events[1::2]] == [10, 20, 30]
    judged(told, STRICT).expect_none(reason="generic_repeat")


def test_repeat_without_a_call_and_backwards_is_refused() -> None:
    with pytest.raises(ValueError, match="must follow a call"):
        run().repeat(2)
    with pytest.raises(ValueError, match="must be at least 3"):
        run().call("read").repeat(3).repeat(2)


def test_everything_that_is_told_is_an_event_of_the_contract() -> None:
    told = run().begin(cause="test").call("read", error="gone", known_poll=True).refused("read").compaction("manual")
    told.override("allow", tool="read").finish()
    for event in told.events:
        assert not isinstance(event_from_value(event), Rejected), event


def test_a_run_that_waits_for_more_than_a_day_is_a_fresh_one() -> None:
    def told(hours: float) -> ToldRun:
        return run().call("read", result="same").repeat(2).wait(hours=hours).call("read", result="same")

    judged(told(23), STRICT).expect("warn", at_call=3)
    judged(told(25), STRICT).expect_none()


def test_refused_calls_end_the_run_where_the_policy_says_so() -> None:
    told = run().call("read", result="same").repeat(3).refused("read").repeat(2)
    judged(told, STRICT).expect("block", phase="order", at_call=3).expect("abort", "block_ignored", at_call=5)


def test_a_loop_across_a_compaction_ends_the_run() -> None:
    told = run().call("read", result="same").compaction().call("read", result="same").repeat(3)
    judged(told, {"tools": {}}).expect("abort", "compaction_loop_persisted", at_call=4)
    judged(run().compaction("manual").call("read", result="same").repeat(3), {"tools": {}}).expect_none()

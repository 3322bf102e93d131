from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwarden.judge import RunState, judge
from loopwarden.replay import Folder, fold_events
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import (
    Compaction,
    Event,
    EventOfRun,
    PolicyApplied,
    RunFinished,
    RunStarted,
    ToolCallFinished,
    ToolCallStarted,
)

HOUR_MS = 3600 * 1000


def document(warning: int, **agents: int) -> PolicyDocument:
    def block(threshold: int) -> dict[str, Any]:
        return {"loopDetection": {"enabled": True, "warningThreshold": threshold, "criticalThreshold": threshold + 1}}

    overlays = [{"id": agent, "tools": block(threshold)} for agent, threshold in agents.items()]
    return PolicyDocument.from_value({"tools": block(warning), "agents": {"list": overlays}})


def call(run_id: str, number: int, at: int, **fields: Any) -> list[EventOfRun]:
    """The events of one call: always the same one, with the same result."""
    made = {"run_id": run_id, "call_id": str(number), "tool": "read", "args": {}, "ts": at, "append_time": at, **fields}
    return [
        ToolCallStarted(event_id=f"{number}s", **made),
        ToolCallFinished(event_id=f"{number}f", result="same", **made),
    ]


def calls(run_id: str, count: int, at: int = 0, **fields: Any) -> list[EventOfRun]:
    return [event for number in range(count) for event in call(run_id, number, at + number, **fields)]


def applied(number: int, **fields: Any) -> PolicyApplied:
    return PolicyApplied(event_id=f"p{number}", ts=0, number=number, digest="-", **fields)


def warnings(events: list[Event], policy: PolicyDocument = DEFAULT_DOCUMENT, agent: str | None = None) -> list[str]:
    """The runs that were warned, once for each warning decided."""
    folded = fold_events(events, policy, agent)
    return [decision.run_id for each in folded for decision in each.decisions if decision.action == "warn"]


def test_each_run_is_counted_by_itself() -> None:
    interleaved = [event for pair in zip(calls("a", 3), calls("b", 3), strict=True) for event in pair]

    assert warnings(interleaved, document(2)) == ["a", "b"]
    assert warnings(interleaved, document(3)) == []


def test_a_policy_holds_for_the_runs_that_begin_after_it() -> None:
    first, *rest = calls("before", 3)
    events = [first, applied(1, policy=document(2).value), *rest, *calls("after", 3)]

    assert warnings(events) == ["after"]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (applied(4, policy=document(2).value), "number: must not be below 5, the policy in force, got 4"),
        (applied(6), "the document of policy 6 must be inline"),
        (applied(6, policy="strict"), "policy: must be an object, got 'strict'"),
    ],
)
def test_a_policy_that_cannot_be_taken_is_rejected_and_the_one_in_force_stays(event: PolicyApplied, why: str) -> None:
    folder = Folder()
    folder.fold(applied(5, policy=document(3).value))

    rejected = folder.fold(event).rejected

    assert rejected is not None
    assert rejected.reason == "unknown_policy"
    assert why in rejected.detail
    assert folder.policy.value == document(3).value


def test_the_policy_in_force_may_be_named_again_as_in_each_partition_of_a_topic() -> None:
    folder = Folder()
    folder.fold(applied(5, policy=document(3).value))

    assert folder.fold(applied(5)).rejected is None
    assert folder.policy.value == document(3).value


def test_an_agent_is_supplied_to_events_that_name_none() -> None:
    policy = document(9, named=2)

    assert warnings([*calls("r", 3)], policy, "named") == ["r"]
    assert warnings([*calls("r", 3, agent_id="other")], policy, "named") == []
    assert warnings([*calls("r", 3)], policy) == []


def test_a_payload_without_canonical_json_is_rejected_and_changes_nothing() -> None:
    folder = Folder(document(2))
    for event in calls("r", 2):
        folder.fold(event)

    rejected = folder.fold(call("r", 7, 5, args={"a": math.nan})[0]).rejected

    assert rejected is not None
    assert rejected.reason == "invalid_payload"
    assert [decision.count for decision in folder.fold(call("r", 8, 6)[0]).decisions] == [2]


def test_it_says_when_the_guard_is_armed() -> None:
    compaction = Compaction(event_id="c", run_id="r", ts=0, succeeded=True, trigger="overflow")
    failed = Compaction(event_id="d", run_id="s", ts=0, succeeded=False)

    assert [each.armed for each in fold_events([compaction, failed])] == [3, 0]


def test_events_after_a_runs_end_are_not_judged() -> None:
    end = RunFinished(event_id="end", run_id="r", ts=1, append_time=1)
    again = RunStarted(event_id="again", run_id="r", ts=9, append_time=9)
    late = [event for number in range(10, 13) for event in call("r", number, number)]

    assert warnings([*calls("r", 1), end, *late], document(2)) == []
    assert warnings([*calls("r", 1), end, again, *late], document(2)) == ["r"]


def test_memory_is_bounded_by_the_runs_that_are_alive() -> None:
    folder = Folder(document(2))
    most = 0
    for number in range(10_000):
        for event in calls(str(number), 1, at=number * HOUR_MS):
            folder.fold(event)
        most = max(most, folder.runs_held)

    assert most < 2000
    assert folder.ambiguous == 0


def test_a_run_that_may_continue_one_that_was_let_go_is_counted() -> None:
    folder = Folder(document(2))
    for number in range(2_000):
        folder.fold(call(str(number), 0, at=number * HOUR_MS)[0])

    folder.fold(call("0", 1, at=1)[0])
    folder.fold(call("new", 1, at=2_001 * HOUR_MS)[0])

    assert folder.ambiguous == 1


steps = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["call", "call", "call", "end", "start"]),
        st.sampled_from([0, 1, HOUR_MS // 2, 2 * HOUR_MS, 30 * HOUR_MS]),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(steps)
def test_letting_states_go_changes_no_verdict(history: list[tuple[str, str, int]]) -> None:
    events: list[EventOfRun] = []
    at = 0
    for number, (run_id, kind, later) in enumerate(history):
        at += later
        if kind == "call":
            events += call(run_id, number, at)
        else:
            ends = RunFinished if kind == "end" else RunStarted
            events.append(ends(event_id=f"{number}e", run_id=run_id, ts=at, append_time=at))

    policy = document(2)
    states: dict[str, RunState] = {}
    expected = []
    for event in events:
        states[event.run_id], _, verdicts = judge(states.get(event.run_id), event, policy)
        expected += verdicts

    folder = Folder(policy)
    folder._sweep_at = 0
    found = []
    for event in events:
        found += folder.fold(event).verdicts
        folder._sweep_at = 0

    assert found == expected

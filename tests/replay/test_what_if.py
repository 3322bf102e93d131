"""The course of runs under other policies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwarden.judge import RunState, judge
from loopwarden.replay import Course, LogPart, RunExported, RunUnder, Spared, WhatIf, outcome_of
from loopwarden_schemas.codec import encode_event, event_from_value
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import PolicyApplied, Rejected

from .logs import Log, partitions


def policy(warning: int, critical: int, **more: Any) -> PolicyDocument:
    block = {"enabled": True, "warningThreshold": warning, "criticalThreshold": critical}
    return PolicyDocument.from_value({"tools": {"loopDetection": block, "loopwarden": more}})


def wire(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"event_id": f"e{at}", "run_id": "r", "ts": at, **event} for at, event in enumerate(events)]


def calls(count: int, **outcome: Any) -> list[dict[str, Any]]:
    """The same call again and again."""
    found: list[dict[str, Any]] = []
    for number in range(count):
        call = {"call_id": f"c{number}", "tool": "read", "args": {"path": "x"}}
        found.append({"type": "tool_call.started", **call})
        found.append({"type": "tool_call.finished", **call, "result": "same", **outcome})
    return found


def run_under(events: list[dict[str, Any]], *policies: PolicyDocument | None, **part: Any) -> RunUnder:
    what_if = WhatIf(LogPart(**part), policies)
    for at, value in enumerate(wire(events)):
        event = event_from_value(value)
        assert not isinstance(event, Rejected), event
        what_if.take_event(event, at)
    [run] = what_if.runs()
    return run


def test_a_lower_threshold_comes_earlier_and_spares_the_calls_from_there_on() -> None:
    run = run_under(calls(10), policy(5, 8), policy(2, 4))

    old, new = run.courses
    # The warning comes with the call after so many equal ones; the order ahead of the call that would be blocked.
    assert (old.warned_at, old.blocked_at, old.spared.calls) == (6, 8, 2)
    assert (new.warned_at, new.blocked_at, new.spared.calls) == (3, 4, 6)


def test_what_calls_took_is_summed_where_events_carry_it() -> None:
    usage = {"duration_ms": 500.0, "usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.25}}

    [course] = run_under(calls(10, **usage), policy(2, 4)).courses

    assert course.spared == Spared(6, 3000.0, 90, 1.5)


def test_without_durations_the_append_times_of_start_and_outcome_tell() -> None:
    [course] = run_under(calls(10), policy(2, 4)).courses

    assert course.spared.milliseconds == 6


def test_calls_after_an_abort_are_spared_until_the_run_begins_again() -> None:
    aborting = policy(2, 4, abortAfterBlocks=2)
    other = {"call_id": "x", "tool": "write", "args": {}}
    after = [{"type": "tool_call.started", **other}, {"type": "tool_call.finished", **other, "result": 1}]

    [course] = run_under([*calls(7), *after, {"type": "run.started"}, *after], aborting).courses

    assert (course.aborted_at, course.spared.calls) == (6, 4)


def test_a_policy_that_only_warns_does_not_get_in_the_way() -> None:
    [course] = run_under(calls(5), policy(2, 9)).courses

    assert (course.warned_at, course.stops) == (3, False)


def test_an_order_that_no_call_meets_does_not_get_in_the_way() -> None:
    [course] = run_under(calls(4), policy(2, 4)).courses

    assert (course.blocked_at, course.stops) == (4, False)


def test_a_person_who_aborts_a_run_is_no_policy() -> None:
    [course] = run_under([*calls(1), {"type": "operator.override", "action": "abort"}], policy(2, 4)).courses

    assert course == Course()


@pytest.mark.parametrize("given", [0, 5])
def test_a_run_that_is_not_all_in_its_file_is_left_out(given: int) -> None:
    what_if = WhatIf(LogPart(), [policy(2, 4)])
    what_if.take_exported(RunExported("r", 0, 6, 6))
    for at, value in enumerate(wire(calls(3))[:given]):
        event = event_from_value(value)
        assert not isinstance(event, Rejected), event
        what_if.take_event(event, at)

    assert (what_if.runs(), what_if.not_whole()) == ([], {"cut_short": ["r"]})


def test_refused_calls_of_the_history_are_counted_apart() -> None:
    run = run_under([*calls(1), {"type": "tool_call.blocked", "tool": "read", "call_id": "b"}], policy(2, 4))

    assert (run.calls, run.refused) == (1, 1)


def test_a_call_that_was_announced_and_then_refused_was_not_made_and_so_is_not_spared() -> None:
    usage = {"usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.25}}
    refused: list[dict[str, Any]] = []
    for number in range(4, 8):
        call = {"call_id": f"c{number}", "tool": "read", "args": {"path": "x"}}
        refused += [{"type": "tool_call.started", **call, **usage}, {"type": "tool_call.blocked", **call}]

    [course] = run_under([*calls(4), *refused], policy(2, 4)).courses

    assert (course.blocked_at, course.spared, course.stops) == (4, Spared(), False)


def test_without_a_policy_the_ones_applied_in_the_log_hold() -> None:
    strict = policy(2, 4)
    applied = {"type": "policy.applied", "number": 0, "digest": strict.digest, "policy": strict.value}

    run = run_under([applied, *calls(10)], None, policy(5, 8))

    assert [course.blocked_at for course in run.courses] == [4, 8]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (None, "unknown"),
        ("done, resolved", "resolved"),
        ("Completed.", "resolved"),
        ("done, unresolved", "unresolved"),
        ("max_turns, unresolved", "unresolved"),
        ("not done", "unresolved"),
        ("bye", "unknown"),
    ],
)
def test_the_words_of_a_reason_tell_the_outcome(reason: str | None, outcome: str) -> None:
    assert outcome_of(reason) == outcome


def test_reasons_that_are_given_are_the_only_ones() -> None:
    given_reasons = frozenset({"bye"})

    assert [outcome_of(reason, given_reasons) for reason in ("Bye ", "done", None)] == [
        "resolved",
        "unresolved",
        "unknown",
    ]


@settings(max_examples=25)
@given(partitions(), st.integers(1, 3))
def test_the_course_is_that_of_the_judge_alone_whatever_else_is_tried(log: Log, shards: int) -> None:
    documents = [*log.archive.values()]
    runs: dict[str, RunUnder] = {}
    for shard in range(shards):
        what_if = WhatIf(log.part(shard=shard, shards=shards), [*documents, None])
        for offset, record in enumerate(log.records):
            what_if.take(offset, record.append_time, record.key, record.value, None)
        runs.update({run.run_id: run for run in what_if.runs()})

    for number, document in enumerate(documents):
        assert {name: first_verdicts(name, log, document) for name in runs} == {
            name: (course.warned_at is not None, course.blocked_at is not None, course.aborted_at is not None)
            for name, run in runs.items()
            for course in [run.courses[number]]
        }
    actions = {(each.verdict.run_id, each.verdict.action) for each in log.published if each.verdict.detector}
    assert {name for name, run in runs.items() if run.courses[-1].blocked_at} == {
        name for name, action in actions if action == "block"
    }


def first_verdicts(run_id: str, log: Log, document: PolicyDocument) -> tuple[bool, bool, bool]:
    """Whether the judge warns about, blocks and aborts a run under a policy."""
    from loopwarden_schemas.codec import decode_record

    state: RunState | None = None
    actions: set[str] = set()
    for record in log.records:
        for event in decode_record(record.value, record.append_time) if record.key == run_id.encode() else ():
            if isinstance(event, (Rejected, PolicyApplied)):
                continue
            state, _, verdicts = judge(state, event, document)
            actions |= {verdict.action for verdict in verdicts if verdict.detector is not None}
    return "warn" in actions, "block" in actions, "abort" in actions


def test_a_run_that_is_not_seen_whole_is_left_out() -> None:
    what_if = WhatIf(LogPart(partitions=1, whole_log=False), [policy(2, 4)])
    for at, value in enumerate(wire(calls(3))):
        what_if.take(at, at, b"r", encode_event(value), None)

    assert (what_if.runs(), what_if.not_whole()) == ([], {"truncated": ["r"]})

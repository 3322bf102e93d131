"""What a timeline says of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from loopwarden.judge import RunState, judge
from loopwarden.recordings import recordings
from loopwarden.report import Timeline, TimelineBuilder, timeline
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import Event, PolicyApplied, Verdict

from .conftest import STRICT, Log, events_of

CALLS_AND_REFUSED = {
    "same-call-exec": (40, range(9, 41)),
    "same-call-read": (40, range(9, 41)),
    "poll": (30, range(10, 31)),
    "edit-and-check": (24, range(0)),
    "changing-result": (24, range(0)),
    "loop-across-compaction": (40, range(0)),
}
"""recordings/README.md."""


def judged(events: tuple[Event, ...], policy: PolicyDocument = STRICT) -> Iterator[Verdict]:
    state: RunState | None = None
    for event in events:
        assert not isinstance(event, PolicyApplied)
        state, _, verdicts = judge(state, event, policy)
        yield from verdicts


@pytest.mark.parametrize("name", CALLS_AND_REFUSED)
def test_each_refused_call_of_a_recording_is_a_blocked_cell(recorded: Callable[[str], Timeline], name: str) -> None:
    run = recorded(name)
    calls, refused = CALLS_AND_REFUSED[name]
    assert len(run.cells) == run.totals.calls == calls
    assert [number for number, cell in enumerate(run.cells, 1) if cell.outcome == "blocked"] == list(refused)
    assert all(cell.decision == "block" and cell.obeyed for cell in run.cells if cell.outcome == "blocked")


def test_the_cells_of_a_loop_share_one_signature_and_its_streak_grows(recorded: Callable[[str], Timeline]) -> None:
    run = recorded("same-call-exec")
    [signature] = run.signatures
    assert {cell.signature for cell in run.cells} == {0}
    assert [cell.streak for cell in run.cells] == [*range(1, 9), *[8] * 32]
    assert (signature.calls, signature.refused, signature.results, signature.longest_streak) == (40, 32, 1, 8)


def test_a_ping_pong_alternates_two_colours(recorded: Callable[[str], Timeline]) -> None:
    run = recorded("ping-pong")
    assert [cell.signature for cell in run.cells] == [0, 1] * 20
    assert [signature.colour for signature in run.signatures] == [1, 2]
    assert run.totals.refused == 26


@pytest.mark.parametrize("name", recordings())
def test_the_verdicts_are_those_of_the_judge_in_its_order(name: str) -> None:
    events = events_of(recordings()[name])
    verdicts = list(judged(events))
    run = timeline(verdicts[0].run_id, events, policy=STRICT)
    assert [verdict.verdict_id for verdict in run.verdicts] == [verdict.verdict_id for verdict in verdicts]
    of_cells = sorted(place for cell in run.cells for place in cell.verdicts)
    assert of_cells == list(range(len(verdicts)))


def test_calls_after_an_abort_are_not_judged_and_disobey_it(recorded: Callable[[str], Timeline]) -> None:
    run = recorded("loop-across-compaction")
    assert run.status == "aborted"
    assert [cell.judged for cell in run.cells] == [True] * 9 + [False] * 31
    assert run.verdicts[-1].fate == "disobeyed: 31 calls after it"
    assert [mark.kind for mark in run.marks] == ["compaction", "unjudged"]
    assert run.unjudged == 62


def test_a_run_is_the_same_drawn_at_its_end_or_while_it_grows(recorded: Callable[[str], Timeline]) -> None:
    events = events_of(recordings()["openclaw-ping-pong"])
    builder = TimelineBuilder("pingpong", STRICT, source="strict.json5")
    colours: dict[str, int] = {}
    for event in events:
        builder.add(event)
        for signature in builder.timeline().signatures:
            assert colours.get(signature.args_hash) in (None, 0, signature.colour)
            colours[signature.args_hash] = signature.colour
    assert builder.timeline() == recorded("ping-pong")


def test_recorded_verdicts_are_told_apart_from_those_that_only_the_judge_comes_to() -> None:
    events = events_of(recordings()["openclaw-poll"])
    verdicts = list(judged(events))
    for early in (True, False):
        builder = TimelineBuilder(verdicts[0].run_id, STRICT)
        if early:
            builder.add_verdicts(verdicts[1:])
        for event in events:
            builder.add(event)
        if not early:
            builder.add_verdicts(verdicts[1:])
        run = builder.timeline()
        assert [verdict.recorded for verdict in run.verdicts] == [False] + [True] * (len(verdicts) - 1)
        assert run.notes == ("1 verdict of the judge not among the recorded ones",)


@pytest.mark.parametrize("early", [True, False])
def test_a_recorded_verdict_that_the_judge_does_not_come_to_stands_at_its_event(early: bool) -> None:
    events = events_of(recordings()["openclaw-poll"])
    verdicts = list(judged(events))
    builder = TimelineBuilder(verdicts[0].run_id, DEFAULT_DOCUMENT)
    if early:
        builder.add_verdicts(verdicts[:1])
    for event in events:
        builder.add(event)
    if not early:
        builder.add_verdicts(verdicts[:1])
    run = builder.timeline()
    [verdict] = run.verdicts
    assert (verdict.call, verdict.recorded, verdict.recomputed) == (6, True, False)
    assert run.cells[5].verdicts == (0,)


def test_a_recorded_verdict_whose_event_is_gone_is_counted() -> None:
    events = events_of(recordings()["openclaw-poll"])
    verdicts = list(judged(events))
    run = timeline(verdicts[0].run_id, events[:4], recorded=verdicts[:1], policy=STRICT)
    assert run.verdicts == ()
    assert run.notes == ("1 recorded verdict of events that are not there: left out",)


def test_an_outcome_says_whether_it_is_the_one_before(log: Log) -> None:
    log.call("a", result="1")
    log.call("b", result="1")
    log.call("c", result="2")
    log.call("d", error="down")
    log.call("e", error="down")
    run = log.drawn()
    assert [cell.repeats for cell in run.cells] == [False, True, False, False, True]
    assert [cell.result for cell in run.cells] == [0, 0, 1, 2, 2]
    assert [(result.number, result.kind, result.calls) for result in run.results] == [
        (1, "result", 2),
        (2, "result", 1),
        (3, "error", 2),
    ]
    assert run.totals.repeated == 2


def test_a_call_without_an_outcome_is_pending_and_an_empty_one_void_until_it_has_one(log: Log) -> None:
    log.started("a")
    log.started("b")
    log.tell("tool_call.finished", call_id="b", tool="read", args="x")
    assert [cell.outcome for cell in log.drawn().cells] == ["pending", "void"]
    log.finished("b")
    assert [cell.outcome for cell in log.drawn().cells] == ["pending", "result"]


def test_outcomes_without_a_call_id_belong_to_the_newest_open_call_of_their_signature(log: Log) -> None:
    log.started(None, args="x")
    log.started(None, args="y")
    log.finished(None, args="x", result="1")
    log.finished(None, args="y", result="2")
    run = log.drawn()
    assert [cell.outcome for cell in run.cells] == ["result", "result"]
    assert [run.results[cell.result or 0].payload.text for cell in run.cells if cell.result is not None] == ["1", "2"]  # type: ignore[union-attr]


def test_a_late_start_is_the_call_of_its_lone_outcome(log: Log) -> None:
    log.finished("a")
    log.started("a")
    assert [cell.outcome for cell in log.drawn().cells] == ["result"]


def test_a_call_takes_the_arguments_that_were_executed(log: Log) -> None:
    log.started("a", args="announced")
    log.finished("a", args="executed", result="1")
    [signature] = log.drawn().signatures
    assert signature.args is not None
    assert signature.args.text == "executed"


def test_a_call_refused_before_it_was_announced_is_a_cell_of_its_own_that_obeys(log: Log) -> None:
    log.loop()
    log.blocked("r")
    [*_, cell] = log.drawn().cells
    assert (cell.outcome, cell.decision, cell.obeyed, cell.streak) == ("blocked", None, True, 8)


def test_a_refusal_without_a_block_obeys_nothing(log: Log) -> None:
    log.blocked("r")
    [cell] = log.drawn().cells
    assert (cell.outcome, cell.obeyed) == ("blocked", None)


def test_a_blocked_call_made_all_the_same_disobeys(log: Log) -> None:
    log.loop()
    log.started("r")
    assert log.drawn().cells[-1].obeyed is None
    log.finished("r")
    run = log.drawn()
    assert run.cells[-1].obeyed is False
    assert run.totals.disobeyed == 1
    assert [verdict.fate for verdict in run.verdicts if verdict.action == "block"] == ["disobeyed 1x"] * 2


def test_redelivered_events_change_nothing(log: Log) -> None:
    log.call("a")
    log.tell("tool_call.started", event_id="e1", call_id="a", tool="read", args="x")
    run = log.drawn()
    assert (len(run.cells), run.redelivered) == (1, 1)
    assert run.notes == ("1 event came again and changed nothing",)


def test_an_event_that_cannot_be_judged_is_marked(log: Log) -> None:
    log.started("a", args={"half": "\ud800"})
    run = log.drawn()
    assert run.cells == ()
    assert [mark.kind for mark in run.marks] == ["rejected"]


def test_a_run_that_begins_anew_counts_anew(log: Log) -> None:
    log.call("a")
    log.tell("run.finished", reason="done")
    log.tell("run.started", cause="again")
    log.call("b")
    run = log.drawn()
    assert [mark.kind for mark in run.marks] == ["end", "again", "run"]
    assert [cell.streak for cell in run.cells] == [1, 1]
    assert run.status == "running"


def test_what_a_person_decided_stands_between_the_calls_with_its_verdicts(log: Log) -> None:
    log.loop()
    log.tell("operator.override", action="allow", tool="read", by="kim", why="it is fine", until=10**12)
    log.call("after")
    run = log.drawn()
    [mark] = run.marks
    assert (mark.kind, mark.before_call) == ("override", 9)
    assert mark.text == "kim allows read until 2001-09-09 01:46:40 UTC: it is fine"
    assert [run.verdicts[place].reason for place in mark.verdicts] == ["operator_allow"]
    assert run.cells[-1].decision == "allow" or run.cells[-1].decision == "warn"


def test_policies_are_those_pinned_by_the_run(log: Log) -> None:
    log.tell("policy.applied", number=1, digest="d", policy={})
    log.call("a")
    log.tell("policy.applied", number=2, digest="d", policy=STRICT.value)
    log.call("b")
    [policy] = log.drawn().policies
    assert policy.source == "policy 1, applied in the log"
    assert (policy.detectors_on, policy.from_call) == (False, 1)


def test_a_policy_below_the_one_in_force_changes_nothing(log: Log) -> None:
    log.tell("policy.applied", number=2, digest="d", policy=STRICT.value)
    log.tell("policy.applied", number=1, digest="d", policy={})
    log.call("a")
    assert log.drawn().policies[0].detectors_on


def test_time_tokens_and_cost_are_summed_with_what_brought_nothing_new(log: Log) -> None:
    usage = {"input_tokens": 10, "output_tokens": 1, "cost_usd": 0.5}
    log.tell("compaction", usage=usage, duration_ms=500, succeeded=False)
    for call_id in "ab":
        log.started(call_id)
        log.finished(call_id, result="same", duration_ms=2000, usage=usage)
    totals = log.drawn().totals
    assert totals.spent.model_dump() == {"seconds": 4.5, "input_tokens": 30, "output_tokens": 3, "cost_usd": 1.5}
    assert totals.spent_on_repeats.seconds == 2
    assert totals.spent_on_repeats.cost_usd == 0.5


def test_what_no_event_carries_is_null_not_nought(log: Log) -> None:
    log.call("a")
    assert set(log.drawn().totals.spent.model_dump().values()) == {None}


def test_payloads_are_shown_only_where_carried_cut_and_said_so() -> None:
    log = Log(shown_characters=5)
    log.call("a", args="12345678", result={"k": 1})
    log.tell("tool_call.finished", call_id="b", tool="read", args_hash="ab" * 16, result_hash="cd" * 16)
    run = log.drawn()
    carried, hashed = run.signatures
    assert carried.args is not None
    assert (carried.args.text, carried.args.left_out) == ("12345", 3)
    assert hashed.args is None
    assert [result.payload is None for result in run.results] == [False, True]


def test_without_characters_to_show_there_are_no_payloads() -> None:
    log = Log(shown_characters=0)
    log.call("a", args="secret", result="secret")
    assert "secret" not in log.drawn().model_dump_json()


def test_evidence_names_the_calls_counted(log: Log) -> None:
    log.loop()
    order = next(verdict for verdict in log.drawn().verdicts if verdict.action == "block")
    assert order.evidence == tuple(range(1, 9))


def test_other_runs_in_the_log_are_passed_over(log: Log) -> None:
    log.tell("tool_call.started", run_id="another", call_id="a", tool="read")
    assert log.drawn().cells == ()
    assert log.drawn().began_at is None


def test_signatures_called_once_have_no_colour(log: Log) -> None:
    for number in range(30):
        log.call(f"c{number}", args=number)
    log.call("again", args=3)
    run = log.drawn()
    assert [signature.letter for signature in run.signatures[24:29]] == ["Y", "Z", "AA", "AB", "AC"]
    assert [signature.colour for signature in run.signatures] == [0, 0, 0, 1, *[0] * 26]

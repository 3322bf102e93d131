"""What is known of a fleet, and how much of it is kept."""

from __future__ import annotations

import pytest

from loopwarden.web.asking import RunsAsked, VerdictsAsked
from loopwarden.web.bodies import Run, run_body
from loopwarden.web.fleet import MAX_VERDICTS, now_ms, worst
from loopwarden.web.minutes import MINUTE_MS
from loopwarden.web.summary import Summaries
from loopwarden.web.watched_run import NEWEST_CALLS

from .conftest import Told


def body(told: Told, run_id: str = "r", now: int = 0) -> Run:
    run = told.fleet.run(run_id)
    assert run is not None
    return run_body(run, now)


def test_calls_are_counted_and_those_that_bring_nothing_new(told: Told) -> None:
    for result in ("a", "a", "b", "b", "b"):
        told.call(result=result)
    told.call(args="y", result="b")
    run = body(told)
    assert (run.calls, run.repeats) == (6, 3)
    assert [call.outcome for call in run.newest] == ["new", "same", "new", "same", "same", "new"]
    assert [call.signature for call in run.newest] == [0, 0, 0, 0, 0, 1]


def test_the_same_error_again_is_no_progress_either(told: Told) -> None:
    told.call(error="no such file")
    told.call(error="no such file")
    assert [call.outcome for call in body(told).newest] == ["error", "error same"]
    assert (body(told).errors, body(told).repeats) == (2, 1)


def test_a_call_that_is_refused_before_or_after_it_was_announced_counts_once(told: Told) -> None:
    told.event("tool_call.started", call_id="a", tool="read", args="x")
    told.event("tool_call.blocked", call_id="a", tool="read", args="x")
    told.event("tool_call.blocked", call_id="b", tool="read", args="x")
    assert (body(told).calls, body(told).refused) == (2, 2)


@pytest.mark.parametrize("verdict_first", [True, False])
def test_the_call_that_the_newest_verdict_is_about_is_not_disobeyed_once_it_is_refused(
    told: Told, verdict_first: bool
) -> None:
    def verdict() -> None:
        told.verdict("block", phase="attempt", call_id="a", disobeyed=3)

    told.event("tool_call.started", call_id="a", tool="read", args="x")
    if verdict_first:
        verdict()
        assert body(told).disobeyed == 3
    told.event("tool_call.blocked", call_id="a", tool="read", args="x")
    if not verdict_first:
        verdict()
    assert body(told).disobeyed == 2
    told.event("tool_call.blocked", call_id="b", tool="read", args="x")
    assert body(told).disobeyed == 2


def test_only_a_runs_newest_calls_are_kept(told: Told) -> None:
    for number in range(3 * NEWEST_CALLS):
        told.call(args=number)
    assert len(body(told).newest) == NEWEST_CALLS
    assert body(told).calls == 3 * NEWEST_CALLS


def test_runs_beyond_those_there_is_room_for_are_forgotten_the_one_not_heard_of_longest_first() -> None:
    told = Told(max_runs=3)
    for run_id in ("a", "b", "c", "a", "d"):
        told.event("run.started", run_id)
    assert told.fleet.run("b") is None
    assert {run.run_id for run in RunsAsked().of(told.fleet).runs} == {"a", "c", "d"}
    assert told.fleet.forgotten == 1


def test_a_verdict_that_is_published_again_counts_once(told: Told) -> None:
    verdict = told.verdict("warn")
    told.verdict("warn", verdict_id=verdict.verdict_id)
    assert body(told).warnings == 1
    assert len(VerdictsAsked().of(told.fleet)) == 1


def test_no_more_than_so_many_verdicts_are_kept(told: Told) -> None:
    for _ in range(MAX_VERDICTS + 10):
        told.verdict("warn")
    assert len(VerdictsAsked(limit=2 * MAX_VERDICTS).of(told.fleet)) == MAX_VERDICTS


@pytest.mark.parametrize("verdict_first", [True, False])
def test_a_run_is_aborted_whichever_of_its_topics_is_read_first(told: Told, verdict_first: bool) -> None:
    if verdict_first:
        told.verdict("abort", at=9_000)
    told.event("run.started", at=1_000)
    told.event("run.finished", at=9_500)
    if not verdict_first:
        told.verdict("abort", at=9_000)
    assert body(told).status == "aborted"


def test_a_run_that_is_started_again_lives_again(told: Told) -> None:
    told.event("run.finished")
    assert body(told).status == "finished"
    told.event("run.started")
    assert body(told).status == "live"


def test_a_run_that_was_not_heard_of_for_a_day_is_idle(told: Told) -> None:
    told.event("run.started", at=1)
    assert body(told, now=24 * 3600 * 1000).status == "live"
    assert body(told, now=24 * 3600 * 1000 + 2).status == "idle"


def test_the_worst_run_goes_on_has_the_gravest_verdict_and_obeys_least(told: Told) -> None:
    told.verdict("warn", "warned")
    told.verdict("block", "obedient")
    told.verdict("block", "disobedient", disobeyed=3)
    told.verdict("abort", "aborted")
    told.event("run.started", "quiet")
    told.verdict("abort", "over", disobeyed=9)
    told.event("run.finished", "over", at=1)
    told.verdict("block", "finished", disobeyed=9)
    told.event("run.finished", "finished")
    runs = told.fleet.ask(lambda runs: [run.run_id for run in worst(runs, 10, 10_000)])
    assert runs == ["aborted", "disobedient", "obedient", "warned", "over", "finished"]


def test_verdicts_are_counted_minute_by_minute(told: Told) -> None:
    now = now_ms()
    for at, action in ((now, "warn"), (now, "block"), (now - MINUTE_MS, "warn"), (now - 70 * MINUTE_MS, "warn")):
        told.verdict(action, at=at)
    minutes = told.fleet.verdicts_per_minute.until(now)
    assert len(minutes) == 60
    assert [dict(counts) for _, counts in minutes[-2:]] == [{"warn": 1}, {"warn": 1, "block": 1}]
    assert sum(sum(counts.values()) for _, counts in minutes) == 3


def test_runs_are_found_by_id_agent_and_status_a_page_at_a_time(told: Told) -> None:
    for number in range(5):
        told.event("run.started", f"build-{number}", agent_id="Nightly")
    told.event("run.finished", "build-0")
    told.event("run.started", "review-1")
    assert RunsAsked("nightly").of(told.fleet).found == 5
    assert [run.run_id for run in RunsAsked("REVIEW").of(told.fleet).runs] == ["review-1"]
    assert [run.run_id for run in RunsAsked(status="finished").of(told.fleet).runs] == ["build-0"]
    first, second = (RunsAsked("build", start=start, limit=3, order="newest").of(told.fleet) for start in (0, 3))
    assert (len(first.runs), len(second.runs), first.found) == (3, 2, 5)
    assert len({run.run_id for run in (*first.runs, *second.runs)}) == 5


def test_verdicts_are_found_by_what_they_say(told: Told) -> None:
    told.verdict("warn", "a", tool="exec")
    told.verdict("block", "b", reason="ping_pong", phase="attempt", agent_id="Nightly")
    told.verdict("block", "c")

    def runs(**asked: object) -> list[str]:
        return [each.verdict.run_id for each in VerdictsAsked(**asked).of(told.fleet)]  # type: ignore[arg-type]

    assert runs() == ["c", "b", "a"]
    assert runs(action="block") == ["c", "b"]
    assert runs(action="block", orders=True) == ["c"]
    assert runs(reason="ping_pong") == runs(text="nightly") == ["b"]
    assert runs(text="exec") == ["a"]
    assert runs(limit=1) == ["c"]


def test_what_has_no_canonical_json_is_counted_and_the_rest_goes_on(told: Told) -> None:
    told.event("tool_call.started", call_id="a", tool="read", args="\ud800")
    told.event("tool_call.started", call_id="b", tool="read", args="x")
    assert (body(told).calls, told.fleet.unreadable) == (1, 1)


def test_a_summary_counts_what_lives_and_what_was_heard_of_lately(told: Told) -> None:
    now = now_ms()
    told.event("run.started", "new", at=now)
    told.event("run.started", "quiet", at=now - 10 * MINUTE_MS)
    told.event("run.started", "over", at=now)
    told.event("run.finished", "over", at=now)
    told.verdict("block", "new", at=now, disobeyed=2)
    summary = Summaries(told.fleet).summary()
    assert (summary.live, summary.active, summary.watched, summary.disobeyed) == (2, 1, 3, 2)
    assert [run.run_id for run in summary.worst] == ["new"]

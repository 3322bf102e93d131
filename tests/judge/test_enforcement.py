from __future__ import annotations

from .strict_run import StrictRun, said

BLOCKED = ("block", "attempt", "generic_repeat")
IGNORED = ("abort", "attempt", "block_ignored")


def counted(run: StrictRun) -> tuple[int, int, int, int]:
    enforcement = run.state.enforcement
    return enforcement.delivered, enforcement.obeyed, enforcement.disobeyed, enforcement.ignored


def test_a_refused_call_was_obeyed() -> None:
    run = StrictRun()
    run.loop()
    run.refuse("a", verdict_id="v")
    assert counted(run) == (1, 1, 0, 1)


def test_a_blocked_call_that_starts_is_disobeyed() -> None:
    run = StrictRun()
    run.loop()
    assert said(run.start("a")) == [BLOCKED]
    assert counted(run) == (0, 0, 1, 1)


def test_its_outcome_is_not_a_second_attempt() -> None:
    run = StrictRun()
    run.loop()
    run.start("a")
    run.finish("a")
    assert counted(run) == (0, 0, 1, 1)


def test_a_started_call_that_turns_out_refused_is_one_obeyed_attempt() -> None:
    run = StrictRun()
    run.loop()
    run.start("a")
    run.refuse("a")
    assert counted(run) == (0, 1, 0, 1)


def test_a_blocked_call_of_which_only_the_outcome_is_seen_is_disobeyed() -> None:
    run = StrictRun()
    run.loop()
    assert said(run.finish("a"))[0] == BLOCKED
    assert counted(run) == (0, 0, 1, 1)


def test_an_event_that_names_its_verdict_shows_that_it_was_delivered() -> None:
    run = StrictRun()
    run.start("a", verdict_id="v")
    run.finish("a", verdict_id="v")
    run.finish("b")
    assert counted(run) == (2, 0, 0, 0)


def test_the_verdicts_say_what_became_of_those_before() -> None:
    run = StrictRun()
    run.loop()
    run.refuse("a", verdict_id="v")
    [verdict] = run.start("b")
    assert (verdict.delivered, verdict.obeyed, verdict.disobeyed) == (1, 1, 1)


def test_a_run_goes_on_asking_for_ever_where_the_policy_says_nothing() -> None:
    run = StrictRun()
    run.loop()
    for number in range(50):
        assert run.refuse(f"c{number}") == []
    assert counted(run) == (0, 50, 0, 50)


def test_as_many_refused_attempts_as_the_policy_says_end_the_run() -> None:
    run = StrictRun(abort_after_blocks=3)
    run.loop()
    assert [run.refuse("a"), run.refuse("b")] == [[], []]
    [verdict] = run.refuse("c")
    assert said([verdict]) == [IGNORED]
    assert (verdict.scope, verdict.tool, verdict.call_id) == ("run", "read", "c")
    assert (verdict.count, verdict.threshold, verdict.evidence) == (3, 3, ["r-7", "r-8", "r-9"])
    assert run.start("d") == []


def test_refused_and_disobeyed_attempts_count_together() -> None:
    run = StrictRun(abort_after_blocks=3)
    run.loop()
    run.refuse("a")
    run.start("b")
    assert said(run.start("c")) == [BLOCKED, IGNORED]


def test_a_lone_outcome_of_a_blocked_call_may_end_the_run() -> None:
    run = StrictRun(abort_after_blocks=1)
    run.loop()
    assert said(run.finish("a")) == [BLOCKED, IGNORED]


def test_an_announced_call_that_is_refused_is_one_attempt() -> None:
    run = StrictRun(abort_after_blocks=3)
    run.loop()
    run.start("a")
    run.refuse("a")
    run.start("b")
    assert run.refuse("b") == []
    assert said(run.refuse("c")) == [IGNORED]


def test_an_allowed_call_begins_the_count_anew() -> None:
    run = StrictRun(abort_after_blocks=2)
    run.loop()
    run.refuse("a")
    run.start("other", tool="write")
    assert run.refuse("b") == []
    assert said(run.refuse("c")) == [IGNORED]


def test_a_call_that_is_only_warned_about_begins_the_count_anew() -> None:
    run = StrictRun(abort_after_blocks=2)
    run.loop("write", times=2)
    run.loop()
    run.refuse("a")
    assert said(run.start("b", tool="write")) == [("warn", "attempt", "generic_repeat")]
    assert run.refuse("c") == []


def test_a_call_announced_before_its_order_leaves_the_window_when_it_is_refused() -> None:
    run = StrictRun()
    run.loop(times=2)
    run.start("late")
    run.finish("other")
    before = len(run.state.window.calls)
    run.refuse("late")
    assert len(run.state.window.calls) == before - 1
    assert counted(run)[1:3] == (1, 0)


def test_a_run_that_begins_again_has_obeyed_nothing_yet() -> None:
    run = StrictRun()
    run.loop()
    run.refuse("a")
    run.tell("run.finished")
    run.tell("run.started")
    assert counted(run) == (0, 0, 0, 0)

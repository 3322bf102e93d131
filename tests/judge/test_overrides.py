from __future__ import annotations

from .strict_run import MINUTE, StrictRun, said

ORDER = ("block", "order", "generic_repeat")
BLOCKED = ("block", "attempt", "generic_repeat")
LIFTED = ("clear", "order", "operator_allow")


def test_allow_lifts_the_blocks_of_a_tool_and_of_no_other() -> None:
    run = StrictRun()
    run.loop("read")
    run.loop("write")
    [lifted] = run.override("allow", tool="READ ")
    assert said([lifted]) == [LIFTED]
    assert (lifted.scope, lifted.tool) == ("call", "read")
    assert run.start("a", tool="read") == []
    assert said(run.start("b", tool="write")) == [BLOCKED]


def test_allow_without_a_tool_lifts_every_block() -> None:
    run = StrictRun()
    run.loop("read")
    run.loop("write")
    assert said(run.override("allow")) == [LIFTED, LIFTED]
    assert run.state.orders.standing() == []


def test_allow_lifts_the_block_of_a_tool_that_does_not_exist() -> None:
    run = StrictRun()
    for number in range(2):
        run.tell("tool_call.finished", call_id=f"c{number}", tool="nope", args=number, error="unknown tool: nope")
    [lifted] = run.override("allow", tool="nope")
    assert (lifted.scope, lifted.tool, lifted.reason) == ("tool", "nope", "operator_allow")


def test_what_is_allowed_is_not_blocked_again_while_it_goes_on_looping() -> None:
    run = StrictRun()
    run.override("allow", tool="read")
    assert run.loop("read", times=20) == []
    assert run.state.orders.standing() == []


def test_an_allowance_ends_with_the_first_event_after_its_time_which_is_judged_with_it() -> None:
    run = StrictRun()
    run.loop()
    run.override("allow", tool="read", until=run.now + 10 * MINUTE)
    run.now += 10 * MINUTE
    assert said(run.start("a")) == [ORDER]
    assert said(run.start("b")) == [BLOCKED]


def test_an_allowance_holds_for_an_event_at_its_last_millisecond() -> None:
    run = StrictRun()
    run.loop()
    run.override("allow", tool="read", until=run.now + 2000)
    assert run.start("a") == []


def test_any_event_ends_an_allowance() -> None:
    run = StrictRun()
    run.loop()
    run.override("allow", until=run.now + 2000)
    run.now += 2000
    assert said(run.tell("compaction")) == [ORDER]


def test_an_allowance_that_is_over_already_changes_nothing() -> None:
    run = StrictRun()
    run.loop()
    assert run.override("allow", tool="read", until=run.now) == []
    assert said(run.start("a")) == [BLOCKED]


def test_a_new_allowance_of_a_tool_replaces_the_former() -> None:
    run = StrictRun()
    run.loop()
    run.override("allow", tool="read", until=run.now + 2000)
    run.override("allow", tool="read", until=run.now + 10 * MINUTE)
    run.now += 5 * MINUTE
    assert run.start("a") == []


def test_allowed_calls_are_not_counted_as_attempts_of_blocked_ones() -> None:
    run = StrictRun(abort_after_blocks=1)
    run.loop()
    run.override("allow")
    assert run.start("a") == []
    assert run.state.enforcement.ignored == 0


def test_abort_ends_the_run() -> None:
    run = StrictRun()
    run.loop()
    [verdict] = run.override("abort")
    assert said([verdict]) == [("abort", "attempt", "operator_abort")]
    assert (verdict.scope, verdict.tool, verdict.detector, verdict.call_id) == ("run", None, None, None)
    assert run.start("a") == []
    assert run.state.unjudged == 1


def test_abort_ends_a_run_of_which_nothing_was_seen() -> None:
    run = StrictRun()
    assert said(run.override("abort")) == [("abort", "attempt", "operator_abort")]
    assert run.start("a") == []


def test_release_forgets_the_window_and_lifts_the_blocks() -> None:
    run = StrictRun()
    run.loop("read")
    run.loop("write")
    assert said(run.override("release")) == [("clear", "order", "operator_release")] * 2
    assert run.state.window.calls == []
    assert said(run.loop("read")) == [ORDER]


def test_release_lifts_an_abort() -> None:
    run = StrictRun(abort_after_blocks=1)
    run.loop()
    run.refuse("a")
    assert run.state.aborted
    [lifted] = run.override("release")
    assert said([lifted]) == [("clear", "order", "operator_release")]
    assert (lifted.scope, lifted.tool, lifted.begun) == ("run", None, run.state.begun)
    assert said(run.loop()) == [ORDER]


def test_release_lifts_the_abort_of_a_person() -> None:
    run = StrictRun()
    run.override("abort")
    assert said(run.override("release")) == [("clear", "order", "operator_release")]
    assert not run.state.aborted


def test_release_of_a_run_aborted_long_ago_lifts_the_abort_that_a_runner_may_hold_on_to() -> None:
    run = StrictRun()
    run.loop()
    run.override("abort")
    begun = run.state.begun
    run.now += 120 * MINUTE
    [lifted] = run.override("release")
    assert (lifted.scope, lifted.reason, lifted.n) == ("run", "operator_release", 1)
    assert lifted.begun > begun


def test_release_of_a_run_that_finished_changes_nothing() -> None:
    run = StrictRun()
    run.loop()
    run.tell("run.finished")
    assert run.override("release") == []
    assert run.start("a") == []


def test_only_release_is_heard_after_an_abort() -> None:
    run = StrictRun()
    run.override("abort")
    assert run.override("allow") == []
    assert run.override("abort") == []
    assert run.start("a") == []
    assert run.state.unjudged == 3


def test_an_allowance_does_not_outlive_its_run() -> None:
    run = StrictRun()
    run.override("allow")
    run.override("abort")
    run.override("release")
    assert said(run.loop()) == [ORDER]


def test_a_redelivered_override_changes_nothing() -> None:
    run = StrictRun()
    run.loop()
    run.override("release", event_id="o")
    run.loop()
    assert run.override("release", event_id="o") == []
    assert run.state.orders.standing() != []


def test_the_words_of_a_decision_do_not_say_who_decided() -> None:
    """The model reads them; who and why is told by `loopwarden history`."""
    run = StrictRun()
    [verdict] = run.override("abort")
    assert verdict.message == "The run is ended by an operator."

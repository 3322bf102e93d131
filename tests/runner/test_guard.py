"""Whole runs against a real worker."""

from __future__ import annotations

from typing import Any

import pytest

from loopwarden.client import Connection
from loopwarden.gateway import Gateway
from loopwarden.runner import CallBlocked, RunAborted, RunGuard
from loopwarden_schemas.codec import decode_record
from loopwarden_schemas.structs import ToolCallBlocked, ToolCallFinished

HANG_S = 60
SAME = {"path": "/x"}


def _events(judging: Any) -> list[Any]:
    return [event for record in judging.read(judging.topics.events.name) for event in decode_record(record.value)]


def _repeat(guarded: Any, run: Any, times: int, certain: float | None = HANG_S) -> list[str]:
    """An agent that makes the same call again and again, as often as it may; return the answers."""
    actions = []
    for _ in range(times):
        answer = guarded.before_call("read", SAME, certain=certain)
        actions.append(answer.action)
        if answer.allowed:
            with run.call("read", SAME, call_id=answer.call_id) as call:
                call.result("the same")
                guarded.note_after(call)
    return actions


def test_with_certain_not_one_call_escapes_a_block(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard, gateway.run() as run:
        with guard.run(run) as guarded:
            actions = _repeat(guarded, run, 12)
            other = guarded.before_call("read", {"path": "/y"}, certain=HANG_S)
        assert [action == "block" for action in actions] == [number >= 4 for number in range(12)]
        assert other.allowed and other.certain
        assert guard.stats.uncertain == 0
    judging.wait_until_judged()
    refused = [event for event in _events(judging) if isinstance(event, ToolCallBlocked)]
    assert len(refused) == 8
    verdicts = {verdict.verdict_id: verdict for _, verdict in judging.verdicts()}
    assert {verdicts[event.verdict_id].phase for event in refused} == {"order"}
    assert not [verdict for verdict in verdicts.values() if verdict.action == "block" and verdict.phase == "attempt"]


def test_a_warning_is_shown_once_and_reported(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard, gateway.run() as run:
        guarded = guard.run(run)
        notes = []
        for _ in range(4):
            with guarded.call("read", SAME, certain=HANG_S) as call:
                call.result("the same")
                notes.append(guarded.note_after(call, certain=HANG_S))
    assert [note is not None for note in notes] == [False, False, True, False]
    assert notes[2] is not None and "read" in notes[2]
    judging.wait_until_judged()
    (warning,) = [verdict for _, verdict in judging.verdicts() if verdict.action == "warn"]
    shown = [event.verdict_id for event in _events(judging) if isinstance(event, ToolCallFinished)]
    assert shown == [None, None, warning.verdict_id, None]


def test_refusals_come_as_exceptions_if_wanted(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway, certain=HANG_S) as guard, gateway.run() as run:
        guarded = guard.run(run)
        _repeat(guarded, run, 4)
        with pytest.raises(CallBlocked, match="read") as caught, guarded.call("read", SAME):
            pytest.fail("the call was made")
    assert caught.value.answer.reason == "generic_repeat"
    assert caught.value.answer.verdict_id is not None


def _abort(gateway: Gateway, run: Any, guarded: Any) -> None:
    """A loop that goes on after a compaction."""
    for _ in range(2):
        with run.call("read", SAME) as call:
            call.result("the same")
    run.compaction()
    for _ in range(3):
        with run.call("read", SAME) as call:
            call.result("the same")


def test_a_runner_that_joins_in_the_middle_reads_blocks_and_an_abort_back(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        blocked = gateway.run("blocked")
        aborted = gateway.run("aborted")
        blocked.begin()
        _repeat(guard.run(blocked), blocked, 5)
        _abort(gateway, aborted, guard.run(aborted))
        gateway.flush()
    judging.wait_until_judged()
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        joined = guard.run(gateway.run("blocked"))
        assert joined.before_call("read", SAME, certain=HANG_S).action == "block"
        assert joined.before_call("read", {"path": "/y"}, certain=HANG_S).action == "allow"
        over = guard.run("aborted").before_call("anything", certain=HANG_S)
        assert (over.action, over.reason) == ("abort", "compaction_loop_persisted")
        with pytest.raises(RunAborted):
            over.raise_for()
        again = gateway.run("aborted")
        again.begin()  # which begins it anew
        assert guard.run(again).before_call("read", SAME, certain=HANG_S).action == "allow"


def test_a_released_run_goes_on(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        run = gateway.run("run")
        guarded = guard.run(run)
        gateway.send({"type": "operator.override", "run_id": "run", "action": "abort", "by": "me", "why": "test"})
        assert guarded.before_call("read", SAME, certain=HANG_S).action == "abort"
        assert guarded.aborted is not None and guarded.aborted.reason == "operator_abort"
        gateway.send({"type": "operator.override", "run_id": "run", "action": "release", "by": "me", "why": "test"})
        assert guarded.before_call("read", SAME, certain=HANG_S).action == "allow"


def test_orders_end_with_their_run(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        run = gateway.run("run")
        guarded = guard.run(run)
        assert _repeat(guarded, run, 5)[-1] == "block"
        run.finish()
        assert guarded.before_call("read", SAME, certain=HANG_S).action == "allow"


def test_hundreds_of_runs_are_guarded_by_one_consumer(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        runs = [gateway.run() for _ in range(300)]
        guarded = [guard.run(run) for run in runs]
        for _ in range(4):
            for run in runs:
                with run.call("read", SAME) as call:
                    call.result("the same")
        answers = [each.before_call("read", SAME, certain=HANG_S) for each in guarded]
        assert [answer.action for answer in answers] == ["block"] * 300
        assert guard.stats.runs == 300 and guard.stats.uncertain == 0


def test_redacted_and_hashed_calls_are_blocked_all_the_same(judging: Any, connection: Connection) -> None:
    def redact(tool: str, part: str, value: Any) -> Any:
        return {"path": "***"} if part == "args" else value

    with Gateway(connection, payload="hash", redact=redact) as gateway, RunGuard(gateway=gateway) as guard:
        run = gateway.run()
        assert [action == "block" for action in _repeat(guard.run(run), run, 6)] == [False] * 4 + [True] * 2


@pytest.mark.parametrize(("on_uncertain", "action"), [("allow", "allow"), ("block", "block")])
def test_without_a_worker_nothing_is_certain_which_is_counted(
    connection: Connection, on_uncertain: Any, action: str
) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway, on_uncertain=on_uncertain) as guard:
        run = gateway.run()
        run.begin()
        answer = guard.run(run).before_call("read", SAME, certain=0.05)
        assert (answer.action, answer.certain, answer.verdict_id) == (action, False, None)
        assert guard.stats.uncertain == 1


def test_the_lag_is_none_until_it_is_known_and_then_zero(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        run = gateway.run()
        guarded = guard.run(run)
        assert guarded.lag().unjudged is None
        _repeat(guarded, run, 1)
        assert guarded.before_call("read", SAME, certain=HANG_S).certain
        lag = guarded.lag()
        assert (lag.unjudged, lag.unread, lag.joined, lag.connected) == (0, 0, True, True)


def test_a_killed_worker_changes_nothing(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        run = gateway.run()
        guarded = guard.run(run)
        _repeat(guarded, run, 3)
        judging.workers[-1].kill()
        judging.start_worker()
        assert [action == "block" for action in _repeat(guarded, run, 4)] == [False, True, True, True]


def test_certain_needs_a_gateway(connection: Connection) -> None:
    with pytest.raises(ValueError, match=r"^certain: must come with the gateway"):
        RunGuard(connection, certain=0.1)

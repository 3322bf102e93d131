"""Whole runs against a real worker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from loopwarden.client import Connection
from loopwarden.gateway import AsyncGateway, Dropped, Gateway, Receipt
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


def _once(connection: Connection, times: int) -> list[str]:
    """A process's whole life: it begins a run of an id that may have been used before, and finishes it."""
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard, gateway.run("nightly") as run:
        return ["block" if action == "block" else "made" for action in _repeat(guard.run(run), run, times)]


def test_an_id_used_again_after_another_process_finished_its_run_is_not_bound_by_its_orders(
    judging: Any, connection: Connection
) -> None:
    assert _once(connection, 6)[-1] == "block"
    assert _once(connection, 6) == ["made"] * 4 + ["block"] * 2
    judging.wait_until_judged()
    assert _once(connection, 1) == ["made"]


def test_an_id_used_again_in_one_process_is_not_bound_by_its_orders(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        for _ in range(2):
            with gateway.run("nightly") as run, guard.run(run) as guarded:
                assert [action == "block" for action in _repeat(guarded, run, 5)] == [False] * 4 + [True]
        # Without `run.started` the judge counts what comes, and judges nothing: nothing is blocked either.
        guarded = guard.run(gateway.run("nightly"))
        assert guarded.before_call("read", SAME, certain=HANG_S).action == "allow"


def test_a_run_begun_again_in_its_middle_keeps_its_orders(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        run = gateway.run("run")
        run.begin()
        assert _repeat(guard.run(run), run, 5)[-1] == "block"
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        run = gateway.run("run")
        guarded = guard.run(run)
        run.begin()  # which to the judge changes nothing: nobody finished it
        answer = guarded.before_call("read", SAME, certain=HANG_S)
        assert (answer.action, answer.certain) == ("block", True)


def test_a_run_that_is_guarded_twice_is_guarded_by_both(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard, gateway.run() as run:
        first, second = guard.run(run), guard.run(run)
        assert _repeat(second, run, 5)[-1] == "block"
        assert first.before_call("read", SAME, certain=HANG_S).action == "block"
        second.close()
        assert guard.stats.runs == 1
        assert first.before_call("read", SAME, certain=HANG_S).action == "block"


def test_what_was_dropped_is_not_waited_for(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway, on_uncertain="block") as guard:
        run = gateway.run()
        guarded = guard.run(run)
        _repeat(guarded, run, 4)
        lost, silent = (Receipt(name, threading.Condition()) for name in ("lost", "silent"))
        lost.settle(error=Dropped("there was no room"))
        guarded.note_event("tool_call.started", lost)
        assert guarded.before_call("write", SAME, certain=HANG_S).certain
        # The broker has it, and did not say where.
        silent.settle(partition=judging.partition(run.run_id), offset=None)
        guarded.note_event("tool_call.started", silent)
        answer = guarded.before_call("read", SAME, certain=HANG_S)
        assert (answer.action, answer.certain) == ("block", True)
        assert guard.stats.uncertain == 0


class Hostile:
    """As a proxy of werkzeug or django outside of what it stands for."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("working outside of request context")

    def __str__(self) -> str:
        raise RuntimeError("working outside of request context")

    __repr__ = __str__


def test_nothing_of_ours_is_raised_at_an_agent_whatever_its_call_is(judging: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard, gateway.run() as run:
        guarded = guard.run(run)
        assert _repeat(guarded, run, 5)[-1] == "block"
        hostile: Any = Hostile()
        assert guarded.before_call("read", hostile).allowed
        assert guarded.before_call(hostile, SAME).allowed
        with guarded.call("write", hostile) as call:
            call.result(hostile)
            assert guarded.note_after(call) is None


def test_for_asyncio_hundreds_wait_at_once_and_a_warning_comes_with_its_call(
    judging: Any, connection: Connection
) -> None:
    async def agent() -> tuple[list[Any], list[str | None]]:
        async with AsyncGateway(connection) as gateway:
            with RunGuard(gateway=gateway) as guard:
                runs = [gateway.run() for _ in range(200)]
                guarded = [guard.run(run) for run in runs]
                for _ in range(4):
                    for run in runs:
                        async with run.call("read", SAME) as call:
                            call.result("the same")
                answers = await asyncio.gather(
                    *(each.before_call_async("read", SAME, certain=HANG_S) for each in guarded)
                )
                one, notes = gateway.run(), []
                warned = guard.run(one)
                for _ in range(3):
                    async with one.call("read", SAME) as call:
                        call.result("the same")
                        notes.append(await warned.note_after_async(call, certain=HANG_S))
                return answers, notes

    answers, notes = asyncio.run(agent())
    assert {(answer.action, answer.certain) for answer in answers} == {("block", True)}
    assert [note is not None for note in notes] == [False, False, True]


@pytest.mark.parametrize("steps", [25 * 3600, -10 * 86400])
def test_a_clock_that_steps_forgets_no_order(
    judging: Any, connection: Connection, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    told = time.time
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        run = gateway.run("run")
        guarded = guard.run(run)
        assert _repeat(guarded, run, 5)[-1] == "block"
        monkeypatch.setattr(time, "time", lambda: told() + steps)
        answer = guarded.before_call("read", SAME, certain=HANG_S)
        assert (answer.action, answer.certain) == ("block", True)
        joined = guard.run("run").before_call("read", SAME, certain=HANG_S)
        assert (joined.action, joined.certain) == ("block", True)
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        joined = guard.run("run").before_call("read", SAME, certain=HANG_S)
        assert (joined.action, joined.certain) == ("block", True)


CHILD = """
import os, sys
from loopwarden.gateway import Gateway
from loopwarden.runner import RunGuard

with Gateway() as gateway, RunGuard(gateway=gateway) as guard:
    run = gateway.run()
    guarded = guard.run(run)
    for _ in range(4):
        guarded.before_call("read", {}, certain=60)
        with run.call("read", {}) as call:
            call.result("the same")
    print(guarded.before_call("read", {}, certain=60).action, flush=True)
    child = os.fork()
    if child == 0:
        answer = guarded.before_call("write", {}, certain=0)
        print(answer.action, answer.certain, flush=True)
        answer = guard.run(run.run_id).before_call("read", {}, certain=60)
        print(answer.action, answer.certain, flush=True)
        answer = guarded.before_call("read", {}, certain=60)
        print(answer.action, answer.certain, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    answer = guarded.before_call("read", {}, certain=60)
    print(answer.action, answer.certain, flush=True)
"""


def test_a_forked_process_reads_for_itself(judging: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        env=judging.environment(),
        capture_output=True,
        text=True,
        timeout=2 * HANG_S,
        check=False,
    )
    assert done.stdout.splitlines() == ["block", "allow False", *["block True"] * 3], done.stderr

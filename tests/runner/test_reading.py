"""What is read, and from where. The test writes the verdicts itself, with times of its own."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from msgspec.structs import replace

from loopwarden.client import Connection
from loopwarden.gateway import Gateway, Receipt
from loopwarden.runner import GuardedRun, RunGuard
from loopwarden_schemas.codec import encode_verdict
from loopwarden_schemas.structs import Verdict

from .order import ORDER, SAME

HANG_S = 60
HOUR_MS = 3600 * 1000


def _until(condition: Any) -> None:
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _joined(guarded: GuardedRun) -> GuardedRun:
    _until(lambda: guarded.joined)
    return guarded


@pytest.fixture
def publish(installation: Any) -> Any:
    """Publishes a verdict about an event that was appended at a time (ms)."""

    def publish(verdict: Verdict, at: int, cause_offset: int = 0) -> None:
        headers = {"cause-partition": 0, "cause-offset": cause_offset, "cause-append-time": at}
        installation.producer.send(
            installation.topics.verdicts.name,
            encode_verdict(verdict),
            key=verdict.run_id.encode(),
            partition=installation.partition(verdict.run_id),
            timestamp_ms=at,
            headers=[(name, str(value).encode()) for name, value in headers.items()],
        ).get(HANG_S)

    return publish


def test_a_run_older_than_a_day_is_read_back_to_where_it_began(connection: Connection, publish: Any) -> None:
    now = int(time.time() * 1000)
    begun = now - 50 * HOUR_MS
    publish(replace(ORDER, begun=begun), begun + HOUR_MS)
    publish(replace(ORDER, begun=begun, n=2, tool="write"), now - HOUR_MS, 1)
    with RunGuard(connection) as guard:
        guarded = _joined(guard.run("run"))
        assert guarded.before_call("read", SAME).action == "block"
        assert guarded.before_call("write", SAME).action == "block"


def test_nothing_before_what_was_said_counts(connection: Connection, publish: Any) -> None:
    now = int(time.time() * 1000)
    publish(replace(ORDER, begun=now - 2000), now - 2000)
    with RunGuard(connection) as guard:
        assert _joined(guard.run("run", since=now - 1000)).before_call("read", SAME).allowed
        assert _joined(guard.run("run", since=now - 3000)).before_call("read", SAME).action == "block"


def test_a_run_that_joins_changes_nothing_for_the_others(connection: Connection, publish: Any) -> None:
    now = int(time.time() * 1000)
    with RunGuard(connection) as guard:
        first = _joined(guard.run("run"))
        publish(replace(ORDER, begun=now), now)
        publish(replace(ORDER, begun=now, n=2, action="clear"), now, 1)
        publish(replace(ORDER, begun=now, n=3, tool="write"), now, 2)
        _until(lambda: not first.before_call("write", SAME).allowed)
        _joined(guard.run("another", since=0))
        assert first.before_call("read", SAME).allowed and not first.before_call("write", SAME).allowed


def test_a_new_run_that_is_guarded_late_is_read_back_to_its_start(connection: Connection, publish: Any) -> None:
    begun = int(time.time() * 1000) - HOUR_MS
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        run = gateway.run()
        run.started = run.last = Receipt("e", threading.Condition())
        run.started.settle(partition=0, offset=0, append_time=begun)
        publish(replace(ORDER, run_id=run.run_id, begun=begun), begun + 1000)
        assert _joined(guard.run(run)).before_call("read", SAME).action == "block"


@pytest.mark.parametrize("topics", [6], indirect=True)
def test_only_the_partitions_of_its_runs_are_read(installation: Any, connection: Connection) -> None:
    with Gateway(connection) as gateway, RunGuard(gateway=gateway) as guard:
        runs = [_joined(guard.run(gateway.run(run_id))) for run_id in ("a", "b")]
        assert set(guard.reader.read) == {installation.partition("a"), installation.partition("b")}
        for run in runs:
            run.close()
        _until(lambda: not guard.reader.read)
        again = _joined(guard.run("a"))
        assert again.before_call("read", SAME).allowed
        assert set(guard.reader.read) == {installation.partition("a")}


def test_what_is_no_verdict_is_passed_over(
    installation: Any, connection: Connection, publish: Any, caplog: pytest.LogCaptureFixture
) -> None:
    topic, partition = installation.topics.verdicts.name, installation.partition("run")
    installation.producer.send(topic, b"\xc1", key=b"run", partition=partition).get(HANG_S)
    now = int(time.time() * 1000)
    publish(replace(ORDER, begun=now), now)
    with RunGuard(connection) as guard:
        assert _joined(guard.run("run")).before_call("read", SAME).action == "block"
    assert "is no verdict" in caplog.text

"""`override`, `history` and `selftest` with a real broker and a real worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from loopwarden.broker import LocalBroker
from loopwarden.client import Connection, create_topics, event_producer, wait_until_judged
from loopwarden_schemas.codec import encode_event
from loopwarden_schemas.topics import declared_topics, partition_for

JUDGED_S = 60
STRICT = {"enabled": True, "warningThreshold": 2, "criticalThreshold": 3, "detectors": {"pingPong": False}}


@pytest.fixture(scope="module")
def cluster(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """An installation with a worker and no policy."""
    connection = Connection(broker.bootstrap_servers, "operators-")
    create_topics(connection.bootstrap_servers, declared_topics(connection.topic_prefix, partitions=2))
    log = tmp_path_factory.mktemp("operators") / "worker.log"
    options = ["--broker", connection.bootstrap_servers, "--prefix", connection.topic_prefix]
    command = [sys.executable, "-m", "loopwarden.cli", "worker", *options, "--data-dir", str(log.parent / "faust")]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, env=os.environ)
    yield connection
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0, log.read_text()


@pytest.fixture
def loopwarden(run: Callable[..., Any], cluster: Connection) -> Callable[..., Any]:
    options = ("--broker", cluster.bootstrap_servers, "--prefix", cluster.topic_prefix)
    return lambda *arguments: run(*arguments, *options)


class Run:
    """A run of a gateway that follows its verdicts, or does not."""

    def __init__(self, connection: Connection) -> None:
        self.id = f"run-{uuid.uuid4()}"
        self._connection = connection
        self._events = 0

    def tell(self, *events: dict[str, Any]) -> None:
        """Publish events, and wait until they are judged."""
        told = []
        for event in events:
            self._events += 1
            told.append({"event_id": f"{self.id}-{self._events}", "run_id": self.id, "ts": self._events, **event})
        with event_producer(self._connection) as producer:
            producer.publish(self.id, encode_event(told), "events of the test")
            producer.flush()
        partition = partition_for(self.id, producer.partitions)
        judged = wait_until_judged(self._connection, partition, producer.ends[partition] - 1, JUDGED_S)
        assert judged is not None

    def loop(self) -> None:
        """Begin with a strict policy of its own, and make the same call until it is blocked."""
        began = {"type": "run.started", "agent_id": "main", "policy": STRICT}
        self.tell(began, *(event for number in range(3) for event in self.call(number)))

    def call(self, number: int) -> list[dict[str, Any]]:
        call = {"call_id": f"c{number}", "tool": "read", "args": {"path": "secret"}}
        return [
            {"type": "tool_call.started", **call},
            {"type": "tool_call.finished", **call, "result": "same"},
        ]

    def refuse(self, number: int, verdict_id: str | None = None) -> dict[str, Any]:
        named = {} if verdict_id is None else {"verdict_id": verdict_id}
        return {
            "type": "tool_call.blocked",
            "call_id": f"c{number}",
            "tool": "read",
            "args": {"path": "secret"},
            **named,
        }


@pytest.fixture
def looping(cluster: Connection) -> Run:
    run = Run(cluster)
    run.loop()
    return run


WHO = ("--by", "ada", "--why", "I watch it")


def history(loopwarden: Callable[..., Any], run: Run, *options: str) -> list[dict[str, Any]]:
    ran = loopwarden("history", "--run", run.id, "--json", *options)
    assert ran.code == 0
    return [orjson.loads(line) for line in ran.out.splitlines()]


def test_allow_lifts_the_blocks_and_says_until_when(loopwarden: Callable[..., Any], looping: Run) -> None:
    before = time.time_ns() // 1_000_000
    ran = loopwarden("override", "allow", "--run", looping.id, "--tool", "read", "--for", "10m", *WHO, "--wait", "60")
    assert (ran.code, ran.err) == (0, "")
    told, judged, verdict = ran.out.splitlines()
    assert told.startswith(f"run {looping.id}: no call of read is blocked until 2")
    assert "; in the log as partition " in told
    assert judged == "judged: 1 verdict"
    assert verdict.split()[:2] == ["clear", "operator_allow"]
    [override] = [e["event"] for e in history(loopwarden, looping) if e.get("event", {}).get("action")]
    assert (override["action"], override["tool"], override["by"], override["why"]) == ("allow", "read", *WHO[1::2])
    assert before + 600_000 <= override["until"] <= before + 660_000


def test_abort_ends_the_run_and_release_lets_it_go_on(loopwarden: Callable[..., Any], looping: Run) -> None:
    aborted = loopwarden("override", "abort", "--run", looping.id, *WHO, "--wait", "60")
    assert aborted.code == 0
    assert f"run {looping.id}: it is ended; its runner is told to stop it" in aborted.out
    assert "abort  operator_abort" in aborted.out
    released = loopwarden("override", "release", "--run", looping.id, *WHO, "--wait", "60")
    assert "clear  operator_release" in released.out
    looping.tell(*looping.call(9))
    kinds = [entry["kind"] for entry in history(loopwarden, looping)][-4:]
    assert kinds == ["event", "verdict", "event", "verdict"]


def test_a_decision_that_changes_nothing_says_so(loopwarden: Callable[..., Any], cluster: Connection) -> None:
    run = Run(cluster)
    run.tell(*run.call(0))
    ran = loopwarden("override", "allow", "--run", run.id, *WHO, "--wait", "60")
    assert (ran.code, ran.out.splitlines()[1]) == (0, "judged: nothing stood in its way, no verdict was published")
    assert "no call is blocked until the run ends" in ran.out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("allow", "--for", "10"), "--for: must be a time such as 30s, 10m, 2h or 1d, got '10'"),
        (("allow", "--for", "0m"), "--for: must be a time such as 30s, 10m, 2h or 1d, got '0m'"),
        (("abort", "--for", "10m"), "--for: belongs to allow alone, abort is about the whole run"),
        (("release", "--tool", "read"), "--tool: belongs to allow alone, release is about the whole run"),
        (("allow", "--why", " "), "--why: must not be empty"),
        (("allow", "--tool", "t" * 300), "this would be no event: tool: "),
    ],
)
def test_an_option_that_cannot_be_is_told_before_anything_is_written(
    options: tuple[str, ...], told: str, run: Callable[..., Any]
) -> None:
    ran = run("override", *options[:1], "--run", "r", *WHO, *options[1:], "--broker", "127.0.0.1:1")
    assert ran.code == 2
    assert ran.err.startswith(f"loopwarden: {told}")


def test_history_follows_a_block_through_and_tells_who_decided_what_and_why(
    loopwarden: Callable[..., Any], looping: Run
) -> None:
    [block] = [e["verdict"] for e in history(loopwarden, looping) if e.get("verdict", {}).get("action") == "block"]
    looping.tell(looping.refuse(3, block["verdict_id"]))
    looping.tell(looping.refuse(4))
    looping.tell(*looping.call(5))
    loopwarden("override", "abort", "--run", looping.id, *WHO, "--wait", "60")
    looping.tell(*looping.call(6))
    ran = loopwarden("history", "--run", looping.id)
    lines = [line.split("  ", 1)[1] for line in ran.out.splitlines()]
    kinds = [line.split()[0] for line in lines]
    assert kinds == ["run", "warn", "block", "refused", "refused", "block", "override", "abort"]
    assert "started, agent main" in lines[0]
    assert lines[2].endswith("read  3/3  obeyed 2x, disobeyed 1x")
    assert lines[5].endswith("disobeyed 1x")
    assert lines[6].endswith("abort, by ada: I watch it")
    assert lines[7].endswith("the run  disobeyed: 1 call after it")
    assert "secret" not in ran.out
    assert f"run {looping.id}: 14 events, 4 verdicts in operators-agent-events" in ran.err


def test_history_as_json_has_every_entry_and_on_demand_every_call(loopwarden: Callable[..., Any], looping: Run) -> None:
    some, all_of_it = history(loopwarden, looping), history(loopwarden, looping, "--calls")
    assert [entry["kind"] for entry in some] == ["event", "verdict", "verdict"]
    assert [entry["kind"] for entry in all_of_it].count("event") == 7
    assert all("args" not in entry.get("event", {}) for entry in all_of_it)
    assert some[2]["followed"] == {"delivered": 0, "obeyed": 0, "disobeyed": 0}


def test_a_run_of_which_nothing_is_there_is_said(loopwarden: Callable[..., Any]) -> None:
    ran = loopwarden("history", "--run", "absent")
    assert (ran.code, ran.out) == (1, "")
    assert "run absent: operators-agent-events and operators-loop-verdicts at " in ran.err
    assert "hold nothing of it. Is the id right?" in ran.err


def test_watch_shows_how_many_blocked_calls_were_obeyed_and_disobeyed(
    loopwarden: Callable[..., Any], looping: Run
) -> None:
    looping.tell(looping.refuse(3), *looping.call(4))
    last = loopwarden("watch", "--run", looping.id, "--no-follow").out.splitlines()[-1]
    assert "obeyed 1, disobeyed 1" in last


def test_selftest_says_how_fast_a_loop_was_blocked(loopwarden: Callable[..., Any]) -> None:
    ran = loopwarden("selftest", "--timeout", "60")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("ok: the loop was blocked ")
    assert " ms after it was sent (partition " in ran.out


def test_selftest_without_a_worker_says_what_is_missing(run: Callable[..., Any], broker: LocalBroker) -> None:
    create_topics(broker.bootstrap_servers, declared_topics("workerless-", partitions=1))
    ran = run("selftest", "--timeout", "0.5", "--broker", broker.bootstrap_servers, "--prefix", "workerless-")
    assert (ran.code, ran.out) == (1, "")
    assert "no verdict on the loop within 0.5 s: partition 0 of workerless-agent-events" in ran.err
    assert "no worker has judged it: is one running (`loopwarden worker`)" in ran.err


def test_a_decision_without_a_worker_is_in_the_log_and_not_judged_yet(
    run: Callable[..., Any], broker: LocalBroker
) -> None:
    create_topics(broker.bootstrap_servers, declared_topics("workerless-", partitions=1))
    options = ("--broker", broker.bootstrap_servers, "--prefix", "workerless-")
    ran = run("override", "release", "--run", "r", *WHO, "--wait", "0.5", *options)
    assert ran.code == 1
    assert "run r: its counted calls are forgotten" in ran.out
    assert "it was not judged within 0.5 s. Is a worker running?" in ran.err
    shown = run("history", "--run", "r", *options)
    assert shown.out.splitlines()[0].endswith("override   release, by ada: I watch it")

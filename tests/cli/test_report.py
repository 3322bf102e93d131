"""`loopwarden report`: from a file, and from a real cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

from loopwarden.broker import LocalBroker
from loopwarden.client import Connection, apply_policy
from loopwarden.client.producer import HEADERS, PRODUCER_SETTINGS
from loopwarden.importers import Checked, check, open_source, read_events
from loopwarden.judge import RunState, judge
from loopwarden.recordings import POLICY, recordings
from loopwarden.report.as_json import from_json
from loopwarden_schemas.codec import encode_event, encode_verdict
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import PolicyApplied, Verdict
from loopwarden_schemas.topics import Topics, partition_for

PING_PONG = recordings()["openclaw-ping-pong"]


def test_a_report_of_a_file_is_html_unless_said_otherwise(run: Callable[..., Any], strict: Path) -> None:
    ran = run("report", "--from-file", PING_PONG, "--policy", strict)
    assert ran.code == 0
    assert ran.out.startswith("<!doctype html>")
    assert "went back and forth between two calls" in ran.out


@pytest.mark.parametrize(("name", "begins"), [("r.html", "<!doctype"), ("r.md", "# Run pingpong"), ("r.json", "{")])
def test_the_form_is_that_of_the_files_name(
    run: Callable[..., Any], strict: Path, tmp_path: Path, name: str, begins: str
) -> None:
    ran = run("report", "--from-file", PING_PONG, "--policy", strict, "-o", tmp_path / name)
    assert (ran.code, ran.out) == (0, "")
    assert (tmp_path / name).read_text("utf-8").startswith(begins)
    assert "40 calls. The run went back and forth" in ran.err


def test_the_form_that_is_asked_for_counts_more_than_the_name(run: Callable[..., Any], tmp_path: Path) -> None:
    run("report", "--from-file", PING_PONG, "-o", tmp_path / "r.html", "--format", "json")
    assert from_json((tmp_path / "r.html").read_bytes()).run_id == "pingpong"


def test_payloads_can_be_left_out(run: Callable[..., Any]) -> None:
    assert "/workspace/a.txt" in run("report", "--from-file", PING_PONG).out
    assert "/workspace/a.txt" not in run("report", "--from-file", PING_PONG, "--payloads", "0").out


def test_the_policy_given_counts_whatever_was_applied_in_the_file(
    run: Callable[..., Any], strict: Path, tmp_path: Path
) -> None:
    file = tmp_path / "run.jsonl"
    events: list[dict[str, Any]] = [{"type": "policy.applied", "number": 1, "digest": "d", "policy": {}}]
    events += [{"type": "tool_call.finished", "run_id": "r", "tool": "t", "result": 1} for _ in range(9)]
    file.write_text("\n".join(map(json.dumps, events)))
    assert from_json(run("report", "--from-file", file, "--format", "json").out).severity == "quiet"
    assert from_json(run("report", "--from-file", file, "--policy", strict, "--format", "json").out).severity == "block"


def test_of_several_runs_one_must_be_named(run: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text("\n".join(json.dumps({"type": "run.finished", "run_id": each, "ts": 1}) for each in "ab"))
    ran = run("report", "--from-file", file)
    assert ran.code == 2
    assert ran.err.endswith("holds 2 runs: say with --run ID which one; it holds a, b\n")
    assert run("report", "--from-file", file, "--run", "b", "--format", "json").code == 0


def test_a_run_that_is_not_in_the_file_is_told_with_those_that_are(run: Callable[..., Any]) -> None:
    ran = run("report", "--from-file", PING_PONG, "--run", "nobody")
    assert (ran.code, ran.out) == (1, "")
    assert "holds nothing of run nobody; it holds pingpong" in ran.err


def test_a_run_that_is_not_all_in_its_file_is_drawn_and_says_so(run: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "exported.jsonl"
    file.write_text(
        '{"type": "run.exported", "run_id": "r", "partition": 0, "events": 2, "judged_events": 2}\n'
        '{"type": "run.started", "event_id": "e", "run_id": "r", "ts": 1}\n'
    )

    ran = run("report", "--from-file", file, "--format", "md")

    assert ran.code == 0, ran.err
    assert "lost events in the file" in ran.out


def test_a_file_without_runs_is_a_mistake(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    ran = run("report", "--from-file", tmp_path / "empty")
    assert ran.code == 2
    assert "must hold at least one event of a run" in ran.err


def test_an_output_that_cannot_be_written_is_a_mistake(run: Callable[..., Any], tmp_path: Path) -> None:
    ran = run("report", "--from-file", PING_PONG, "-o", tmp_path / "no" / "where.html")
    assert ran.code == 2
    assert "cannot be written: No such file or directory" in ran.err


def test_the_file_that_is_read_is_never_written(run: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(PING_PONG.read_bytes())
    assert run("report", "--from-file", file, "-o", file).code == 2
    assert file.read_bytes() == PING_PONG.read_bytes()


def test_without_a_run_and_without_a_file_the_way_out_is_told(run: Callable[..., Any]) -> None:
    ran = run("report")
    assert ran.code == 2
    assert "--from-file" in ran.err


class Cluster:
    """A run on the real broker: its events, and the verdicts that a worker would publish."""

    def __init__(self, connection: Connection, topics: Topics) -> None:
        from kafka import KafkaProducer

        self.connection = connection
        self._topics = topics
        self._producer = KafkaProducer(bootstrap_servers=connection.bootstrap_servers, **PRODUCER_SETTINGS)

    def publish(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            self._send(self._topics.events.name, str(event["run_id"]), encode_event(event))
        self._producer.flush()

    def publish_verdicts(self, verdicts: list[Verdict]) -> None:
        for verdict in verdicts:
            self._send(self._topics.verdicts.name, verdict.run_id, encode_verdict(verdict))
        self._producer.flush()

    def judged(self, run_id: str) -> list[Verdict]:
        from loopwarden.cli.run_log import run_log_of_cluster

        state: RunState | None = None
        verdicts: list[Verdict] = []
        policy = PolicyDocument({})
        for event in run_log_of_cluster(self.connection, run_id).events:
            if isinstance(event, PolicyApplied):
                policy = PolicyDocument.from_value(event.policy)
            else:
                state, _, found = judge(state, event, policy)
                verdicts += found
        return verdicts

    def say_judged(self, run_id: str, judged: int) -> None:
        """As a worker does once the events below an offset are judged."""
        partition = partition_for(run_id, 2)
        told = msgpack.packb({"judged": judged, "verdicts": 0})
        self._producer.send(self._topics.progress.name, told, key=b"%d" % partition, partition=partition)
        self._producer.flush()

    def close(self) -> None:
        self._producer.close()

    def _send(self, topic: str, run_id: str, value: bytes) -> None:
        partition = partition_for(run_id, 2)
        self._producer.send(topic, value, key=run_id.encode(), partition=partition, headers=HEADERS)


def test_a_run_of_the_cluster_is_drawn_with_its_policy_and_its_published_verdicts(
    run: Callable[..., Any], broker: LocalBroker, topics: Topics, tmp_path: Path
) -> None:
    connection = Connection(broker.bootstrap_servers, topics.prefix)
    where = ("--broker", broker.bootstrap_servers, "--prefix", topics.prefix)
    apply_policy(connection, PolicyDocument.from_value(POLICY), by="kim", why="first", ts=1)
    with open_source(str(PING_PONG)) as source:
        events = [item.wire for item in check(read_events(source)) if isinstance(item, Checked)]
    cluster = Cluster(connection, topics)
    try:
        cluster.publish(events)
        # Of the same partition and, most likely, of another one.
        cluster.publish([{**event, "run_id": f"other-{number}"} for number in range(3) for event in events[:4]])
        verdicts = cluster.judged("pingpong")
        cluster.publish_verdicts([*verdicts[1:], *verdicts[1:3]])
        early = run("report", "--run", "pingpong", "--format", "json", *where)
        cluster.say_judged("pingpong", 10_000)
    finally:
        cluster.close()
    assert from_json(early.out).notes == (
        f"{len(events)} events had not been judged yet: their verdicts were still to come",
        "1 verdict of the judge not among the recorded ones",
    )

    ran = run("report", "--run", "pingpong", "--format", "json", *where)
    assert (ran.code, ran.err) == (0, "")
    drawn = from_json(ran.out)
    assert (drawn.totals.calls, drawn.totals.refused) == (40, 26)
    assert [verdict.recorded for verdict in drawn.verdicts] == [False] + [True] * (len(verdicts) - 1)
    assert drawn.policies[0].source == "policy 0, applied in the log"
    assert drawn.policies[0].table["warningThreshold"] == 4
    assert drawn.notes == ("1 verdict of the judge not among the recorded ones",)

    exported = tmp_path / "run.jsonl"
    assert run("export", "--run", "pingpong", "-o", exported, *where).code == 0
    from_file = run("report", "--from-file", exported, "--format", "json")
    assert from_json(from_file.out).verdicts == drawn.verdicts
    assert from_json(from_file.out).cells == drawn.cells

    nobody = run("report", "--run", "nobody", *where)
    assert (nobody.code, nobody.out) == (1, "")
    assert "holds nothing of it. Is the id right?" in nobody.err

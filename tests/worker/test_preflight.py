"""Topics that would make the guarantees false are refused, with the setting and the command that mends it."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest

from loopwarden.client import Connection
from loopwarden.worker.preflight import find_mistakes
from loopwarden_schemas.state import STATE_VERSION
from loopwarden_schemas.topic_differences import Found
from loopwarden_schemas.topics import declared_topics

CONNECTION = Connection("kafka:9092", "team-")
KAFKAS_DEFAULTS = {
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
}


def mistakes(changed: str = "", *, partitions: int = 4, **config: str) -> list[str]:
    """What is wrong when one topic is otherwise than declared."""
    found = {
        topic.name: Found(
            partitions if topic.name == changed else topic.partitions,
            1,
            {**KAFKAS_DEFAULTS, **topic.config, **(config if topic.name == changed else {})},
        )
        for topic in declared_topics("team-", 4).all()
    }
    return find_mistakes(CONNECTION, found)


def test_the_topics_as_they_are_declared_are_taken() -> None:
    assert mistakes() == []


def test_a_missing_topic_is_named_with_the_command_that_creates_it() -> None:
    told = find_mistakes(CONNECTION, {})
    assert len(told) == 6
    assert told[0] == (
        "team-agent-events: must exist, but does not:"
        " `loopwarden topics apply --broker kafka://kafka:9092 --prefix team-` mends it"
    )


@pytest.mark.parametrize(
    ("name", "setting", "found"),
    [
        ("team-agent-events", "message.timestamp.type", "CreateTime"),
        ("team-agent-events", "unclean.leader.election.enable", "true"),
        ("team-agent-events", "min.insync.replicas", "2"),
        ("team-loopwarden-runs-changelog", "min.compaction.lag.ms", "0"),
        ("team-loop-verdicts", "max.message.bytes", "100000"),
        ("team-agent-events-dead", "max.message.bytes", "1048588"),
    ],
)
def test_a_setting_that_breaks_a_guarantee_is_named_with_the_command_that_mends_it(
    name: str, setting: str, found: str
) -> None:
    (mistake,) = mistakes(name, **{setting: found})
    assert mistake.startswith(f"{name}: {setting} must be ")
    assert f", got {found}: " in mistake
    assert mistake.endswith("`loopwarden topics apply --broker kafka://kafka:9092 --prefix team-` mends it")


def test_what_only_differs_from_the_declaration_is_taken() -> None:
    assert mistakes("team-agent-events", **{"retention.ms": "1000"}) == []


def test_a_partition_count_that_cannot_be_mended_is_refused_with_the_way_out() -> None:
    (mistake,) = mistakes("team-loopwarden-runs-changelog", partitions=3)
    assert mistake.startswith("team-loopwarden-runs-changelog: partitions must be 4, got 3: the states of a run lie on")
    assert "declare topics under another prefix" in mistake


def test_the_worker_refuses_to_start_on_such_a_topic(installation: Any) -> None:
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=installation.servers)
    name = installation.topics.events.name
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"message.timestamp.type": "CreateTime"})])
    admin.close()
    worker = installation.start_worker()
    assert worker.exit_code() == 1
    assert f"{name}: message.timestamp.type must be LogAppendTime, got CreateTime" in worker.log
    assert "Traceback" not in worker.log


def test_a_state_from_beyond_the_logs_end_stops_the_worker(installation: Any) -> None:
    head = msgspec.msgpack.encode([STATE_VERSION, 41, 0])
    installation.producer.send(installation.topics.changelog.name, head, key=b"run-7", partition=1).get(30)
    worker = installation.start_worker()
    assert worker.exit_code() == 1
    assert f"{installation.topics.events.name} partition 1: must reach to offset 42" in worker.log
    assert "ends at 0" in worker.log
    assert "Traceback" not in worker.log


def test_a_state_of_an_unknown_version_stops_the_worker(installation: Any) -> None:
    head = msgspec.msgpack.encode([STATE_VERSION + 1, 0, 0])
    installation.producer.send(installation.topics.changelog.name, head, key=b"run-7", partition=1).get(30)
    worker = installation.start_worker()
    assert worker.exit_code() == 1
    assert "run 'run-7': state record: version must be 1, got 2" in worker.log
    assert "Traceback" not in worker.log


def test_a_group_that_refuses_the_worker_ends_it(installation: Any) -> None:
    worker = installation.start_worker(LOOPWARDEN_SESSION_SECONDS="1")
    assert worker.exit_code() == 1
    assert "the broker does not let this worker into its group" in worker.log


def test_a_broker_that_is_not_there_is_tried_again_and_the_log_says_so(installation: Any) -> None:
    worker = installation.start_worker(LOOPWARDEN_BOOTSTRAP_SERVERS="127.0.0.1:1")
    worker.wait_for_log("no Kafka broker answers at 127.0.0.1:1")
    worker.wait_for_log("trying again in 1.0 s")
    assert worker.stop() == 0


def test_what_is_not_said_by_the_environment_has_its_default(installation: Any) -> None:
    assert "LOOPWARDEN_HELD_RUNS" not in os.environ
    worker = installation.start_worker(LOOPWARDEN_HELD_RUNS="none")
    assert worker.exit_code() == 1
    assert worker.log.strip() == "LOOPWARDEN_HELD_RUNS: must be a whole number above 0, got 'none'"

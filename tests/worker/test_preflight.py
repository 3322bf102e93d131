"""Topics that would make the guarantees false are refused, with the setting and the command that mends it."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest

from loopwarden.worker.preflight import find_mistakes
from loopwarden_schemas.state import STATE_VERSION
from loopwarden_schemas.topics import declared_topics

TOPICS = declared_topics(partitions=4)
PARTITIONS = {topic.name: topic.partitions for topic in TOPICS.all()}
KAFKAS_DEFAULTS = {"max.message.bytes": "1048588", "message.timestamp.type": "CreateTime", "min.compaction.lag.ms": "0"}
CONFIGS = {topic.name: {**KAFKAS_DEFAULTS, **topic.config} for topic in TOPICS.all()}


def mistakes(*, partitions: dict[str, int] | None = None, **configs: dict[str, str]) -> list[str]:
    changed = {name: {**config, **configs.get(name.replace("-", "_"), {})} for name, config in CONFIGS.items()}
    return find_mistakes("kafka:9092", TOPICS, {**PARTITIONS, **(partitions or {})}, changed)


def test_the_topics_as_they_are_declared_are_taken() -> None:
    assert mistakes() == []


def test_a_missing_topic_is_named_with_the_command_that_creates_it() -> None:
    partitions = {name: number for name, number in PARTITIONS.items() if name != "loop-verdicts"}
    (mistake,) = find_mistakes("kafka:9092", TOPICS, partitions, {})
    assert mistake.startswith("loop-verdicts: must exist")
    assert "loopwarden up --broker kafka://kafka:9092" in mistake


@pytest.mark.parametrize("name", ["loop-verdicts", "loop-progress", "agent-events-dead", "loopwarden-runs-changelog"])
def test_partition_counts_must_agree(name: str) -> None:
    (mistake,) = mistakes(partitions={name: 3})
    assert mistake.startswith(f"{name}: partitions must be as many as those of agent-events, 4, got 3")


def test_policies_must_have_one_partition() -> None:
    (mistake,) = mistakes(partitions={"loop-policies": 2})
    assert "loop-policies: partitions must be 1" in mistake


@pytest.mark.parametrize(
    ("topic", "setting", "found", "wanted"),
    [
        ("agent_events", "message.timestamp.type", "CreateTime", "LogAppendTime"),
        ("agent_events", "cleanup.policy", "compact", "delete"),
        ("loopwarden_runs_changelog", "cleanup.policy", "delete", "compact"),
        ("loopwarden_runs_changelog", "cleanup.policy", "compact,delete", "compact"),
        ("loopwarden_runs_changelog", "min.compaction.lag.ms", "0", "3600000"),
        ("loopwarden_runs_changelog", "max.message.bytes", "100000", "263168"),
        ("loop_progress", "cleanup.policy", "delete", "compact"),
        ("loop_policies", "cleanup.policy", "compact", "delete"),
        ("loop_policies", "retention.ms", "604800000", "-1"),
        ("loop_verdicts", "max.message.bytes", "100000", "263168"),
        ("agent_events_dead", "max.message.bytes", "1048588", "1179648"),
    ],
)
def test_a_setting_that_breaks_a_guarantee_is_named_with_the_command_that_mends_it(
    topic: str, setting: str, found: str, wanted: str
) -> None:
    (mistake,) = mistakes(**{topic: {setting: found}})
    name = topic.replace("_", "-")
    assert mistake.startswith(f"{name}: {setting} must be ")
    assert f"got {found}: kafka-configs.sh --bootstrap-server kafka:9092 --alter" in mistake
    assert mistake.endswith(f"--entity-name {name} --add-config {setting}={wanted}")


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

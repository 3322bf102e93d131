"""The declared topics on a real cluster: created, altered, and left alone where nothing is to be done."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

import pytest

from loopwarden.client import (
    Connection,
    TopicsFailed,
    TopicsRefused,
    admin_client,
    apply_declarations,
    create_topics,
    find_differences,
    find_topics,
)
from loopwarden_schemas.topic_differences import Wanted
from loopwarden_schemas.topics import Topics, declared_topics

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker, LocalCluster

HANG_S = 30


def found_of(connection: Connection) -> dict[str, Any]:
    return dict(find_topics(connection, connection.topics().all()))


def alter(connection: Connection, topic: str, **config: str) -> None:
    from kafka.admin import ConfigResource

    with admin_client(connection) as client:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        client.alter_configs([ConfigResource("topic", topic, settings)])


def test_topics_that_are_created_are_those_declared_whoever_creates_them(broker: LocalBroker) -> None:
    applied = Connection(broker.bootstrap_servers, f"t{secrets.token_hex(4)}-")
    done = apply_declarations(applied, Wanted(applied.topic_prefix, partitions=3))
    assert [each.change for each in done] == ["create"] * 6
    assert [topic.partitions for topic in found_of(applied).values()] == [3, 3, 3, 1, 3, 3]
    created = Connection(broker.bootstrap_servers, f"t{secrets.token_hex(4)}-")
    create_topics(created, declared_topics(created.topic_prefix, 3))
    for connection in (applied, created):
        assert find_differences(connection, Wanted(connection.topic_prefix)) == []
        assert apply_declarations(connection, Wanted(connection.topic_prefix, partitions=3)) == []


def test_settings_that_are_less_than_declared_are_altered_and_more_is_left(
    connection: Connection, topics: Topics
) -> None:
    alter(connection, topics.events.name, message_timestamp_type="CreateTime", retention_ms="1")
    alter(connection, topics.verdicts.name, retention_ms="-1")
    wanted = Wanted(connection.topic_prefix)
    done = apply_declarations(connection, wanted)
    assert [(each.topic, each.setting, each.found) for each in done] == [
        (topics.events.name, "retention.ms", "1"),
        (topics.events.name, "message.timestamp.type", "CreateTime"),
    ]
    found = found_of(connection)
    assert found[topics.events.name].config["message.timestamp.type"] == "LogAppendTime"
    assert found[topics.verdicts.name].config["retention.ms"] == "-1"
    assert find_differences(connection, wanted) == []


def test_a_topic_that_is_missing_gets_the_partitions_of_the_others(connection: Connection, topics: Topics) -> None:
    with admin_client(connection) as client:
        client.delete_topics([topics.verdicts.name, topics.dead.name])
        deadline = time.monotonic() + HANG_S
        while {topics.verdicts.name, topics.dead.name} & found_of(connection).keys():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        client.create_topics({topics.dead.name: {"num_partitions": 1, "replication_factor": 1}})
    apply_declarations(connection, Wanted(connection.topic_prefix))
    found = found_of(connection)
    assert found[topics.verdicts.name].partitions == found[topics.dead.name].partitions == 2


def test_where_something_is_refused_nothing_is_changed(connection: Connection, topics: Topics) -> None:
    alter(connection, topics.events.name, retention_ms="1")
    for partitions in (1, 5):
        with pytest.raises(TopicsRefused, match=r"runs would move away|would move away from their states.*--prefix"):
            apply_declarations(connection, Wanted(connection.topic_prefix, partitions=partitions))
    assert found_of(connection)[topics.events.name].config["retention.ms"] == "1"


def test_more_replicas_than_brokers_are_refused_by_name(connection: Connection) -> None:
    with pytest.raises(TopicsFailed, match="must be at most the number of brokers, 1, got 2"):
        apply_declarations(connection, Wanted(connection.topic_prefix, replication=2))


def test_replicas_are_added_and_two_of_three_must_have_a_record(cluster: LocalCluster) -> None:
    connection = Connection(cluster.bootstrap_servers, f"t{secrets.token_hex(4)}-")
    create_topics(connection, declared_topics(connection.topic_prefix, 2), replication_factor=1)
    alter(connection, connection.topics().events.name, min_insync_replicas="1")
    wanted = Wanted(connection.topic_prefix, replication=3)
    done = apply_declarations(connection, wanted)
    assert {each.setting for each in done} <= {"replication factor", "min.insync.replicas"}
    for topic in found_of(connection).values():
        assert topic.replicas == 3
        assert topic.config["min.insync.replicas"] == "2"
    assert find_differences(connection, wanted) == []
    with pytest.raises(TopicsRefused, match="fewer copies are never made"):
        apply_declarations(connection, Wanted(connection.topic_prefix, replication=1))

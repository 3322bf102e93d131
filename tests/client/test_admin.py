from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from kafka.admin import ConfigResource
from kafka.errors import KafkaConnectionError

from loopwarden.broker import LocalBroker
from loopwarden.broker.ports import free_port
from loopwarden.client import BrokerUnavailable, TopicsFailed, WrongSetting, admin_client, create_topics
from loopwarden_schemas.topics import Topics, declared_topics


@pytest.mark.parametrize("topics", [3], indirect=True)
def test_created_topics_are_those_declared_and_every_partition_has_its_leader(
    broker: LocalBroker, topics: Topics
) -> None:
    with admin_client(broker.bootstrap_servers) as client:
        found = {topic["name"]: topic for topic in client.describe_topics([topic.name for topic in topics.all()])}
    for topic in topics.all():
        partitions = found[topic.name]["partitions"]
        assert len(partitions) == topic.partitions
        assert all(partition["leader_id"] >= 0 for partition in partitions)


def test_topics_that_exist_are_left_as_they_are(broker: LocalBroker, topics: Topics) -> None:
    assert create_topics(broker.bootstrap_servers, topics) == []


def test_topics_that_are_missing_are_created_beside_those_that_exist(broker: LocalBroker, topics: Topics) -> None:
    with admin_client(broker.bootstrap_servers) as client:
        client.delete_topics([topics.dead.name])
        while topics.dead.name in client.list_topics():
            pass
    assert create_topics(broker.bootstrap_servers, topics) == [topics.dead.name]


def test_topics_have_the_settings_declared(broker: LocalBroker, topics: Topics) -> None:
    with admin_client(broker.bootstrap_servers) as client:
        for topic in topics.all():
            settings = client.describe_configs([ConfigResource("topic", topic.name)])["topic"][topic.name]
            assert {key: settings[key]["value"] for key in topic.config} == topic.config


def test_what_the_broker_refuses_is_named_with_its_reason(broker: LocalBroker) -> None:
    topics = declared_topics("refused-")
    with pytest.raises(TopicsFailed, match=r"^refused-agent-events: the broker refused .*InvalidReplicationFactor"):
        create_topics(broker.bootstrap_servers, topics, replication_factor=3)


def _address_nobody_listens_at() -> str:
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def listener_that_says_nothing() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def _unavailable(address: str) -> str:
    started = time.monotonic()
    with pytest.raises(BrokerUnavailable) as error:
        create_topics(address, declared_topics())
    assert time.monotonic() - started < 10  # promised to users, see design of `loopwarden`'s commands
    assert address in str(error.value)
    return str(error.value)


def test_an_address_where_nobody_listens_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    address = _address_nobody_listens_at()
    assert "Connection refused" in _unavailable(address)
    assert "Connection refused" in _unavailable(f"{address},{address}")
    assert capfd.readouterr() == ("", "")


def test_a_listener_that_is_no_kafka_is_named_and_leaves_nothing_behind(
    listener_that_says_nothing: str, capfd: pytest.CaptureFixture[str]
) -> None:
    threads = threading.active_count()
    assert "does not answer as one" in _unavailable(listener_that_says_nothing)
    assert threading.active_count() == threads
    assert capfd.readouterr() == ("", "")


def test_a_name_that_does_not_exist_is_named() -> None:
    _unavailable("no-such-host.invalid:9092")


@pytest.mark.parametrize(
    "address", ["", "host:", ":9092", "host:port", "host:70000", "127.0.0.1:9092,", "host:0", "http://host:1"]
)
def test_what_is_no_address_is_refused_with_the_rule(address: str) -> None:
    with pytest.raises(WrongSetting, match=r"each must be HOST:PORT with a port from 1 to 65535"):
        create_topics(address, declared_topics())


def test_one_of_several_servers_is_enough(broker: LocalBroker, topics: Topics) -> None:
    assert create_topics(f"{_address_nobody_listens_at()}, {broker.bootstrap_servers}", topics) == []


def test_a_broker_of_several_that_just_went_is_no_reason_to_give_up(broker: LocalBroker) -> None:
    servers = broker.bootstrap_servers
    with pytest.raises(BrokerUnavailable, match="try again"), admin_client(f"{servers},{servers}"):
        raise KafkaConnectionError("111 ECONNREFUSED")
    with pytest.raises(BrokerUnavailable) as alone, admin_client(servers):
        raise KafkaConnectionError("111 ECONNREFUSED")
    assert "try again" not in str(alone.value)

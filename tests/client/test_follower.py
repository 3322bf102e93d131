from __future__ import annotations

import gc

import pytest

from loopwarden.broker import LocalBroker
from loopwarden.client import BrokerUnavailable, Connection, TopicMissing, create_topics, event_producer, following
from loopwarden_schemas.topics import declared_topics


def _publish(connection: Connection, values: list[bytes]) -> None:
    with event_producer(connection) as producer:
        for value in values:
            producer.publish("run", value, "value")


def test_from_now_on_only_what_comes_later_is_read(connection: Connection) -> None:
    _publish(connection, [b"before"])
    with following(connection, connection.topics().events.name) as follower:
        follower.start("now")
        assert follower.poll(0.2) == []
        _publish(connection, [b"after"])
        assert [record.value for record in follower.poll(10)] == [b"after"]


def test_reading_to_an_end_stops_there_though_more_has_come(connection: Connection) -> None:
    _publish(connection, [b"1", b"2", b"3"])
    with following(connection, connection.topics().events.name) as follower:
        ends = follower.ends()
        _publish(connection, [b"4"])
        ranges = {partition: (0, end) for partition, end in ends.items()}
        assert [each.value for records in follower.read(ranges) for each in records] == [b"1", b"2", b"3"]
        again = {partition: (max(0, end - 1), end) for partition, end in ends.items()}
        assert [each.value for records in follower.read(again) for each in records] == [b"3"]


def test_a_topic_that_is_missing_is_named(broker: LocalBroker) -> None:
    connection = Connection(broker.bootstrap_servers)
    with pytest.raises(TopicMissing, match=r"^no-such-topic: must exist"), following(connection, "no-such-topic"):
        pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_broker_that_goes_away_ends_the_following_with_its_address(tmp_path_factory: pytest.TempPathFactory) -> None:
    with LocalBroker(tmp_path_factory.mktemp("leaving"), port=0) as broker:
        create_topics(broker.bootstrap_servers, declared_topics(partitions=1))
        connection = Connection(broker.bootstrap_servers)
        named = f"^{broker.bootstrap_servers}: .*Connection refused"
        with pytest.raises(BrokerUnavailable, match=named), following(connection, "loop-verdicts") as follower:
            follower.start("now")
            broker.kill()
            while True:
                follower.poll()
    gc.collect()  # kafka-python forgets to close the sockets with which it tried again

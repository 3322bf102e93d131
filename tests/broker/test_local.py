from __future__ import annotations

import socket
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from loopwarden.broker import BrokerFailed, DataDirInUse, LocalBroker, create_topics, local
from loopwarden.broker.ports import free_port
from loopwarden_schemas.topics import Topics, declared_topics


def _publish(broker: LocalBroker, topics: Topics, value: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks="all")
    producer.send(topics.events.name, value, partition=0).get(timeout=30)
    producer.close()


def _values(broker: LocalBroker, topics: Topics, count: int) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topics.events.name, 0)])
    values: list[bytes] = []
    while len(values) < count:
        for records in consumer.poll(timeout_ms=30_000).values():
            values += [record.value for record in records]
    consumer.close()
    return values


def test_started_again_it_goes_on_with_its_data_after_a_stop_a_crash_and_on_another_port(tmp_path: Path) -> None:
    topics = declared_topics(partitions=2)
    data = tmp_path / "größe of data"  # Java reads the path from a file, and from its command line
    with socket.create_server(("127.0.0.1", 0)) as usual:
        usual_port = usual.getsockname()[1]
        broker = LocalBroker(data, port=usual_port)
        broker.start()
        try:
            address = broker.bootstrap_servers
            assert address != f"127.0.0.1:{usual_port}"
            create_topics(address, topics)
            _publish(broker, topics, b"before the crash")

            broker.kill()
            broker.start()
            assert broker.bootstrap_servers == address
            assert _values(broker, topics, 1) == [b"before the crash"]
            _publish(broker, topics, b"after it")
        finally:
            broker.stop()

    with LocalBroker(data, port=usual_port) as moved:
        assert moved.bootstrap_servers == f"127.0.0.1:{usual_port}"
        assert create_topics(moved.bootstrap_servers, topics) == []
        assert _values(moved, topics, 2) == [b"before the crash", b"after it"]
        _publish(moved, topics, b"on another port")
        assert _values(moved, topics, 3)[-1] == b"on another port"


def test_a_second_broker_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with LocalBroker(tmp_path, port=0) as broker:
        second = LocalBroker(tmp_path, port=0)
        with pytest.raises(DataDirInUse, match=rf"in use by a running broker \(process {broker.pid}, 127\.0\.0\.1:"):
            second.start()
        second.stop()
        assert broker.exit_code is None


def test_a_broker_that_cannot_start_says_where_its_log_is_and_how_that_ends(tmp_path: Path) -> None:
    data = tmp_path / "broker" / "data"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n")
    broker = LocalBroker(tmp_path / "broker", port=0)
    with pytest.raises(
        BrokerFailed, match=r"stopped while it started, with exit code 1; its log, .*kafka\.log, ends"
    ) as no:
        broker.start()
    assert "node" in str(no.value)
    assert broker.pid is None


def test_a_data_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BrokerFailed, match=r"file/data: the broker's data folder must be writable"):
        LocalBroker(tmp_path / "file" / "data").start()


def test_of_two_that_begin_at_one_port_at_the_same_time_each_gets_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalBroker(tmp_path / "first", port=0) as first:
        port = int(first.bootstrap_servers.split(":")[1])
        # As it was when both looked.
        found = iter([port])
        monkeypatch.setattr(local, "free_port", lambda preferred=0: next(found, None) or free_port(preferred))
        with LocalBroker(tmp_path / "second", port=port) as second:
            assert second.bootstrap_servers != first.bootstrap_servers

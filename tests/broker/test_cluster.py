from __future__ import annotations

import gc
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource

from loopwarden.broker import BrokerFailed, LocalCluster, PortTaken, admin_client
from loopwarden.broker.properties import HOST
from loopwarden.client.admin import wait_for_leaders

# kafka-python leaves a socket behind each time it meets a node that is not there.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

HANG_S = 60.0


@pytest.fixture(autouse=True)
def _forgotten_sockets() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def topic(cluster: LocalCluster) -> str:
    """A topic of one partition with as many replicas as the cluster gives it by itself."""
    name = f"t{secrets.token_hex(4)}"
    with admin_client(cluster.bootstrap_servers) as client:
        client.create_topics({name: {"num_partitions": 1, "replication_factor": -1, "configs": {}}})
        wait_for_leaders(client, [name], time.monotonic() + HANG_S)
    cluster.wait_until_in_sync()
    return name


@contextmanager
def producing(bootstrap_servers: str) -> Iterator[Any]:
    # Who is paused never answers: by default it is given 30 s.
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers.split(","), acks="all", request_timeout_ms=3000)
    yield producer
    producer.close(timeout=5)


def partition_of(bootstrap_servers: str, topic: str) -> dict[str, Any]:
    with admin_client(bootstrap_servers) as client:
        partition: dict[str, Any] = client.describe_topics([topic])[0]["partitions"][0]
        return partition


def wait_until(it_is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_S
    while not it_is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def values(cluster: LocalCluster, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers.split(","), auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    read: list[bytes] = []
    deadline = time.monotonic() + HANG_S
    while len(read) < count and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=1000).values():
            read += [record.value for record in records]
    consumer.close()
    return read


def test_a_topic_goes_on_without_one_of_three_nodes_and_has_all_of_them_again_when_it_is_back(
    cluster: LocalCluster, topic: str
) -> None:
    assert sorted(partition_of(cluster.bootstrap_servers, topic)["replica_nodes"]) == [1, 2, 3]
    with producing(cluster.bootstrap_servers) as producer:
        producer.send(topic, b"with all three").get(HANG_S)

        killed = partition_of(cluster.bootstrap_servers, topic)["leader_id"]
        pid = cluster.pid(killed)
        assert pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: killed not in cluster.running)
        producer.send(topic, b"with two of them").get(HANG_S)
        # Another node may hear of it a moment after the new leader.
        wait_until(lambda: partition_of(cluster.bootstrap_servers, topic)["leader_id"] != killed)
        assert sorted(partition_of(cluster.bootstrap_servers, topic)["isr_nodes"]) == sorted(cluster.running)

        cluster.start()
        assert cluster.running == (1, 2, 3)
        cluster.wait_until_in_sync()
        assert sorted(partition_of(cluster.bootstrap_servers, topic)["isr_nodes"]) == [1, 2, 3]
        producer.send(topic, b"with all three again").get(HANG_S)
    assert values(cluster, topic, 3) == [b"with all three", b"with two of them", b"with all three again"]


def test_a_topic_needs_two_of_its_three_replicas(cluster: LocalCluster, topic: str) -> None:
    with admin_client(cluster.bootstrap_servers) as client:
        settings = client.describe_configs([ConfigResource("topic", topic)], config_filter="all")
    assert settings["topic"][topic]["min.insync.replicas"]["value"] == "2"


def test_a_paused_node_is_replaced_and_catches_up_when_it_goes_on(cluster: LocalCluster, topic: str) -> None:
    paused = partition_of(cluster.bootstrap_servers, topic)["leader_id"]
    cluster.pause(paused)
    other = next(node for node in cluster.node_ids if node != paused)
    with producing(cluster.address(other)) as producer:
        producer.send(topic, b"while it was paused").get(HANG_S)
    assert paused in cluster.running
    cluster.resume(paused)
    cluster.wait_until_in_sync()
    assert values(cluster, topic, 1) == [b"while it was paused"]


def test_all_nodes_go_on_with_their_data_and_ports_after_a_crash(cluster: LocalCluster, topic: str) -> None:
    addresses = cluster.bootstrap_servers
    with producing(addresses) as producer:
        producer.send(topic, b"before the crash").get(HANG_S)
    cluster.kill()
    assert cluster.running == ()
    cluster.start()
    assert cluster.bootstrap_servers == addresses
    assert values(cluster, topic, 1) == [b"before the crash"]


def test_a_node_whose_port_is_taken_says_so_while_the_others_run_on_and_starts_when_it_is_free(
    cluster: LocalCluster,
) -> None:
    cluster.stop(1)
    with (
        socket.create_server((HOST, int(cluster.address(1).split(":")[1]))),
        pytest.raises(PortTaken, match=r"node-1/kafka\.log, ends"),
    ):
        cluster.start()
    assert cluster.running == (2, 3)
    cluster.restart(1)
    assert cluster.running == (1, 2, 3)


def test_a_data_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BrokerFailed, match=r"file/data: the cluster's data folder must be writable"):
        LocalCluster(tmp_path / "file" / "data").start()

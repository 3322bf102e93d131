from pathlib import Path

from loopwarden.broker.properties import node_properties, render


def test_a_node_listens_on_loopback_only() -> None:
    properties = node_properties(Path("/data"), 9092, 9093)
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:9093"


def test_one_node_asks_for_one_replica_of_everything() -> None:
    properties = node_properties(Path("/data"), 9092, 9093)
    replicas = {key: value for key, value in properties.items() if key.endswith(("replication.factor", "min.isr"))}
    assert len(replicas) == 6
    assert set(replicas.values()) == {"1"}


def test_a_path_is_written_as_java_reads_it() -> None:
    assert render({"log.dirs": "/home/zoë/a\\b/😀"}) == "log.dirs=/home/zo\\u00eb/a\\\\b/\\ud83d\\ude00\n"

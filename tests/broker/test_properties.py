from pathlib import Path

from loopwarden.broker.properties import NodeSettings, node_properties, render

ALONE = NodeSettings(1, {"PLAINTEXT": 9092}, {1: 9093})
SECOND_OF_THREE = NodeSettings(2, {"PLAINTEXT": 9092}, {1: 9191, 2: 9192, 3: 9193})


def _replicas(settings: NodeSettings) -> dict[str, str]:
    properties = node_properties(Path("/data"), settings)
    ends = ("replication.factor", "min.isr", "min.insync.replicas")
    return {key: value for key, value in properties.items() if key.endswith(ends)}


def test_a_node_listens_on_loopback_only() -> None:
    properties = node_properties(Path("/data"), ALONE)
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:9093"


def test_one_node_asks_for_one_replica_of_everything() -> None:
    assert len(_replicas(ALONE)) == 7
    assert set(_replicas(ALONE).values()) == {"1"}


def test_of_three_nodes_one_may_be_missing() -> None:
    properties = node_properties(Path("/data"), SECOND_OF_THREE)
    assert properties["node.id"] == "2"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9192"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:9191,2@127.0.0.1:9192,3@127.0.0.1:9193"
    replicas = _replicas(SECOND_OF_THREE)
    assert {value for key, value in replicas.items() if key.endswith("replication.factor")} == {"3"}
    assert {value for key, value in replicas.items() if not key.endswith("replication.factor")} == {"2"}


def test_a_path_is_written_as_java_reads_it() -> None:
    assert render({"log.dirs": "/home/zoë/a\\b/😀"}) == "log.dirs=/home/zo\\u00eb/a\\\\b/\\ud83d\\ude00\n"

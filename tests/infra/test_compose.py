"""No container engine runs here: what is true of the files is held by their schema, by Kafka itself, and by reading."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kafka.admin import ConfigResource

from loopwarden.broker import admin_client
from loopwarden.broker.jars import ensure_jars
from loopwarden.broker.java import STORAGE_TOOL, command
from loopwarden.broker.pins import KAFKA_VERSION
from loopwarden.broker.properties import render
from loopwarden.worker import Settings

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker

INFRA = Path(__file__).parents[2] / "infra"
COMPOSE = INFRA / "compose.yaml"
NODES = ("kafka-1", "kafka-2", "kafka-3")

# The image takes these for itself; every other KAFKA_ variable becomes a setting of the broker.
FOR_THE_IMAGE = {"KAFKA_HEAP_OPTS"}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return services


def schema_errors(file: Path) -> str:
    """What the compose specification's JSON schema says against a file, as check-jsonschema has it built in."""
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return "" if checked.returncode == 0 else checked.stdout + checked.stderr


def broker_settings(service: dict[str, Any]) -> dict[str, str]:
    """The settings that the image makes of a node's environment: `__` is an underscore, `_` is a dot."""
    names = (name for name in service["environment"] if name.startswith("KAFKA_") and name not in FOR_THE_IMAGE)
    return {
        name.removeprefix("KAFKA_").lower().replace("__", "\0").replace("_", ".").replace("\0", "_"): str(
            service["environment"][name]
        )
        for name in names
    }


def test_the_compose_file_is_what_the_specification_allows(tmp_path: Path) -> None:
    assert schema_errors(COMPOSE) == ""
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(COMPOSE.read_text().replace("stop_grace_period:", "stop_grace_time:"))
    assert "stop_grace_time" in schema_errors(wrong)


def test_every_setting_of_a_node_is_one_of_kafkas(services: dict[str, Any], broker: LocalBroker) -> None:
    with admin_client(broker.bootstrap_servers) as client:
        known = client.describe_configs([ConfigResource("broker", "1")], config_filter="all")["broker"]["1"]
    for node in NODES:
        assert broker_settings(services[node]).keys() - known.keys() == set()


def test_kafka_formats_its_data_with_the_settings_of_a_node(services: dict[str, Any], tmp_path: Path) -> None:
    """Kafka checks then how its settings go together: listeners, roles, voters."""
    node = services[NODES[0]]
    settings = broker_settings(node) | {"log.dirs": str(tmp_path / "data")}
    properties = tmp_path / "server.properties"
    properties.write_text(render(settings), encoding="ascii")
    cluster_id = node["environment"]["CLUSTER_ID"]
    arguments = ("format", f"--cluster-id={cluster_id}", "--config", str(properties))
    line = command(ensure_jars(), tmp_path / "log", tmp_path, STORAGE_TOOL, *arguments, heap_mb=256)
    formatted = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert formatted.returncode == 0, formatted.stdout + formatted.stderr
    assert f"cluster.id={cluster_id}" in (tmp_path / "data" / "meta.properties").read_text()


def test_the_nodes_are_one_cluster(services: dict[str, Any]) -> None:
    nodes = [services[node] for node in NODES]
    voters = ",".join(f"{node['environment']['KAFKA_NODE_ID']}@{node['hostname']}:9093" for node in nodes)
    for node in nodes:
        assert broker_settings(node)["controller.quorum.voters"] == voters
    assert len({node["environment"]["CLUSTER_ID"] for node in nodes}) == 1
    advertised = [broker_settings(node)["advertised.listeners"] for node in nodes]
    assert advertised == [
        f"INSIDE://{node['hostname']}:9092,HOST://localhost:{node['ports'][0].split(':')[1]}" for node in nodes
    ]


def test_any_one_node_may_be_away_and_nothing_is_created_unasked(services: dict[str, Any]) -> None:
    for node in NODES:
        settings = broker_settings(services[node])
        replicas = {name: value for name, value in settings.items() if name.endswith("replication.factor")}
        in_sync = {name: value for name, value in settings.items() if name.endswith(("min.isr", "insync.replicas"))}
        assert (len(replicas), set(replicas.values())) == (4, {"3"})
        assert (len(in_sync), set(in_sync.values())) == (3, {"2"})
        assert settings["auto.create.topics.enable"] == "false"
        assert settings["unclean.leader.election.enable"] == "false"


def test_it_runs_the_kafka_that_the_tests_run(services: dict[str, Any]) -> None:
    assert {services[node]["image"] for node in NODES} == {f"apache/kafka:{KAFKA_VERSION}"}


def test_each_node_keeps_its_data_and_is_reached_from_this_machine_only(services: dict[str, Any]) -> None:
    for node in NODES:
        service = services[node]
        assert service["volumes"] == [f"{node}:{broker_settings(service)['log.dirs']}"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_workers_wait_for_the_topics_and_the_topics_for_the_nodes(services: dict[str, Any]) -> None:
    assert services["topics"]["depends_on"] == {node: {"condition": "service_healthy"} for node in NODES}
    assert services["worker"]["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}
    assert services["worker"]["scale"] == 2
    for node in NODES:
        assert services[node]["healthcheck"]["test"]


@pytest.mark.parametrize("service", ["topics", "worker", "loopwarden"])
def test_loopwarden_runs_its_own_image_without_rights_it_does_not_need(services: dict[str, Any], service: str) -> None:
    settings = services[service]
    assert settings["build"] == {"context": "..", "dockerfile": "infra/Dockerfile"}
    assert settings["read_only"] is True
    assert settings["cap_drop"] == ["ALL"]
    assert "privileged" not in settings
    assert "user" not in settings  # the image's own


@pytest.mark.parametrize("service", ["topics", "worker"])
def test_the_command_of_a_service_is_one_that_loopwarden_has(services: dict[str, Any], service: str) -> None:
    words = services[service]["command"]
    group = [word for word in words if not word.startswith("--") and not word.isdigit()]
    shown = subprocess.run(
        [sys.executable, "-m", "loopwarden.cli", *group, "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert shown.returncode == 0, shown.stderr
    for word in words:
        if word.startswith("--"):
            assert word in shown.stdout


def test_the_workers_settings_are_ones_it_knows_and_its_health_is_asked_where_it_answers(
    services: dict[str, Any],
) -> None:
    environment = {name: str(value) for name, value in services["worker"]["environment"].items()}
    environment["LOOPWARDEN_TOPIC_PREFIX"] = ""  # compose puts in what the caller's environment says
    settings = Settings.from_environment(environment)
    assert settings.bootstrap_servers == ",".join(f"{node}:9092" for node in NODES)
    assert settings.metrics_address == "0.0.0.0"
    assert f":{settings.metrics_port}/readyz" in services["worker"]["healthcheck"]["test"][-1]
    known = set(re.findall(r"`(LOOPWARDEN_\w+)`", Path(sys.modules[Settings.__module__].__file__ or "").read_text()))
    assert environment.keys() <= known

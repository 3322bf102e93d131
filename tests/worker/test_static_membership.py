"""A worker with a name of its own (`LOOPWARDEN_GROUP_INSTANCE_ID`) comes back to what it had, and moves nothing."""

from __future__ import annotations

import urllib.request
from typing import Any

import pytest

from loopwarden.broker.ports import free_port
from loopwarden.worker import Settings, SettingsError


def told(port: int, name: str) -> list[str]:
    """The lines of a metric; none while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return [line for line in answer.read().decode().splitlines() if line.startswith(name)]
    except OSError:
        return []


def test_a_worker_that_comes_back_within_its_session_moves_no_partition_of_another(
    installation: Any, repeated_call: Any
) -> None:
    ports = [free_port(), free_port()]

    def start(number: int) -> Any:
        return installation.start_worker(
            LOOPWARDEN_GROUP_INSTANCE_ID=f"worker-{number}",
            LOOPWARDEN_METRICS_PORT=str(ports[number]),
            LOOPWARDEN_SESSION_SECONDS="30",
        )

    def partitions(number: int) -> list[str]:
        return [line.split()[0] for line in told(ports[number], "loopwarden_lag_records{")]

    first, _ = start(0), start(1)
    installation.until(lambda: len(partitions(0)) == len(partitions(1)) == 1)
    had, stayed = partitions(0), told(ports[1], "loopwarden_rebalances_total")
    assert first.stop() == 0
    for number in range(20):
        installation.publish(repeated_call(f"run-{number}", 0))
    start(0)
    installation.wait_until_judged()
    installation.until(lambda: partitions(0) == had)
    assert told(ports[1], "loopwarden_rebalances_total") == stayed


def test_a_name_must_be_one_that_kafka_takes() -> None:
    assert Settings.from_environment({}).group_instance_id is None
    assert Settings.from_environment({"LOOPWARDEN_GROUP_INSTANCE_ID": "worker-0"}).group_instance_id == "worker-0"
    with pytest.raises(SettingsError, match="LOOPWARDEN_GROUP_INSTANCE_ID: must be at most 249 letters"):
        Settings.from_environment({"LOOPWARDEN_GROUP_INSTANCE_ID": "worker 0"})

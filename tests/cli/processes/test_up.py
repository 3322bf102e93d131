"""`loopwarden up` as a process: all of it starts, all of it ends, and the data go on."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import ConfigResource

from loopwarden.broker import LocalBroker
from loopwarden.broker.ports import free_port
from loopwarden.client import Connection, admin_client, create_topics, read_archive
from loopwarden_schemas.topics import declared_topics

from .conftest import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

POLICY = "{ tools: { loopDetection: { enabled: true, warningThreshold: 4, criticalThreshold: 8 } } }"


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    file = tmp_path / "policy.json5"
    file.write_text(POLICY)
    return file


@pytest.fixture
def own(command: Any, tmp_path: Path) -> Callable[..., Any]:
    """`up` with a broker of its own, on data of the test's own."""
    port = str(free_port())
    return lambda *more: command("up", "--data", tmp_path / "data", "--port", port, "--partitions", "2", *more)


@pytest.fixture
def beside(command: Any, tmp_path: Path, broker: LocalBroker) -> Callable[..., Any]:
    """`up` on the broker of all tests."""
    given = ("--broker", f"kafka://{broker.bootstrap_servers}", "--data", tmp_path / "data", "--partitions", "2")
    return lambda prefix, *more: command("up", *given, "--prefix", prefix, *more)


def test_all_of_it_starts_ends_with_ctrl_c_and_goes_on_with_its_data(
    own: Callable[..., Any], policy_file: Path
) -> None:
    with own("--policy", policy_file) as up:
        up.wait_for("Ctrl-C stops all of it.")
        assert "policy 0 is in force in all 2 partitions" in up.out
        assert "agent-events, loop-verdicts and 4 more  (2 partitions)" in up.out
        assert len(up.others()) == 2
        up.interrupt()
        assert up.exit_code() == 0
        assert up.others() == {}
        assert "Traceback" not in up.err
    with own("--policy", policy_file) as up:
        up.wait_for("Ctrl-C stops all of it.")
        assert "policy 0 is in force in all 2 partitions already" in up.out
        up.process.send_signal(signal.SIGTERM)
        assert up.exit_code() == 0
        assert up.others() == {}


def test_ctrl_c_twice_in_a_row_leaves_nothing_behind_and_the_data_whole(
    own: Callable[..., Any], policy_file: Path
) -> None:
    with own("--policy", policy_file) as up:
        up.wait_for("Ctrl-C stops all of it.")
        up.interrupt()
        up.wait_for("stopping in order")
        time.sleep(0.3)  # sooner, it would count as the same
        up.interrupt()
        assert up.exit_code() == 0
        assert up.others() == {}
        assert "hurrying" in up.err
        assert "Traceback" not in up.err
    with own() as up:
        up.wait_for("Ctrl-C stops all of it.")
        assert "policy 0, detectors on (warn at 4, block at 8)" in up.out


def test_ctrl_c_while_it_starts_leaves_nothing_behind(own: Callable[..., Any]) -> None:
    with own() as up:
        up.wait_for("Starting Apache Kafka")
        up.interrupt()
        assert up.exit_code() == 0
        assert up.others() == {}
        assert "Traceback" not in up.err


def test_a_signal_that_comes_at_once_to_process_and_group_counts_as_one(beside: Callable[..., Any]) -> None:
    with beside("once-") as up:
        up.wait_for("Ctrl-C stops all of it.")
        up.process.send_signal(signal.SIGTERM)
        os.killpg(up.process.pid, signal.SIGTERM)
        assert up.exit_code() == 0
        assert up.others() == {}
        assert "hurrying" not in up.err


def test_killed_it_leaves_nothing_behind(beside: Callable[..., Any]) -> None:
    with beside("killed-") as up:
        up.wait_for("Ctrl-C stops all of it.")
        [worker] = up.others()
        up.process.kill()
        up.exit_code()
        deadline = time.monotonic() + 30
        while worker in up.others():
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_worker_that_is_killed_is_started_again_and_goes_on(beside: Callable[..., Any], tmp_path: Path) -> None:
    with beside("again-") as up:
        up.wait_for("Ctrl-C stops all of it.")
        [first] = up.others()
        os.kill(first, signal.SIGKILL)
        up.wait_for("the worker ended by itself with exit code -9: it is started again in 0.5 s")
        [second] = _next_worker(up, first)
        assert second != first
        log = tmp_path / "data" / "worker.log"
        wait_until(lambda: log.read_text().count("ready, judging partitions") == 2, log.read_text)
        up.interrupt()
        assert up.exit_code() == 0
        assert up.others() == {}


def test_a_worker_that_ends_soon_again_and_again_is_given_up(beside: Callable[..., Any]) -> None:
    with beside("given-up-") as up:
        up.wait_for("Ctrl-C stops all of it.")
        [worker] = up.others()
        os.kill(worker, signal.SIGKILL)
        for _ in range(4):
            [worker] = _next_worker(up, worker)
            os.kill(worker, signal.SIGKILL)
        assert up.exit_code() == 1
        assert re.findall(r"started again in (\S+) s", up.err) == ["0.5", "1", "2", "4"]
        assert "the worker ended by itself with exit code -9; its log, " in up.err
        assert "it ended 5 times in a row" in up.err
        assert up.others() == {}


def _broken_folder(data: Path) -> str:
    (data / "worker").symlink_to(data / "nowhere" / "at-all")
    return "LOOPWARDEN_DATA_DIR: must be a folder that can be written"


def _no_folder(data: Path) -> str:
    (data / "worker").touch()
    return "LOOPWARDEN_DATA_DIR: must be a folder, got "


@pytest.mark.parametrize(("break_it", "code"), [(_broken_folder, 1), (_no_folder, 2)])
def test_a_worker_that_cannot_begin_with_its_settings_is_not_started_again(
    beside: Callable[..., Any], tmp_path: Path, break_it: Callable[[Path], str], code: int
) -> None:
    with beside("no-folder-") as up:
        up.wait_for("Ctrl-C stops all of it.")
        [worker] = up.others()
        shutil.rmtree(tmp_path / "data" / "worker")
        told = break_it(tmp_path / "data")
        os.kill(worker, signal.SIGKILL)
        assert up.exit_code() == code
        assert up.err.count("started again") == 1
        assert told in up.err
        assert up.others() == {}


def _next_worker(up: Any, former: int) -> list[int]:
    found: list[int] = []

    def another() -> bool:
        found[:] = [each for each in up.others() if each != former]
        return bool(found)

    wait_until(another, lambda: up.err)
    return found


@pytest.mark.parametrize("at", ["Creating topics", "Starting the worker", "Ctrl-C stops all of it."])
def test_a_broker_of_its_own_that_ends_by_itself_ends_it_and_is_told(own: Callable[..., Any], at: str) -> None:
    with own() as up:
        up.wait_for(at)
        [kafka] = [number for number, line in up.others().items() if "kafka.Kafka" in line]
        os.kill(kafka, signal.SIGKILL)
        assert up.exit_code() == 1
        assert "the broker started here ended by itself with exit code -9; its log, " in up.err
        assert "kafka.log, ends with:" in up.err
        assert "Is it running?" not in up.err
        assert up.others() == {}


def test_a_broker_of_its_own_that_ends_during_the_demo_is_told(own: Callable[..., Any]) -> None:
    with own("--demo") as up:
        up.wait_for("20 calls a second")
        [kafka] = [number for number, line in up.others().items() if "kafka.Kafka" in line]
        os.kill(kafka, signal.SIGKILL)
        assert up.exit_code() == 1
        assert "the broker started here ended by itself with exit code -9; its log, " in up.err
        assert "Is it running?" not in up.err


def test_a_broker_of_its_own_that_dies_while_it_starts_is_told(own: Callable[..., Any]) -> None:
    with own() as up:
        up.wait_for("Starting Apache Kafka")
        wait_until(lambda: any("kafka.Kafka" in line for line in up.others().values()), lambda: up.err)
        [kafka] = [number for number, line in up.others().items() if "kafka.Kafka" in line]
        os.kill(kafka, signal.SIGKILL)
        assert up.exit_code() == 2
        assert "Apache Kafka stopped while it started, with exit code -9; its log, " in up.err
        assert "Is it running?" not in up.err
        assert up.others() == {}


def test_a_wrong_setting_of_the_worker_is_told_before_anything_starts(
    own: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOOPWARDEN_HELD_RUNS", "many")
    with own() as up:
        assert up.exit_code() == 2
        assert up.err.startswith("loopwarden: LOOPWARDEN_HELD_RUNS: must be")
    assert not (tmp_path / "data").exists()


def test_topics_that_the_worker_refuses_end_it(beside: Callable[..., Any], broker: LocalBroker, tmp_path: Path) -> None:
    topics = declared_topics("refused-topics-", partitions=2)
    create_topics(broker.bootstrap_servers, topics)
    with admin_client(broker.bootstrap_servers) as client:
        client.alter_configs([ConfigResource("topic", topics.events.name, {"message.timestamp.type": "CreateTime"})])
    with beside("refused-topics-") as up:
        assert up.exit_code() == 1
        assert "the worker ended by itself with exit code 1" in up.err
        assert up.others() == {}
    assert "message.timestamp.type must be LogAppendTime" in (tmp_path / "data" / "worker.log").read_text()


def test_a_cluster_that_is_there_is_used_and_stays_up(
    beside: Callable[..., Any], broker: LocalBroker, policy_file: Path
) -> None:
    with beside("existing-", "--policy", policy_file) as up:
        up.wait_for("Ctrl-C stops all of it.")
        assert f"export LOOPWARDEN_BOOTSTRAP_SERVERS={broker.bootstrap_servers}" in up.out
        assert "export LOOPWARDEN_TOPIC_PREFIX=existing-" in up.out
        up.interrupt()
        assert up.exit_code() == 0
        assert up.others() == {}
    assert len(read_archive(Connection(broker.bootstrap_servers, "existing-"))) == 1


def test_a_wrong_policy_is_refused_before_anything_starts(own: Callable[..., Any], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json5"
    wrong.write_text("{\n  tools: { loopDetection: { enabled: 1 } } }")
    with own("--policy", wrong) as up:
        assert up.exit_code() == 1
        assert f"({wrong}, line 2)" in up.err
        assert "nothing was started" in up.err
    assert not (tmp_path / "data").exists()


def test_data_that_are_in_use_are_named(own: Callable[..., Any], tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data" / "broker", port=0) as other, own() as up:
        assert up.exit_code() == 2
        assert f"is in use by a running broker (process {other.pid}, {other.bootstrap_servers})" in up.err
        assert "Traceback" not in up.err

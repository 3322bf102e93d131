"""What every command that needs a cluster does when none is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopwarden.broker.ports import free_port


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    file = tmp_path / "policy.json5"
    file.write_text("{ tools: { loopDetection: { enabled: true } } }")
    return file


@pytest.mark.parametrize(
    "command",
    [
        ("publish", "-"),
        ("watch",),
        ("watch", "--no-follow"),
        ("policy", "apply", "policy.json5", "--why", "test"),
        ("policy", "status"),
        ("policy", "show"),
        ("override", "abort", "--run", "r", "--by", "ada", "--why", "test"),
        ("history", "--run", "r"),
        ("selftest",),
        ("demo",),
        ("up", "--data", "data"),
    ],
    ids=" ".join,
)
def test_a_broker_that_is_not_there_is_named_with_its_address(
    command: tuple[str, ...], run: Callable[..., Any], policy_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(policy_file.parent)
    address = f"127.0.0.1:{free_port()}"
    started = time.monotonic()
    ran = run(*command, "--broker", f"kafka://{address}")
    assert time.monotonic() - started < 10  # promised by issue 3
    assert ran.code == 2
    [told] = [line for line in ran.err.splitlines() if line.startswith("loopwarden: ")]
    assert told.startswith(f"loopwarden: {address}: must be a Kafka broker that this machine can reach")
    assert "`loopwarden up` starts one" in told
    assert "Traceback" not in ran.err


def test_the_environment_names_the_broker(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", address)
    ran = run("policy", "status")
    assert (ran.code, address in ran.err) == (2, True)


def test_an_address_that_is_none_is_refused(run: Callable[..., Any]) -> None:
    ran = run("watch", "--broker", "kafka://host:http")
    assert ran.code == 2
    assert ran.err.startswith("loopwarden: --broker: bootstrap servers: each must be HOST:PORT")


def test_a_setting_of_the_worker_that_cannot_be_is_named(run: Callable[..., Any]) -> None:
    ran = run("worker", "--checkpoint-seconds", "soon")
    assert ran.code == 2
    assert ran.err == (
        "loopwarden: LOOPWARDEN_CHECKPOINT_SECONDS: must be a number of seconds from 0.01 to 60, got 'soon'\n"
    )


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("group-instance-id", "a b", "must be at most 249 letters, digits, '.', '_' and '-'"),
        ("store", "disk", "must be one of memory://, rocksdb://"),
        ("metrics-port", "http", "must be a port, 1 to 65535"),
        ("log-format", "xml", "must be one of text, json"),
    ],
)
def test_an_option_of_the_worker_is_the_setting_of_its_name(
    run: Callable[..., Any], option: str, value: str, rule: str
) -> None:
    ran = run("worker", f"--{option}", value)
    assert ran.code == 2
    name = option.replace("-", "_").upper()
    assert ran.err == f"loopwarden: LOOPWARDEN_{name}: {rule}, got {value!r}\n"

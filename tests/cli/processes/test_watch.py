from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from kafka import KafkaProducer

from loopwarden.broker import LocalBroker
from loopwarden_schemas.codec import encode_verdict
from loopwarden_schemas.structs import Verdict
from loopwarden_schemas.topics import Topics, partition_for


def _verdict(run_id: str, n: int, action: str = "block") -> Verdict:
    return Verdict(
        schema=1,
        verdict_id=f"{run_id}-{n}",
        begun=0,
        n=n,
        action=action,  # type: ignore[arg-type]
        phase="order" if action == "clear" else "attempt",
        detector=None if action == "clear" else "generic_repeat",
        run_id=run_id,
        session_id=None,
        agent_id=None,
        call_id=None,
        tool="exec\x1b[2J",
        args_hash=None,
        scope="call",
        count=None if action == "clear" else 8,
        threshold=None if action == "clear" else 8,
        reason="generic_repeat",
        message="`exec` was called 8 times.",
        event_id=f"e{n}",
        evidence=None,
        policy_digest="p",
        rules_version=1,
        ts=1,
        obeyed=2,
        disobeyed=1,
    )


@pytest.fixture
def publish(broker: LocalBroker, topics: Topics) -> Any:
    def publish(*verdicts: Verdict) -> None:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        for verdict in verdicts:
            producer.send(
                topics.verdicts.name,
                encode_verdict(verdict),
                key=verdict.run_id.encode(),
                partition=partition_for(verdict.run_id, topics.verdicts.partitions),
            )
        producer.close()

    return publish


@pytest.fixture
def watch(run: Callable[..., Any], broker: LocalBroker, topics: Topics) -> Callable[..., Any]:
    cluster = ("--broker", broker.bootstrap_servers, "--prefix", topics.prefix)
    return lambda *arguments: run("watch", *arguments, *cluster)


def test_a_line_shows_action_detector_run_tool_count_and_message(
    publish: Callable[..., None], watch: Callable[..., Any]
) -> None:
    publish(_verdict("run-a", 1))
    ran = watch("--no-follow")
    assert ran.code == 0
    [line] = ran.out.splitlines()
    for text in ("block", "generic_repeat", "run-a", "8/8", "obeyed 2, disobeyed 1", "`exec` was called 8 times."):
        assert text in line
    assert "\x1b" not in line  # what somebody else wrote moves no cursor


def test_a_verdict_that_was_published_again_is_shown_once(
    publish: Callable[..., None], watch: Callable[..., Any]
) -> None:
    publish(_verdict("run-a", 1), _verdict("run-a", 2), _verdict("run-a", 1))
    ran = watch("--no-follow", "--json")
    assert [orjson.loads(line)["verdict_id"] for line in ran.out.splitlines()] == ["run-a-1", "run-a-2"]


def test_only_what_is_asked_for_is_shown(publish: Callable[..., None], watch: Callable[..., Any]) -> None:
    publish(*(_verdict(run, n, action) for run in ("a", "b") for n, action in enumerate(("warn", "block", "clear"))))

    def shown(*options: str) -> list[str]:
        lines = watch("--no-follow", "--json", *options).out.splitlines()
        return sorted(orjson.loads(line)["verdict_id"] for line in lines)

    assert shown("--run", "a") == ["a-0", "a-1", "a-2"]
    assert shown("--action", "warn", "--action", "clear") == ["a-0", "a-2", "b-0", "b-2"]
    assert shown("--run", "b", "--action", "block") == ["b-1"]
    assert shown("--run", "absent") == []


def test_what_is_no_verdict_is_told_with_its_place(
    broker: LocalBroker, topics: Topics, publish: Callable[..., None], watch: Callable[..., Any]
) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send(topics.verdicts.name, b"\xc1", partition=1)
    producer.close()
    publish(_verdict("run-a", 1))
    ran = watch("--no-follow")
    assert len(ran.out.splitlines()) == 1
    assert f"{topics.verdicts.name} partition 1 offset 0: not a verdict" in ran.err


def test_it_follows_until_interrupted(
    broker: LocalBroker, topics: Topics, publish: Callable[..., None], command: Any
) -> None:
    publish(_verdict("before", 1))
    options = ("--json", "--broker", broker.bootstrap_servers, "--prefix", topics.prefix)
    with command("watch", *options) as watching:
        watching.wait_for("from now on")
        publish(_verdict("after", 1))
        watching.wait_for("after-1")
        watching.interrupt()
        assert watching.exit_code() == 0
        assert len(watching.out.splitlines()) == 1
        assert "Traceback" not in watching.err


def test_a_broker_that_goes_away_is_named(tmp_path: Path, command: Any) -> None:
    from loopwarden.broker import create_topics
    from loopwarden_schemas.topics import declared_topics

    with LocalBroker(tmp_path / "broker", port=0) as broker:
        create_topics(broker.bootstrap_servers, declared_topics(partitions=1))
        with command("watch", "--broker", broker.bootstrap_servers) as watching:
            watching.wait_for("from now on")
            assert broker.pid is not None
            os.kill(broker.pid, signal.SIGKILL)
            assert watching.exit_code() == 2
            assert watching.err.splitlines()[-1].startswith(f"loopwarden: {broker.bootstrap_servers}: ")

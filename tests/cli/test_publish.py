from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from loopwarden.broker import LocalBroker
from loopwarden.client import Connection, following
from loopwarden_schemas.codec import decode_record
from loopwarden_schemas.structs import Event
from loopwarden_schemas.topics import Topics


def _events(connection: Connection) -> list[Event]:
    found: list[Event] = []
    with following(connection, connection.topics().events.name) as follower:
        for records in follower.read({partition: (0, end) for partition, end in follower.ends().items()}):
            for record in records:
                for event in decode_record(record.value):
                    assert not isinstance(event, tuple)
                    found.append(event)  # type: ignore[arg-type]
    return found


@pytest.fixture
def publish(run: Callable[..., Any], broker: LocalBroker, topics: Topics) -> Callable[..., Any]:
    def publish(*arguments: str | Path, stdin: bytes = b"") -> Any:
        return run("publish", *arguments, "--broker", broker.bootstrap_servers, "--prefix", topics.prefix, stdin=stdin)

    return publish


def _finished(run_id: str) -> bytes:
    return orjson.dumps({"type": "run.finished", "event_id": run_id, "run_id": run_id, "ts": 1})


def test_events_on_standard_input_are_published(
    publish: Callable[..., Any], broker: LocalBroker, topics: Topics
) -> None:
    ran = publish("-", stdin=_finished("a") + b"\n" + _finished("b"))
    assert ran.code == 0, ran.err
    assert "2 events of 2 runs published" in ran.err
    events = _events(Connection(broker.bootstrap_servers, topics.prefix))
    assert sorted(event.event_id for event in events) == ["a", "b"]


def test_bad_lines_are_told_with_number_and_reason_and_the_rest_is_published(
    publish: Callable[..., Any], broker: LocalBroker, topics: Topics
) -> None:
    lines = [
        _finished("a"),
        b"{nonsense",
        b'{"type": "tool_call.started", "run_id": "a", "tool": 5}',
        b'{"type": "policy.applied", "number": 0, "digest": "x"}',
        b"[1]",
        _finished("b"),
        b'{"type": "run.finished", "run_id": "c", "ts": "\xff"}',
        b'{"type": "run.finished"}',
    ]
    ran = publish("-", stdin=b"\n".join(lines))
    assert ran.code == 1
    for number, reason in [
        (2, "not JSON"),
        (3, "invalid_event: tool: Input should be a valid string, got 5"),
        (4, "only `loopwarden policy apply` puts a policy into force"),
        (5, "an event must be an object"),
        (7, "not JSON"),
        (8, "invalid_event: run_id: Field required"),
    ]:
        assert any(
            line.startswith(f"standard input, line {number}: ") and reason in line for line in ran.err.splitlines()
        ), ran.err
    assert "6 bad lines" in ran.err
    events = _events(Connection(broker.bootstrap_servers, topics.prefix))
    assert sorted(event.event_id for event in events) == ["a", "b"]


def test_a_session_file_is_published_as_it_is(publish: Callable[..., Any], broker: LocalBroker, topics: Topics) -> None:
    from loopwarden.recordings import recordings

    ran = publish(recordings()["openclaw-poll"], "--rate", "2000")
    assert ran.code == 0, ran.err
    assert len(_events(Connection(broker.bootstrap_servers, topics.prefix))) == 60


def test_a_file_that_is_not_there_is_named(publish: Callable[..., Any], tmp_path: Path) -> None:
    ran = publish(tmp_path / "absent.jsonl")
    assert (ran.code, ran.err) == (2, f"loopwarden: {tmp_path}/absent.jsonl: there is no such file\n")

"""What cannot be read or judged goes to the dead letters with its bytes and the reason; the partition goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import msgpack
import pytest

from loopwarden.broker.ports import free_port
from loopwarden.worker.dead_letters import CUT_TO_BYTES, dead_letter
from loopwarden_schemas.codec import encode_event
from loopwarden_schemas.dead_letters import read_dead_letter
from loopwarden_schemas.structs import Rejected
from loopwarden_schemas.topics import MAX_RECORD_BYTES

RUN = "run-7"


def event(**more: Any) -> dict[str, Any]:
    return {
        "type": "tool_call.started",
        "event_id": "e",
        "ts": 1,
        "run_id": RUN,
        "tool": "read",
        "args": None,
        **more,
    }


def bad_records() -> list[tuple[str, bytes | None, bytes | None, bool]]:
    """Reason, key, value, and whether it goes to the partition of another run."""
    key = RUN.encode()
    good = encode_event(event())
    return [
        ("undecodable", key, b"\xc1 is no MessagePack", False),
        ("undecodable", key, b'{"type": "run.started", ', False),
        ("undecodable", key, good.replace(b"read", b"r\xff\xfed"), False),
        ("undecodable", key, None, False),
        ("undecodable", None, b"", False),
        ("too_large", key, encode_event(event(args="x" * MAX_RECORD_BYTES)), False),
        ("too_many_events", key, encode_event([event()] * 101), False),
        ("unknown_type", key, encode_event(event(type="run.paused")), False),
        ("unsupported_schema", key, encode_event(event(schema=2)), False),
        ("invalid_event", key, msgpack.packb(["no event"]), False),
        ("invalid_event", key, encode_event({name: each for name, each in event().items() if name != "run_id"}), False),
        ("invalid_event", key, encode_event(event(tool=7)), False),
        ("invalid_event", key, encode_event(event(run_id="r" * 257)), False),
        ("invalid_payload", key, encode_event(event(args={"temperature": float("nan")})), False),
        ("misrouted", b"another run", good, False),
        ("misrouted", None, good, False),
        ("misrouted", key, good, True),
        (
            "unknown_policy",
            None,
            encode_event({"type": "policy.applied", "event_id": "p", "ts": 1, "number": 99, "digest": "d"}),
            False,
        ),
    ]


def test_every_reason_with_the_original_bytes_and_headers_and_the_partition_goes_on(
    installation: Any, strict: Any, repeated_call: Any
) -> None:
    installation.apply(strict)
    own = installation.partition(RUN)
    for _reason, key, value, elsewhere in bad_records():
        installation.publish_bytes(value, key=key, partition=1 - own if elsewhere else own)
    for number in range(3):
        for good in repeated_call(RUN, number):
            installation.publish(good)
    worker = installation.start_worker()
    installation.wait_until_judged()

    sources = {
        (record.partition, record.offset): record for record in installation.read(installation.topics.events.name)
    }
    letters = installation.dead_letters()
    reasons = []
    for letter in letters:
        headers = {name: text.decode() for name, text in letter.headers}
        source = sources[int(headers["source-partition"]), int(headers["source-offset"])]
        assert headers["source-topic"] == installation.topics.events.name
        assert headers["source-index"] == "0"
        assert headers["append-time"] == str(source.timestamp)
        assert headers["detail"]
        assert letter.key == source.key
        if headers["reason"] == "too_large":
            assert headers["original-size"] == str(len(source.value))
            assert letter.value == source.value[:CUT_TO_BYTES]
        else:
            assert letter.value == source.value
        reasons.append(headers["reason"])
    assert sorted(reasons) == sorted(reason for reason, *_ in bad_records())
    assert installation.verdicts(), "the good events of the partition were judged"
    misrouted = [dict(letter.headers)["detail"] for letter in letters if dict(letter.headers)["reason"] == b"misrouted"]
    assert any(b"partitioner=murmur2_random" in detail for detail in misrouted)
    assert worker.stop() == 0


def test_a_bad_element_of_a_list_hides_no_other(installation: Any, strict: Any, repeated_call: Any) -> None:
    installation.apply(strict)
    events = [event for number in range(3) for event in repeated_call(RUN, number)]
    events.insert(2, {"type": "nonsense", "run_id": RUN})
    events.insert(4, {"type": "run.finished", "event_id": "x", "ts": 1, "run_id": "a stranger"})
    installation.publish(events)
    installation.start_worker()
    installation.wait_until_judged()
    headers = [dict(letter.headers) for letter in installation.dead_letters()]
    assert [(each["reason"], each["source-index"]) for each in headers] == [
        (b"unknown_type", b"2"),
        (b"misrouted", b"4"),
    ]
    assert {verdict.event_id for _, verdict in installation.verdicts()} >= {f"{RUN}-2-s"}


FAILING_WORKER = Path(__file__).with_name("failing_worker.py")


def test_an_event_that_crashes_the_judge_stops_nothing_and_changes_nothing(
    installation: Any, strict: Any, repeated_call: Any
) -> None:
    """Killed in between, the worker fails on the same events again, and no other verdict comes of it."""
    number = installation.apply(strict)
    poisoned = set()
    port = free_port()
    for begin, end in ((0, 30), (30, 60)):
        worker = installation.start_worker(
            sys.executable,
            str(FAILING_WORKER),
            LOOPWARDEN_METRICS_PORT=str(port),
            # So that nobody waits for the session of the one that was killed.
            LOOPWARDEN_GROUP_INSTANCE_ID="one",
        )
        for call in range(begin, end):
            for run in ("run-1", "run-2", RUN):
                tool = "poison" if call % 7 == 3 else "read"
                for event in repeated_call(run, call, tool=tool, result="same" if call % 10 else f"{call}"):
                    installation.publish(event)
                    if tool == "poison":
                        poisoned.add(event["event_id"])
        installation.wait_until_judged()
        if begin == 0:
            worker.kill()
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert b'loopwarden_dead_letters_total{reason="judge_failed"}' in answer.read()
    expected = installation.judged_in_one_process({number: strict}, without_tool="poison")
    assert len(expected) > 30
    assert sorted(installation.verdicts(), key=str) == sorted(expected, key=str)
    letters = [read_dead_letter(each.key, each.value, each.headers) for each in installation.dead_letters()]
    assert {event["event_id"] for letter in letters for event in [msgpack.unpackb(letter.value)]} == poisoned
    assert {letter.reason for letter in letters} == {"judge_failed"}
    assert letters[0].detail.startswith("KeyError at worker/failing_worker.py:")
    assert not any("a secret" in letter.detail for letter in letters)
    assert "a secret" not in worker.log
    assert "a bug of ours: the judge failed at partition" in worker.log


def record(value: bytes | None, key: bytes | None = b"key", headers: Any = ()) -> Any:
    return SimpleNamespace(
        topic="agent-events", partition=3, offset=14, timestamp=99, key=key, value=value, headers=headers
    )


@pytest.mark.parametrize(
    ("size", "first", "carried"), [(MAX_RECORD_BYTES, True, MAX_RECORD_BYTES), (70_000, False, CUT_TO_BYTES)]
)
def test_further_letters_of_a_large_record_carry_its_beginning(size: int, first: bool, carried: int) -> None:
    _, value, headers = dead_letter(record(b"v" * size), Rejected(4, "invalid_event", "x"), first=first)
    assert value is not None
    assert len(value) == carried
    assert dict(headers).get("original-size") == (None if carried == size else str(size).encode())


def test_nothing_that_anybody_may_write_makes_a_letter_too_large_for_its_topic() -> None:
    anything = record(b"v" * MAX_RECORD_BYTES, key=b"k" * 50_000, headers=[("content-type", b"c" * 50_000)])
    key, value, headers = dead_letter(anything, Rejected(0, "invalid_event", "\u00e9" * 50_000), first=True)
    size = len(key or b"") + len(value or b"") + sum(len(name) + len(text) for name, text in headers)
    assert size < MAX_RECORD_BYTES + 64 * 1024
    assert dict(headers)["original-key-size"] == b"50000"
    dict(headers)["detail"].decode()


def test_a_record_without_key_and_value_can_be_written_once_more() -> None:
    key, value, _ = dead_letter(record(None, key=None), Rejected(0, "undecodable", "x"), first=True)
    assert (key, value) == (None, b"")

"""Policies applied through the log: archived once, in every partition, completed after a failure."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from kafka import KafkaProducer

from loopwarden.client import (
    Applied,
    Connection,
    NoSuchPolicy,
    append_policy,
    apply_policy,
    archived,
    event_producer,
    following,
    policies_in_force,
    read_archive,
    write_applied,
)
from loopwarden_schemas.codec import decode_record, encode_event
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import PolicyApplied

pytestmark = pytest.mark.parametrize("topics", [3], indirect=True)


def _apply(connection: Connection, document: dict[str, Any], why: str = "test") -> Applied:
    return apply_policy(connection, PolicyDocument.from_value(document), by="tester", why=why, ts=1000)


def _applied_events(connection: Connection) -> dict[int, list[int]]:
    """The numbers applied in each partition, in their order."""
    found: dict[int, list[int]] = {}
    with following(connection, connection.topics().events.name) as follower:
        for records in follower.read({partition: (0, end) for partition, end in follower.ends().items()}):
            for record in records:
                for event in decode_record(record.value):
                    if isinstance(event, PolicyApplied):
                        assert record.key is None
                        found.setdefault(record.partition, []).append(event.number)
    return found


def _numbers(connection: Connection) -> list[int | None]:
    return [state.number for state in policies_in_force(connection, read_archive(connection))]


def _publish_some(connection: Connection, count: int = 30) -> None:
    with event_producer(connection) as producer:
        for number in range(count):
            run_id = f"run-{number}"
            event = {"type": "run.finished", "event_id": f"e{number}", "run_id": run_id, "ts": number}
            producer.publish(run_id, encode_event(event), run_id)


def test_an_applied_policy_is_archived_with_who_and_why_and_in_force_everywhere(
    connection: Connection, strict: dict[str, Any]
) -> None:
    _publish_some(connection)
    applied = _apply(connection, strict, "first policy")
    assert applied.newly_archived
    assert applied.written == [0, 1, 2]
    [policy] = read_archive(connection)
    assert (policy.document.value, policy.by, policy.why, policy.ts) == (strict, "tester", "first policy", 1000)
    assert policy.number == applied.policy.number
    assert _applied_events(connection) == {partition: [policy.number] for partition in range(3)}
    assert _numbers(connection) == [policy.number] * 3


def test_the_worker_reads_the_archived_document(connection: Connection, strict: dict[str, Any]) -> None:
    from loopwarden.worker.policies import archived_document

    applied = _apply(connection, strict)
    with following(connection, connection.topics().policies.name) as follower:
        [[record]] = follower.read({0: (0, follower.ends()[0])})
    document = archived_document(record.value)
    assert document is not None
    assert (record.offset, document.digest) == (applied.policy.number, applied.policy.document.digest)


def test_applying_the_same_policy_again_for_the_same_reason_changes_nothing(
    connection: Connection, strict: dict[str, Any]
) -> None:
    _apply(connection, strict)
    again = _apply(connection, strict)
    assert (again.newly_archived, again.written, again.already) == (False, [], [0, 1, 2])
    assert len(read_archive(connection)) == 1
    assert {len(numbers) for numbers in _applied_events(connection).values()} == {1}


def test_a_policy_in_force_that_is_applied_for_another_reason_is_archived_again_with_it(
    connection: Connection, strict: dict[str, Any]
) -> None:
    first = _apply(connection, strict, "first").policy
    again = _apply(connection, strict, "reviewed")
    assert (again.newly_archived, again.written, again.confirms) == (True, [0, 1, 2], first.number)
    assert [policy.why for policy in read_archive(connection)] == ["first", "reviewed"]
    assert again.policy.document.digest == first.document.digest
    assert _numbers(connection) == [again.policy.number] * 3
    document = PolicyDocument.from_value(strict)
    other = apply_policy(connection, document, by="another", why="reviewed", ts=1001)
    assert (other.confirms, other.policy.by) == (again.policy.number, "another")
    only_in_force = apply_policy(connection, document, by="tester", why="at the start", ts=1002, confirm=False)
    assert (only_in_force.newly_archived, only_in_force.written) == (False, [])
    assert len(read_archive(connection)) == 3


def test_after_a_failure_applying_again_writes_only_what_is_missing(
    connection: Connection, strict: dict[str, Any]
) -> None:
    _apply(connection, {"tools": {"loopDetection": {"enabled": False}}})
    document = PolicyDocument.from_value(strict)
    with following(connection, connection.topics().events.name) as follower:
        ends = follower.ends()
    number = append_policy(connection, document, by="tester", why="failed", ts=1, log_ends=ends)
    write_applied(connection, archived(read_archive(connection), number), [1], 1)
    _publish_some(connection)
    assert _numbers(connection) == [0, number, 0]
    completed = _apply(connection, strict)
    assert (completed.newly_archived, completed.written, completed.already) == (False, [0, 2], [1])
    assert completed.policy.why == "failed"
    assert _numbers(connection) == [number] * 3
    assert _applied_events(connection) == {partition: [0, number] for partition in range(3)}


def test_after_a_failure_right_after_the_archive_everything_is_written(
    connection: Connection, strict: dict[str, Any]
) -> None:
    append_policy(connection, PolicyDocument.from_value(strict), by="", why="", ts=1, log_ends={})
    assert _numbers(connection) == [None] * 3
    assert _apply(connection, strict).written == [0, 1, 2]
    assert _numbers(connection) == [0] * 3


def test_going_back_to_an_earlier_policy_gives_it_a_new_number(connection: Connection, strict: dict[str, Any]) -> None:
    other = {"tools": {"loopDetection": {"enabled": False}}}
    numbers = [_apply(connection, document).policy.number for document in (strict, other, strict)]
    assert numbers == sorted(set(numbers))
    assert _numbers(connection) == [numbers[-1]] * 3


def test_what_the_worker_refuses_is_not_taken_for_in_force(connection: Connection, strict: dict[str, Any]) -> None:
    first = _apply(connection, {"tools": {"loopDetection": {"enabled": False}}}).policy
    second = _apply(connection, strict).policy
    write_applied(connection, first, [0], 2)  # a lower number than the one in force
    write_applied(connection, second._replace(number=99), [1], 2)  # not archived
    assert _numbers(connection) == [second.number] * 3


def test_where_the_log_no_longer_reaches_back_it_is_said(connection: Connection, strict: dict[str, Any]) -> None:
    from kafka import TopicPartition

    from loopwarden.client import admin_client

    _apply(connection, strict)
    with admin_client(connection.bootstrap_servers) as client:
        client.delete_records({TopicPartition(connection.topics().events.name, 1): 1})
    states = policies_in_force(connection, read_archive(connection))
    assert [(state.number, state.certain) for state in states] == [(0, True), (None, False), (0, True)]


def test_what_else_lies_in_the_archive_has_no_number(connection: Connection, strict: dict[str, Any]) -> None:
    producer = KafkaProducer(bootstrap_servers=connection.bootstrap_servers)
    for value in (b"\xc1", b'"text"', msgpack.packb({"policy": "none"}), msgpack.packb({"note": 1})):
        producer.send(connection.topics().policies.name, value, partition=0)
    producer.send(connection.topics().policies.name, b'{"policy": {}, "log_ends": [1], "by": 1}', partition=0)
    producer.close()
    number = _apply(connection, strict).policy.number
    assert [policy.number for policy in read_archive(connection)] == [4, number]
    assert _numbers(connection) == [number] * 3


def test_a_number_that_is_not_archived_is_refused_with_those_that_are(
    connection: Connection, strict: dict[str, Any]
) -> None:
    with pytest.raises(NoSuchPolicy, match="the archive of policies is empty"):
        archived(read_archive(connection), None)
    _apply(connection, strict)
    with pytest.raises(NoSuchPolicy, match=r"^policy 7: .* which holds 0$"):
        archived(read_archive(connection), 7)


def test_of_a_whole_configuration_only_our_part_is_archived(connection: Connection, strict: dict[str, Any]) -> None:
    whole = {"models": {"apiKey": "secret", "limit": float("inf")}, "tools": {**strict["tools"], "allow": ["*"]}}
    _apply(connection, whole)
    [policy] = read_archive(connection)
    assert policy.document.value == strict

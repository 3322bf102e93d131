from __future__ import annotations

import pytest

from loopwarden.broker import LocalBroker
from loopwarden.client import Connection, NotPublished, TopicMissing, event_producer, following
from loopwarden_schemas.codec import encode_event
from loopwarden_schemas.topics import partition_for


def _event(run_id: str, number: int) -> bytes:
    return encode_event({"type": "run.finished", "event_id": f"{run_id}-{number}", "run_id": run_id, "ts": number})


def test_events_lie_on_their_runs_partition_in_the_order_published(connection: Connection) -> None:
    runs = [f"run-{number}" for number in range(20)]
    with event_producer(connection) as producer:
        for number in range(50):
            for run_id in runs:
                producer.publish(run_id, _event(run_id, number), f"event {number}")
    assert producer.acknowledged == 50 * len(runs)
    found: dict[str, list[bytes | None]] = {run_id: [] for run_id in runs}
    with following(connection, connection.topics().events.name) as follower:
        ends = follower.ends()
        for records in follower.read({partition: (0, end) for partition, end in ends.items()}):
            for record in records:
                assert record.key is not None
                assert record.partition == partition_for(record.key, len(follower.partitions))
                assert record.content_type == "application/msgpack"
                found[record.key.decode()].append(record.value)
    assert ends == producer.ends
    assert found == {run_id: [_event(run_id, number) for number in range(50)] for run_id in runs}


def test_a_topic_that_is_missing_is_named_with_the_command_that_creates_it(broker: LocalBroker) -> None:
    connection = Connection(broker.bootstrap_servers, "absent-")
    command = rf"`loopwarden topics apply --broker kafka://{broker.bootstrap_servers} --prefix absent-`"
    with pytest.raises(TopicMissing, match=f"^absent-agent-events: .*{command}"), event_producer(connection):
        pass


def test_an_event_the_broker_refuses_is_named_and_soon_nothing_is_sent_behind_it(connection: Connection) -> None:
    named = r"1 were acknowledged; the first that was not is line 2: .*MessageSizeTooLarge"
    with pytest.raises(NotPublished, match=named), event_producer(connection) as producer:
        producer.publish("run", _event("run", 1), "line 1")
        producer.flush()
        producer.publish("run", bytes(1200 * 1024), "line 2")
        while True:
            producer.publish("run", _event("run", 3), "line 3")


def test_what_is_never_acknowledged_is_reported(connection: Connection) -> None:
    named = "of 2 records that were sent, 1 were acknowledged; the first that was not is line 2: "
    with pytest.raises(NotPublished, match=named), event_producer(connection) as producer:
        producer.publish("run", _event("run", 1), "line 1")
        producer.flush()
        producer._producer._sender.force_close()  # as if every answer stayed away, without the time-out's wait
        producer.publish("run", _event("run", 2), "line 2")
        producer.flush()


@pytest.mark.parametrize("topics", [1], indirect=True)
def test_more_may_be_published_than_may_wait_in_memory(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopwarden.client.producer._MAX_WAITING_BYTES", 50_000)
    with event_producer(connection) as producer:
        for number in range(100):
            producer.publish("run", bytes(10_000), f"event {number}")
            assert producer._waiting_bytes <= 60_000
    assert producer.acknowledged == 100

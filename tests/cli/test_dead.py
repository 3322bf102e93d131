"""`loopwarden dead`: dead letters listed once, shown whole, and replayed once, where that helps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from loopwarden_schemas.codec import decode_record, encode_event
from loopwarden_schemas.structs import Rejected
from loopwarden_schemas.topics import MAX_RECORD_BYTES, Topics, partition_for

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker

RUN = "run-7"
GOOD = {"type": "run.finished", "event_id": "e", "ts": 1, "run_id": RUN}
WHO = ("--by", "ada", "--why", "it is mended")


class Cluster:
    """Topics on the real broker, and records into them."""

    def __init__(self, servers: str, topics: Topics) -> None:
        from kafka import KafkaProducer

        self.topics = topics
        self.options = ("--broker", servers, "--prefix", topics.prefix)
        self.servers = servers
        self.producer = KafkaProducer(bootstrap_servers=servers, max_request_size=2**21)
        self.own = partition_for(RUN, topics.events.partitions)

    def event(self, value: bytes | None, key: bytes | None = RUN.encode(), partition: int | None = None) -> Any:
        """Append a record to agent-events; return it as a worker would see it."""
        from types import SimpleNamespace

        at = self.own if partition is None else partition
        sent = self.producer.send(self.topics.events.name, value, key=key, partition=at).get(30)
        return SimpleNamespace(
            topic=self.topics.events.name,
            partition=at,
            offset=sent.offset,
            timestamp=sent.timestamp,
            key=key,
            value=value,
            headers=(),
        )

    def letter(self, record: Any, rejected: Rejected | None = None) -> str:
        """Write the dead letter that a worker would write; return how it is named."""
        from loopwarden.worker.dead_letters import dead_letter

        if rejected is None:
            rejected = next(each for each in decode_record(record.value, 1) if isinstance(each, Rejected))
        key, value, headers = dead_letter(record, rejected, first=True)
        topic = self.topics.dead.name
        self.producer.send(topic, value, key=key, partition=record.partition, headers=headers).get(30)
        return f"{record.partition}/{record.offset}/{rejected.index}"

    def newest_event(self) -> Any:
        """The newest record of agent-events in the run's partition."""
        from loopwarden.client import Connection, following

        with following(Connection(self.servers, self.topics.prefix), self.topics.events.name) as follower:
            end = follower.ends()[self.own]
            [[record]] = list(follower.read({self.own: (end - 1, end)}))
            return record


@pytest.fixture
def cluster(broker: LocalBroker, topics: Topics) -> Iterator[Cluster]:
    cluster = Cluster(broker.bootstrap_servers, topics)
    yield cluster
    cluster.producer.close()


@pytest.fixture
def dead(run: Callable[..., Any], cluster: Cluster) -> Callable[..., Any]:
    return lambda *arguments: run("dead", *arguments, *cluster.options)


def test_a_list_has_each_letter_once_and_says_why(dead: Any, cluster: Cluster) -> None:
    assert dead("list").code == 0
    bad = cluster.event(b"\xc1 is no MessagePack")
    name = cluster.letter(bad)
    cluster.letter(bad)
    misrouted = cluster.letter(cluster.event(encode_event(GOOD)), Rejected(0, "misrouted", "wrong key"))
    ran = dead("list", "--json")
    assert ran.code == 1
    letters = [json.loads(line) for line in ran.out.splitlines()]
    assert [(each["letter"], each["reason"]) for each in letters] == [(name, "undecodable"), (misrouted, "misrouted")]
    assert letters[0]["key"] == RUN
    assert letters[0]["size"] == letters[0]["carried"] == len(bad.value)
    ran = dead("list", "--reason", "misrouted", "--since", "1h")
    assert "wrong key" in ran.out
    assert name not in ran.out
    assert "1 dead letter: 1 misrouted" in ran.err


def test_a_long_key_leaves_a_letters_name_and_reason_whole(run: Any, cluster: Cluster) -> None:
    # In the table there is room for few words of the detail: the first must be there.
    long = cluster.letter(cluster.event(b"\xc1", key=b"k" * 500), Rejected(0, "too_many_events", "mixed up " * 20))
    ran = run("dead", "list", *cluster.options, columns=80)
    assert long in ran.out
    assert "too_many_events" in ran.out
    assert "mixed" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "--reason", "bad"), "--reason: must be one of undecodable, too_large"),
        (("list", "--since", "yesterday"), "--since: must be a time such as 30s, 10m, 2h or 1d, got 'yesterday'"),
        (("show", "7"), "LETTER: must be PARTITION/OFFSET/INDEX, such as 3/1402/0, got '7'"),
        (("replay", *WHO), "LETTER: must say which letters, or --reason or --since must"),
        (("replay", "0/0/0", "--by", " ", "--why", "x"), "--by: must not be empty"),
    ],
)
def test_a_wrong_option_says_what_it_must_be(run: Any, arguments: tuple[str, ...], message: str) -> None:
    ran = run("dead", *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_a_letter_is_shown_with_its_event_or_its_bytes(dead: Any, cluster: Cluster) -> None:
    events = [GOOD, {**GOOD, "event_id": "bad\x1b[2J", "type": "run.paused"}]
    record = json.dumps(events)
    element = cluster.letter(cluster.event(record.encode()))
    ran = dead("show", element)
    assert ran.code == 0
    assert "reason     unknown_type" in ran.out
    assert '"type": "run.paused"' in ran.out
    assert "run.finished" not in ran.out.split("\n\n")[1]
    assert "\x1b" not in ran.out
    assert dead("show", element, "--raw").out == record
    ran = dead("show", cluster.letter(cluster.event(b"\xc1 no event")))
    assert "00000000  c1 20 6e 6f" in ran.out
    assert ". no event" in ran.out
    assert dead("show", "0/99999/0").code == 1


def test_of_a_record_that_was_too_large_the_rest_is_read_where_it_lies(dead: Any, cluster: Cluster) -> None:
    value = b"{" + b"x" * MAX_RECORD_BYTES
    letter = cluster.letter(cluster.event(value))
    assert dead("show", letter, "--raw").out.encode() == value


def test_what_is_replayed_lies_with_its_run_and_is_noted(dead: Any, cluster: Cluster) -> None:
    events = [{**GOOD, "event_id": "other"}, GOOD]
    record = cluster.event(encode_event(events), key=b"wrong key", partition=1 - cluster.own)
    letter = cluster.letter(record, Rejected(1, "misrouted", "wrong key"))
    ran = dead("replay", letter, *WHO)
    assert ran.code == 0, ran.err
    newest = cluster.newest_event()
    assert newest.key == RUN.encode()
    assert msgpack.unpackb(newest.value) == GOOD
    headers = dict(newest.headers)
    assert headers["replay-of"] == f"{cluster.topics.events.name}/{letter}".encode()
    assert (headers["replayed-by"], headers["replayed-why"]) == (b"ada", b"it is mended")
    assert f"{letter}: replayed as partition {cluster.own}, offset {newest.offset}" in ran.out
    [listed] = [json.loads(line) for line in dead("list", "--json").out.splitlines()]
    assert [(each["by"], each["why"]) for each in listed["replays"]] == [("ada", "it is mended")]
    assert "replayed by ada" in " ".join(dead("list").out.split())
    ran = dead("replay", letter, *WHO)
    assert ran.code == 1
    assert f"{letter}: not replayed: ada replayed it" in ran.err
    assert cluster.newest_event().offset == newest.offset
    assert dead("replay", letter, *WHO, "--force").code == 0
    assert cluster.newest_event().offset == newest.offset + 1


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"\xc1", "undecodable"),
        (encode_event({**GOOD, "type": "run.paused"}), "unknown_type"),
        (
            encode_event({**GOOD, "type": "tool_call.started", "tool": "read", "args": float("nan")}),
            "invalid_payload",
        ),
        (
            encode_event({"type": "policy.applied", "event_id": "p", "ts": 1, "number": 99, "digest": "d"}),
            "`loopwarden policy apply`",
        ),
    ],
)
def test_what_would_be_rejected_again_is_refused_unless_forced(
    dead: Any, cluster: Cluster, value: bytes, why: str
) -> None:
    record = cluster.event(value)
    letter = cluster.letter(record, Rejected(0, "judge_failed", "as it was"))
    ran = dead("replay", "--reason", "judge_failed", *WHO)
    assert ran.code == 1
    assert why in ran.err
    assert cluster.newest_event().offset == record.offset
    ran = dead("replay", letter, *WHO, "--force")
    assert ran.code == 0, ran.err
    newest = cluster.newest_event()
    assert (newest.offset, newest.value) == (record.offset + 1, value)


def test_events_of_a_run_are_replayed_in_their_order(dead: Any, cluster: Cluster) -> None:
    records = [cluster.event(encode_event({**GOOD, "event_id": f"e{number}"})) for number in range(3)]
    for record in reversed(records):
        cluster.letter(record, Rejected(0, "judge_failed", "x"))
    ran = dead("replay", "--since", "1h", *WHO)
    assert ran.code == 0
    at = [f"{record.partition}/{record.offset}/0" for record in records]
    assert [line.split(":")[0] for line in ran.out.splitlines()] == at

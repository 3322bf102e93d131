"""An installation on the real broker, and workers as processes of their own, so that SIGKILL is real."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from loopwarden.judge import RunState, judge
from loopwarden_schemas.codec import decode_record, decode_verdict, encode_event
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import PolicyApplied, Rejected, Verdict
from loopwarden_schemas.topics import Topics, declared_topics, partition_for

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker, LocalCluster
    from loopwarden.worker.stores import Store

# kafka-python is imported where it is used: it warns when it is imported, and this file is read before the root's
# conftest has told pytest to ignore that.

HANG_S = 60
VECTORS = Path(__file__).parent.parent / "vectors"
STRICT = {"tools": {"loopDetection": {"enabled": True, "warningThreshold": 2, "criticalThreshold": 4}}}

Event = dict[str, Any]


@dataclass
class WorkerProcess:
    """A worker of its own process."""

    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def wait_for_log(self, text: str) -> None:
        wait_until(lambda: text in self.log or self.process.poll() is not None, lambda: self.log)
        assert text in self.log, self.log

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """How it ends, by itself or after a signal."""
        return self.process.wait(HANG_S)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.exit_code()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.exit_code()


@dataclass
class Installation:
    """Topics under a prefix of their own on the real broker, and what is done with them."""

    servers: str
    topics: Topics
    folder: Path
    workers: list[WorkerProcess] = field(default_factory=list)

    @cached_property
    def producer(self) -> Any:
        from kafka import KafkaProducer

        return KafkaProducer(bootstrap_servers=self.servers, linger_ms=5, max_request_size=2**21)

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **os.environ,
            "LOOPWARDEN_BOOTSTRAP_SERVERS": self.servers,
            "LOOPWARDEN_TOPIC_PREFIX": self.topics.prefix,
            "LOOPWARDEN_DATA_DIR": str(self.folder / "data"),
            "LOOPWARDEN_CHECKPOINT_SECONDS": "0.2",
            "LOOPWARDEN_SESSION_SECONDS": "6",
            **more,
        }

    def start_worker(self, *command: str, **environment: str) -> WorkerProcess:
        log_file = self.folder / f"worker-{len(self.workers)}.log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                command or (sys.executable, "-m", "loopwarden.worker"),
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self.environment(**environment),
            )
        self.workers.append(WorkerProcess(process, log_file))
        return self.workers[-1]

    def publish(self, events: list[Event] | Event, *, partition: int | None = None, key: bytes | None = None) -> None:
        """Publish one record: an event, or a list of events of the same run."""
        run_id = (events[0] if isinstance(events, list) else events)["run_id"]
        self.publish_bytes(
            encode_event(events), key=key or run_id.encode(), partition=self.partition(run_id, partition)
        )

    def publish_bytes(self, value: bytes | None, *, key: bytes | None, partition: int, **headers: bytes) -> None:
        self.producer.send(
            self.topics.events.name,
            value,
            key=key,
            partition=partition,
            headers=[(name.replace("_", "-"), text) for name, text in headers.items()],
        )

    def partition(self, run_id: str, partition: int | None = None) -> int:
        return partition_for(run_id, self.topics.events.partitions) if partition is None else partition

    def archive_policy(self, document: dict[str, Any]) -> int:
        """Put a document into the archive; return its number."""
        record = {"policy": document, "by": "test", "why": "test"}
        sent = self.producer.send(self.topics.policies.name, msgpack.packb(record), partition=0)
        offset: int = sent.get(HANG_S).offset
        return offset

    def apply_policy(self, number: int, document: dict[str, Any], partitions: list[int] | None = None) -> None:
        digest = PolicyDocument.from_value(document).digest
        for partition in range(self.topics.events.partitions) if partitions is None else partitions:
            event = {
                "type": "policy.applied",
                "event_id": f"applied-{number}",
                "ts": 0,
                "number": number,
                "digest": digest,
            }
            self.publish_bytes(encode_event(event), key=None, partition=partition)

    def apply(self, document: dict[str, Any]) -> int:
        """Archive a document and apply it everywhere."""
        number = self.archive_policy(document)
        self.apply_policy(number, document)
        return number

    def read(self, topic: str) -> list[Any]:
        """All records of a topic as they are now, partition by partition."""
        from kafka import KafkaConsumer, TopicPartition

        self.producer.flush(HANG_S)
        consumer = KafkaConsumer(bootstrap_servers=self.servers, enable_auto_commit=False)
        try:
            partitions = [TopicPartition(topic, each) for each in sorted(consumer.partitions_for_topic(topic) or ())]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            ends = consumer.end_offsets(partitions)
            records: dict[TopicPartition, list[Any]] = {each: [] for each in partitions}
            deadline = time.monotonic() + HANG_S
            while any(consumer.position(each) < ends[each] for each in partitions):
                assert time.monotonic() < deadline, f"{topic} cannot be read to its end"
                for each, polled in consumer.poll(timeout_ms=200).items():
                    records[each] += polled
            return [record for each in partitions for record in records[each] if record.offset < ends[each]]
        finally:
            consumer.close()

    def begin_again(self) -> None:
        """Delete the topics and the group, and create the topics again."""
        from loopwarden.client import admin_client, create_topics

        with admin_client(self.servers) as client:
            client.delete_topics([topic.name for topic in self.topics.all()])
            client.delete_groups([self.topics.app_id])
        wait_until(lambda: not self._topics_there(), self._topics_there)
        create_topics(self.servers, self.topics)

    def _topics_there(self) -> set[str]:
        from loopwarden.client import admin_client

        with admin_client(self.servers) as client:
            return {topic.name for topic in self.topics.all()} & set(client.list_topics())

    def end_offsets(self, topic: str) -> dict[int, int]:
        from kafka import KafkaConsumer, TopicPartition

        self.producer.flush(HANG_S)
        consumer = KafkaConsumer(bootstrap_servers=self.servers, enable_auto_commit=False)
        try:
            partitions = [TopicPartition(topic, each) for each in consumer.partitions_for_topic(topic) or ()]
            return {each.partition: end for each, end in consumer.end_offsets(partitions).items()}
        finally:
            consumer.close()

    def progress(self) -> dict[int, dict[str, int]]:
        """The highest progress of each partition."""
        highest: dict[int, dict[str, int]] = {}
        for record in self.read(self.topics.progress.name):
            assert record.key == str(record.partition).encode()
            value = msgpack.unpackb(record.value)
            if value["judged"] >= highest.get(record.partition, value)["judged"]:
                highest[record.partition] = value
        return highest

    def wait_until_judged(self) -> None:
        """Wait until `loop-progress` says that everything published so far is judged."""
        ends = self.end_offsets(self.topics.events.name)

        def judged() -> bool:
            for worker in self.workers[-1:]:
                assert worker.process.poll() in (None, 0, -signal.SIGKILL, -signal.SIGTERM), worker.log
            progress = self.progress()
            return all(progress.get(partition, {"judged": 0})["judged"] >= end for partition, end in ends.items())

        wait_until(judged, lambda: f"{self.progress()} of {ends}\n" + "\n".join(worker.log for worker in self.workers))

    def verdicts(self) -> list[tuple[int, Verdict]]:
        """All verdicts with their partition, each once, in the order in which they first came."""
        seen: dict[tuple[int, str], Verdict] = {}
        for record in self.read(self.topics.verdicts.name):
            verdict = decode_verdict(record.value)
            assert record.key == verdict.run_id.encode()
            seen.setdefault((record.partition, verdict.verdict_id), verdict)
        return [(partition, verdict) for (partition, _), verdict in seen.items()]

    def judged_in_one_process(
        self, documents: dict[int, dict[str, Any]], *, without_tool: str | None = None
    ) -> list[tuple[int, Verdict]]:
        """What judging the log of events once from its start gives, by plain means; `documents` by their number.

        Calls of `without_tool` count as not there.
        """
        states: dict[str, RunState] = {}
        policies: dict[int, PolicyDocument] = {}
        verdicts = []
        for record in self.read(self.topics.events.name):
            for event in decode_record(record.value, record.timestamp):
                if isinstance(event, PolicyApplied):
                    policies[record.partition] = PolicyDocument.from_value(documents[event.number])
                elif not isinstance(event, Rejected) and (
                    without_tool is None or getattr(event, "tool", None) != without_tool
                ):
                    policy = policies.get(record.partition, DEFAULT_DOCUMENT)
                    judged = judge(states.get(event.run_id), event, policy)
                    states[event.run_id] = judged.state
                    verdicts += [(record.partition, verdict) for verdict in judged.verdicts]
        return verdicts

    def until(self, condition: Any) -> None:
        """Wait until something holds."""
        wait_until(condition, lambda: "\n".join(worker.log for worker in self.workers))

    def dead_letters(self) -> list[Any]:
        return self.read(self.topics.dead.name)

    def close(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()
        if "producer" in vars(self):
            self.producer.close()


def wait_until(condition: Any, state: Any) -> None:
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, state()
        time.sleep(0.1)


@pytest.fixture
def installation(broker: LocalBroker, topics: Topics, tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(broker.bootstrap_servers, topics, tmp_path)
    yield installation
    installation.close()


@pytest.fixture(params=["memory://", "rocksdb://"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """The states of one partition, in either kind of store."""
    from loopwarden.worker.rocksdb_store import RocksDBStores
    from loopwarden.worker.stores import InMemory, Stores

    in_memory = request.param == "memory://"
    stores: Stores = InMemory() if in_memory else RocksDBStores(tmp_path, "app", "cluster")
    store = stores.open(0)
    yield store
    store.close()
    stores.close()


@pytest.fixture
def three_brokers(cluster: LocalCluster, tmp_path: Path) -> Iterator[Installation]:
    """An installation on three brokers, each of which has every record."""
    from loopwarden.broker import create_topics

    topics = declared_topics(f"t{secrets.token_hex(4)}-", partitions=2)
    create_topics(cluster.bootstrap_servers, topics, replication_factor=3)
    installation = Installation(cluster.bootstrap_servers, topics, tmp_path)
    yield installation
    installation.close()


def _histories(limit: int) -> list[Event]:
    events = []
    with gzip.open(VECTORS / "random-histories.jsonl.gz", "rt") as lines:
        for line in lines:
            case = json.loads(line)
            for number, event in enumerate(case["events"]):
                given = {"event_id": f"{case['name']}/{number}", "ts": number, **event}
                # Idle time is the broker's append time here, which the histories do not know.
                events.append({"schema": 1, **given, "run_id": f"{case['name']}-{event['run_id']}"})
            if len(events) >= limit:
                break
    return events[:limit]


@pytest.fixture(scope="session")
def histories() -> list[Event]:
    """Some thousand events of random runs, as they would be published."""
    return _histories(3000)


def repeated_call(run_id: str, number: int, *, tool: str = "read", result: Any = "the same") -> list[Event]:
    """A call and its outcome, the same each time but for their ids."""
    call = {"run_id": run_id, "ts": number, "call_id": f"c{number}", "tool": tool, "args": {"path": "/x"}}
    return [
        {"type": "tool_call.started", "event_id": f"{run_id}-{number}-s", **call},
        {"type": "tool_call.finished", "event_id": f"{run_id}-{number}-f", **call, "result": result},
    ]


@pytest.fixture(name="repeated_call")
def _repeated_call() -> Any:
    return repeated_call


@pytest.fixture
def strict() -> dict[str, Any]:
    """A policy that warns at the second repetition and blocks at the fourth."""
    return STRICT

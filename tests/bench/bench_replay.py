"""`make bench-replay`: a filled topic judged again and compared, beside one core of the judge on the same events.

Every round measures both, one after the other: machines here are shared and noisy, so quote the ratio. The judge alone
has its events decoded from bytes in memory and does nothing with what it finds; replay reads them from a broker, in as
many processes as there are cores, reads the verdicts and compares.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from workload import events

from loopwarden.broker import LocalBroker, create_topics
from loopwarden.cli.in_processes import cores, in_processes
from loopwarden.cli.log_parts import Asked, PartToRead, parts_to_read
from loopwarden.cli.replaying import replay_part
from loopwarden.client import Connection
from loopwarden.judge import RunState, fold, judge
from loopwarden.replay import Comparison, Folder
from loopwarden_schemas.codec import MESSAGEPACK, decode_record, encode_event, encode_verdict
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import PolicyApplied, Rejected
from loopwarden_schemas.topics import declared_topics, partition_for

EVENTS = int(os.environ.get("BENCH_EVENTS", "1000000"))
PARTITIONS = int(os.environ.get("BENCH_PARTITIONS", "8"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
JUDGED = 200_000
"""Events that the judge alone is measured on."""

POLICY = PolicyDocument.from_value({"tools": {"loopDetection": {"enabled": True}}})
PREFIX = "bench-"


class Rate(NamedTuple):
    """Events, and the seconds they took: by the clock, and of all cores."""

    events: int
    seconds: float
    cpu_seconds: float

    @property
    def events_per_s(self) -> float:
        return self.events / self.seconds

    @property
    def cpu_us(self) -> float:
        return self.cpu_seconds / self.events * 1e6


class Round(NamedTuple):
    """One core of the judge, and replay with all of them."""

    judge: Rate
    replay: Rate
    comparison: Comparison


class Batches:
    """Records on their way into a topic, in large batches for each partition."""

    def __init__(self, producer: AIOKafkaProducer, topic: str) -> None:
        self.producer = producer
        self.topic = topic
        self.open: dict[int, Any] = {}

    async def add(self, partition: int, key: bytes | None, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        batch = self.open.get(partition) or self.producer.create_batch()
        if batch.append(key=key, value=value, timestamp=None, headers=headers) is None:
            await self.producer.send_batch(batch, self.topic, partition=partition)
            batch = self.producer.create_batch()
            batch.append(key=key, value=value, timestamp=None, headers=headers)
        self.open[partition] = batch

    async def close(self) -> None:
        for partition, batch in self.open.items():
            await self.producer.send_batch(batch, self.topic, partition=partition)


async def fill(servers: str, console: Console) -> list[bytes]:
    """Fill the topics as gateways and a worker would; return some of the events as they are on the wire."""
    topics = declared_topics(PREFIX, partitions=PARTITIONS)
    create_topics(servers, topics)
    producer = AIOKafkaProducer(bootstrap_servers=servers, max_batch_size=512 * 1024, acks=1)
    await producer.start()
    content = ("content-type", MESSAGEPACK.encode())
    log, published = Batches(producer, topics.events.name), Batches(producer, topics.verdicts.name)
    number = (await producer.send_and_wait(topics.policies.name, encode_event({"policy": POLICY.value}))).offset
    applied = {"type": "policy.applied", "event_id": "p", "ts": 0, "number": number, "digest": POLICY.digest}
    for partition in range(PARTITIONS):
        await log.add(partition, None, encode_event(applied), [content])
    offsets = dict.fromkeys(range(PARTITIONS), 1)
    some = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("filling the log", total=EVENTS)
        for count, event in enumerate(events(EVENTS, "filled")):
            key, value = event["run_id"].encode(), encode_event(event)
            partition = partition_for(key, PARTITIONS)
            await log.add(partition, key, value, [content])
            if count < JUDGED:
                some.append(value)
            offsets[partition] += 1
            if count % 10_000 == 0:
                progress.update(task, completed=count)
        await log.close()
        await producer.flush()
        # A verdict tells when its run began by the broker's clock: what is recorded is made from the log.
        task = progress.add_task("judging it", total=EVENTS)
        for partition in range(PARTITIONS):
            folder = Folder(POLICY)
            reading = AIOKafkaConsumer(bootstrap_servers=servers, max_poll_records=10_000)
            await reading.start()
            at = TopicPartition(topics.events.name, partition)
            reading.assign([at])
            await reading.seek_to_beginning(at)
            while await reading.position(at) < offsets[partition]:
                for record in (await reading.getmany(at, timeout_ms=500)).get(at, []):
                    (decoded,) = decode_record(record.value, record.timestamp)
                    assert not isinstance(decoded, Rejected)
                    if isinstance(decoded, PolicyApplied):
                        continue
                    for verdict in folder.fold(decoded).verdicts:
                        cause = ("cause-offset", b"%d" % record.offset)
                        await published.add(partition, record.key, encode_verdict(verdict), [content, cause])
                    progress.update(task, advance=1)
            await reading.stop()
    await published.close()
    for partition, judged in offsets.items():
        value = encode_event({"judged": judged, "verdicts": 0})
        await producer.send(topics.progress.name, value, key=b"%d" % partition, partition=partition)
    await producer.stop()
    return some


def judge_alone(records: list[bytes]) -> Rate:
    """One core of the judge."""
    states: dict[str, RunState] = {}
    begun, cpu_begun = time.monotonic(), time.process_time()
    for at, record in enumerate(records):
        for event in decode_record(record, at):
            assert not isinstance(event, (Rejected, PolicyApplied))
            states[event.run_id] = judge(states.get(event.run_id), event, POLICY).state
    return Rate(len(records), time.monotonic() - begun, time.process_time() - cpu_begun)


def replay(connection: Connection, bar: Progress) -> tuple[Rate, Comparison]:
    """All of it, from the look at the topics to the last comparison."""
    begun, cpu_begun = time.monotonic(), cpu_seconds()
    task = bar.add_task("replay")
    found = Comparison()
    work: Callable[[PartToRead, Callable[[int], None]], Any] = partial(replay_part, connection, None)
    for part in in_processes(
        parts_to_read(connection, Asked()),
        work,
        lambda done, total: bar.update(task, completed=done, total=total),
    ):
        found.add(part.comparison)
    return Rate(found.events, time.monotonic() - begun, cpu_seconds() - cpu_begun), found


def cpu_seconds() -> float:
    """Of this process and of the children that have ended."""
    return sum(os.times()[:4])


def measure(connection: Connection, records: list[bytes], console: Console) -> Iterator[Round]:
    for _ in range(ROUNDS):
        with Progress(console=console, transient=True) as bar:
            alone = judge_alone(records)
            yield Round(alone, *replay(connection, bar))


def main() -> None:
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder, LocalBroker(Path(folder), port=0) as broker:
        records = asyncio.run(fill(broker.bootstrap_servers, console))
        measured = list(measure(Connection(broker.bootstrap_servers, PREFIX), records, console))
    comparison = measured[0].comparison
    assert comparison.same and not comparison.differing, (comparison.same, comparison.differing[:1])
    compiled = not str(fold.__file__).endswith(".py")
    table = Table(
        title=f"{comparison.events:,} events in {PARTITIONS} partitions judged again and compared, {cores()} cores,"
        f" judge {'compiled' if compiled else 'pure Python'}, {ROUNDS} rounds"
    )
    for column in ("", "median", "least", "most"):
        table.add_column(column, justify="right" if column else "left")
    values = {
        "judge, one core: events/s": [each.judge.events_per_s for each in measured],
        "replay, all cores: events/s": [each.replay.events_per_s for each in measured],
        "replay / one core of the judge": [each.replay.events_per_s / each.judge.events_per_s for each in measured],
        "judge: us of CPU an event": [each.judge.cpu_us for each in measured],
        "replay: us of CPU an event": [each.replay.cpu_us for each in measured],
    }
    for name, found in values.items():
        form = "{:,.0f}" if name.endswith("/s") else "{:.2f}"
        table.add_row(name, *(form.format(one) for one in (statistics.median(found), min(found), max(found))))
    Console().print(table)
    rate, replay_rate, ratio, judge_us, replay_us = (statistics.median(found) for found in values.values())
    print(
        json.dumps(
            {
                "bench": "replay",
                "events": comparison.events,
                "partitions": PARTITIONS,
                "cores": cores(),
                "compiled": compiled,
                "events_per_s": round(replay_rate),
                "judge_one_core_events_per_s": round(rate),
                "ratio": round(ratio, 2),
                "cpu_us_per_event": {"judge": round(judge_us, 2), "replay": round(replay_us, 2)},
                "python": sys.version.split()[0],
            }
        )
    )


if __name__ == "__main__":
    main()

"""`make bench-stream`: events through broker, worker and verdicts, beside a hand-written loop that does the same fold.

Throughput: the topic is filled beforehand, one partition, 1,000 runs; from the first progress to the last. Latency: a
worker that has caught up, 2,000 events a second, from produced to verdict consumed. Machines here are shared and noisy:
quote the ratio.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from workload import RUNS, events

from loopwarden.broker import LocalBroker, create_topics
from loopwarden_schemas.codec import encode_event
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.topics import Topics, declared_topics

EVENTS = int(os.environ.get("BENCH_EVENTS", "500000"))
LATENCY_SECONDS = int(os.environ.get("BENCH_LATENCY_SECONDS", "20"))
RATE = 2_000
POLICY = {"tools": {"loopDetection": {"enabled": True}}}
PLAIN_LOOP = Path(__file__).with_name("plain_loop.py")
PRODUCER = Path(__file__).with_name("produce_at_rate.py")
WARM_SECONDS = 3
SKIPPED = 0.1
"""Of the events: until here everything warms up."""


class Measured(NamedTuple):
    """One pass over the filled topic."""

    events_per_s: float
    cpu_us_per_event: float
    changelog_records_per_event: float
    verdicts: int


class Latency(NamedTuple):
    """From just before an event is produced to its verdict consumed, in milliseconds; `cpu` is a share of one core."""

    verdicts: int
    p50: float
    p99: float
    cpu: float


class Bench:
    """One broker, one filled topic, and the passes over it."""

    def __init__(self, servers: str, console: Console) -> None:
        self.servers = servers
        self.console = console
        self.topics = declared_topics("bench-", partitions=1)
        self.plain_topics = declared_topics("bench-plain-", partitions=1)

    async def fill(self) -> None:
        for topics in (self.topics, self.plain_topics):
            create_topics(self.servers, topics)
        producer = AIOKafkaProducer(bootstrap_servers=self.servers, max_batch_size=512 * 1024, acks=1)
        await producer.start()
        await apply_policy(producer, self.topics)
        batch = producer.create_batch()
        with Progress(console=self.console, transient=True) as progress:
            task = progress.add_task("filling the topic", total=EVENTS)
            for number, event in enumerate(events(EVENTS - 1, "filled")):
                key, value = event["run_id"].encode(), encode_event(event)
                if batch.append(key=key, value=value, timestamp=None) is None:
                    await producer.send_batch(batch, self.topics.events.name, partition=0)
                    batch = producer.create_batch()
                    batch.append(key=key, value=value, timestamp=None)
                    progress.update(task, completed=number)
            await producer.send_batch(batch, self.topics.events.name, partition=0)
            await producer.stop()

    def worker(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "LOOPWARDEN_BOOTSTRAP_SERVERS": self.servers,
            "LOOPWARDEN_TOPIC_PREFIX": self.topics.prefix,
            "LOOPWARDEN_DATA_DIR": tempfile.mkdtemp(),
        }
        return subprocess.Popen([sys.executable, "-m", "loopwarden.worker"], env=environment, stderr=subprocess.DEVNULL)

    def plain_loop(self) -> subprocess.Popen[bytes]:
        prefix = self.plain_topics.prefix
        return subprocess.Popen(
            [sys.executable, PLAIN_LOOP, self.servers, self.topics.events.name, prefix, json.dumps(POLICY)]
        )

    async def measure(self, process: subprocess.Popen[bytes], topics: Topics, what: str) -> Measured:
        """Measure a process that writes its progress, until it has judged every event."""
        consumer = AIOKafkaConsumer(bootstrap_servers=self.servers)
        await consumer.start()
        partition = TopicPartition(topics.progress.name, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        begun: tuple[int, int, float] | None = None
        records_before = 0
        with Progress(console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=EVENTS)
            while True:
                for records in (await consumer.getmany(partition, timeout_ms=100)).values():
                    for record in records:
                        value = msgpack.unpackb(record.value)
                        bar.update(task, completed=value["judged"])
                        if begun is None and value["judged"] >= EVENTS * SKIPPED:
                            begun = (value["judged"], record.timestamp, cpu_seconds(process.pid))
                            records_before = await end(consumer, topics.changelog.name)
                        if begun is not None and value["judged"] >= EVENTS:
                            judged, seconds = EVENTS - begun[0], (record.timestamp - begun[1]) / 1000
                            cpu = cpu_seconds(process.pid) - begun[2]
                            await asyncio.sleep(1.5)  # The last checkpoint.
                            written = await end(consumer, topics.changelog.name) - records_before
                            await consumer.stop()
                            return Measured(judged / seconds, cpu / judged * 1e6, written / judged, value["verdicts"])
                if process.poll() is not None:
                    sys.exit(f"{what}: ended with {process.returncode}")

    async def latency(self, process: subprocess.Popen[bytes], topics: Topics, what: str) -> Latency:
        """Measure a process that has caught up, over events produced one by one."""
        consumer = AIOKafkaConsumer(bootstrap_servers=self.servers)
        await consumer.start()
        partition = TopicPartition(topics.verdicts.name, 0)
        consumer.assign([partition])
        await consumer.seek_to_end(partition)
        await consumer.position(partition)
        await asyncio.sleep(6)  # It starts, and finds nothing to do.
        total = RATE * (WARM_SECONDS + LATENCY_SECONDS)
        producer = subprocess.Popen(
            [
                sys.executable,
                PRODUCER,
                self.servers,
                self.topics.events.name,
                str(RATE),
                str(total),
                f"at-{process.pid}",
            ]
        )
        milliseconds: list[float] = []
        first: float | None = None
        with Progress(console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=WARM_SECONDS + LATENCY_SECONDS)
            while producer.poll() is None:
                polled = (await consumer.getmany(partition, timeout_ms=500)).values()
                now = time.time_ns() // 1000
                for records in polled:
                    for record in records:
                        produced = msgpack.unpackb(record.value)["ts"]
                        if first is None:
                            first, cpu = now / 1e6, cpu_seconds(process.pid)
                        bar.update(task, completed=now / 1e6 - first)
                        if produced / 1e6 > first + WARM_SECONDS:
                            milliseconds.append((now - produced) / 1000)
        cpu = (cpu_seconds(process.pid) - cpu) / (time.time() - (first or 0))
        await consumer.stop()
        return Latency(len(milliseconds), percentile(milliseconds, 50), percentile(milliseconds, 99), cpu)


async def apply_policy(producer: AIOKafkaProducer, topics: Topics) -> None:
    record = msgpack.packb({"schema": 1, "policy": POLICY, "by": "bench", "why": "bench", "ts": 0})
    number = (await producer.send_and_wait(topics.policies.name, record, partition=0)).offset
    digest = PolicyDocument.from_value(POLICY).digest
    event = {"type": "policy.applied", "event_id": "policy", "ts": 0, "number": number, "digest": digest}
    await producer.send_and_wait(topics.events.name, encode_event(event), partition=0)


async def end(consumer: AIOKafkaConsumer, topic: str) -> int:
    partition = TopicPartition(topic, 0)
    offset: int = (await consumer.end_offsets([partition]))[partition]
    return offset


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process so far, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


async def main(console: Console, servers: str) -> dict[str, Any]:
    bench = Bench(servers, console)
    await bench.fill()
    measured, latencies = {}, {}
    for name, start, topics in (
        ("worker", bench.worker, bench.topics),
        ("plain loop", bench.plain_loop, bench.plain_topics),
    ):
        process = start()
        measured[name] = await bench.measure(process, topics, f"throughput: {name}")
        stop(process)
    for name, start, topics in (
        ("worker", bench.worker, bench.topics),
        ("plain loop", bench.plain_loop, bench.plain_topics),
    ):
        process = start()
        latencies[name] = await bench.latency(process, topics, f"latency: {name}")
        stop(process)
    worker, loop = measured.values()
    table = Table(title=f"{EVENTS:,} events of {RUNS:,} runs, one partition; latency at {RATE:,} events/s")
    for column in ("", "events/s", "CPU us/event", "states/event", "verdicts", "p50 ms", "p99 ms", "CPU"):
        table.add_column(column, justify="right" if column else "left")
    for name, each in measured.items():
        table.add_row(
            name,
            f"{each.events_per_s:,.0f}",
            f"{each.cpu_us_per_event:.1f}",
            f"{each.changelog_records_per_event:.3f}",
            f"{each.verdicts:,}",
            f"{latencies[name].p50:.1f}",
            f"{latencies[name].p99:.1f}",
            f"{latencies[name].cpu:.0%}",
        )
    console.print(table)
    if worker.verdicts != loop.verdicts:
        sys.exit(f"the worker published {worker.verdicts} verdicts, the hand-written loop {loop.verdicts}")
    return {
        "bench": "stream",
        "partitions": {
            "1": {
                "events_per_s": round(worker.events_per_s),
                "cpu_us_per_event": round(worker.cpu_us_per_event, 2),
                "ratio_to_plain_loop": round(worker.events_per_s / loop.events_per_s, 3),
                "changelog_records_per_event": round(worker.changelog_records_per_event, 4),
            }
        },
        "latency_ms": {"p50": round(latencies["worker"].p50, 2), "p99": round(latencies["worker"].p99, 2)},
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, LocalBroker(Path(folder), port=0) as broker:
        result = asyncio.run(main(Console(stderr=True), broker.bootstrap_servers))
    print(json.dumps(result))

"""`make bench-stream`: events through broker, worker and verdicts, beside a hand-written loop that does the same fold.

Throughput: the topic is filled beforehand, 1,000 runs; from the first progress to the last. One partition, beside the
hand-written loop, in turns: the ratio is the median of the rounds'. Then eight partitions with one worker and with two,
beside the worker's rate on one. Latency: a worker that has caught up, one partition, 2,000 events a second, from
produced to verdict consumed. Machines here are shared and noisy: quote the ratios.
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
from loopwarden_schemas.topics import Topic, Topics, declared_topics, partition_for

EVENTS = int(os.environ.get("BENCH_EVENTS", "500000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
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
    """One filled topic, and the passes over it."""

    def __init__(self, servers: str, console: Console, prefix: str, partitions: int) -> None:
        self.servers = servers
        self.console = console
        self.topics = declared_topics(prefix, partitions=partitions)
        self.plain_topics = declared_topics(f"{prefix}plain-", partitions=partitions)
        self._partitions = partitions
        self._total = EVENTS + partitions
        """With the `policy.applied` of each partition."""

    async def fill(self) -> None:
        for topics in (self.topics, self.plain_topics):
            create_topics(self.servers, topics)
        producer = AIOKafkaProducer(bootstrap_servers=self.servers, max_batch_size=512 * 1024, acks=1)
        await producer.start()
        await apply_policy(producer, self.topics)
        batches = {each: producer.create_batch() for each in range(self._partitions)}
        with Progress(console=self.console, transient=True) as progress:
            task = progress.add_task("filling the topic", total=EVENTS)
            for number, event in enumerate(events(EVENTS, "filled")):
                key, value = event["run_id"].encode(), encode_event(event)
                partition = partition_for(key, self._partitions)
                if batches[partition].append(key=key, value=value, timestamp=None) is None:
                    await producer.send_batch(batches[partition], self.topics.events.name, partition=partition)
                    batches[partition] = producer.create_batch()
                    batches[partition].append(key=key, value=value, timestamp=None)
                    progress.update(task, completed=number)
            for partition, batch in batches.items():
                await producer.send_batch(batch, self.topics.events.name, partition=partition)
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

    def start(self, name: str) -> tuple[subprocess.Popen[bytes], Topics]:
        """Start a worker or a plain loop on one partition; return it, and where its outputs go."""
        return (self.worker(), self.topics) if name == "worker" else (self.plain_loop(), self.plain_topics)

    async def measure(self, processes: list[subprocess.Popen[bytes]], topics: Topics, what: str) -> Measured:
        """Measure processes that write their progress, until they have judged every event."""
        consumer = AIOKafkaConsumer(bootstrap_servers=self.servers)
        await consumer.start()
        partitions = [TopicPartition(topics.progress.name, each) for each in range(self._partitions)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        begun: tuple[int, int, float] | None = None
        records_before = 0
        judged_of: dict[int, int] = {}
        verdicts_of: dict[int, int] = {}
        with Progress(console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=self._total)
            while True:
                for records in (await consumer.getmany(*partitions, timeout_ms=100)).values():
                    for record in records:
                        value = msgpack.unpackb(record.value)
                        judged_of[record.partition] = value["judged"]
                        verdicts_of[record.partition] = value["verdicts"]
                        total = sum(judged_of.values())
                        bar.update(task, completed=total)
                        if begun is None and total >= self._total * SKIPPED:
                            begun = (total, record.timestamp, sum(map(cpu_seconds, processes)))
                            records_before = await end(consumer, topics.changelog)
                        if begun is not None and total >= self._total:
                            judged, seconds = self._total - begun[0], (record.timestamp - begun[1]) / 1000
                            cpu = sum(map(cpu_seconds, processes)) - begun[2]
                            await asyncio.sleep(1.5)  # The last checkpoint.
                            written = await end(consumer, topics.changelog) - records_before
                            await consumer.stop()
                            verdicts = sum(verdicts_of.values())
                            return Measured(judged / seconds, cpu / judged * 1e6, written / judged, verdicts)
                for process in processes:
                    if process.poll() is not None:
                        sys.exit(f"{what}: ended with {process.returncode}")

    async def pass_over(self, workers: int) -> Measured:
        """Measure so many workers on the filled topic, all of them started and settled when it counts."""
        processes = [self.worker() for _ in range(workers)]
        measured = await self.measure(
            processes, self.topics, f"throughput: {workers} workers, {self._partitions} partitions"
        )
        for process in processes:
            stop(process)
        return measured

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
                            first, cpu = now / 1e6, cpu_seconds(process)
                        bar.update(task, completed=now / 1e6 - first)
                        if produced / 1e6 > first + WARM_SECONDS:
                            milliseconds.append((now - produced) / 1000)
        cpu = (cpu_seconds(process) - cpu) / (time.time() - (first or 0))
        await consumer.stop()
        return Latency(len(milliseconds), percentile(milliseconds, 50), percentile(milliseconds, 99), cpu)


async def apply_policy(producer: AIOKafkaProducer, topics: Topics) -> None:
    record = msgpack.packb({"schema": 1, "policy": POLICY, "by": "bench", "why": "bench", "ts": 0})
    number = (await producer.send_and_wait(topics.policies.name, record, partition=0)).offset
    digest = PolicyDocument.from_value(POLICY).digest
    event = {"type": "policy.applied", "event_id": "policy", "ts": 0, "number": number, "digest": digest}
    for partition in range(topics.events.partitions):
        await producer.send_and_wait(topics.events.name, encode_event(event), partition=partition)


async def end(consumer: AIOKafkaConsumer, topic: Topic) -> int:
    partitions = [TopicPartition(topic.name, each) for each in range(topic.partitions)]
    return sum((await consumer.end_offsets(partitions)).values())


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a process so far, its threads included."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()


def median(passes: list[Measured]) -> Measured:
    return sorted(passes, key=lambda each: each.events_per_s)[len(passes) // 2]


def of_round(measured: dict[str, Measured]) -> float:
    """The worker's rate to the plain loop's."""
    return measured["worker"].events_per_s / measured["plain loop"].events_per_s


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


async def main(console: Console, servers: str) -> dict[str, Any]:
    rounds: list[dict[str, Measured]] = []
    for number in range(ROUNDS):
        bench = Bench(servers, console, f"bench-{number}-", 1)
        await bench.fill()
        measured = {}
        # In turns, as the machine is now faster and now slower.
        for name in ("worker", "plain loop") if number % 2 else ("plain loop", "worker"):
            process, topics = bench.start(name)
            measured[name] = await bench.measure([process], topics, f"throughput: {name}")
            stop(process)
        rounds.append(measured)
        if measured["worker"].verdicts != measured["plain loop"].verdicts:
            sys.exit(f"the worker published another number of verdicts than the hand-written loop: {measured}")
    latencies = {}
    for name in ("worker", "plain loop"):
        process, topics = bench.start(name)
        latencies[name] = await bench.latency(process, topics, f"latency: {name}")
        stop(process)
    measured = {name: median([each[name] for each in rounds]) for name in ("worker", "plain loop")}
    ratio = statistics.median(map(of_round, rounds))
    worker = measured["worker"]
    eight = {}
    for workers in (1, 2):
        wide = Bench(servers, console, f"bench-wide-{workers}-", 8)
        await wide.fill()
        eight[workers] = await wide.pass_over(workers)
        if eight[workers].verdicts != worker.verdicts:
            sys.exit(f"{workers} workers on eight partitions published {eight[workers].verdicts} verdicts")
    title = f"{EVENTS:,} events of {RUNS:,} runs, one partition, median of {ROUNDS}; latency at {RATE:,} events/s"
    table = Table(title=title)
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
    table = Table(title="eight partitions")
    for column in ("", "events/s", "x one partition", "CPU us/event", "states/event"):
        table.add_column(column, justify="right" if column else "left")
    for workers, found in eight.items():
        wider = found.events_per_s / worker.events_per_s
        cells = (f"{found.events_per_s:,.0f}", f"{wider:.2f}", f"{found.cpu_us_per_event:.1f}")
        table.add_row(f"{workers} worker{'s' * (workers > 1)}", *cells, f"{found.changelog_records_per_event:.3f}")
    console.print(table)
    console.print(f"worker to plain loop, by rounds: {', '.join(f'{of_round(each):.2f}' for each in rounds)}")
    return {
        "bench": "stream",
        "partitions": {
            "1": {
                "events_per_s": round(worker.events_per_s),
                "cpu_us_per_event": round(worker.cpu_us_per_event, 2),
                "ratio_to_plain_loop": round(ratio, 3),
                "changelog_records_per_event": round(worker.changelog_records_per_event, 4),
            },
            "8": {
                f"workers_{workers}": {
                    "events_per_s": round(found.events_per_s),
                    "cpu_us_per_event": round(found.cpu_us_per_event, 2),
                    "ratio_to_one_partition": round(found.events_per_s / worker.events_per_s, 3),
                }
                for workers, found in eight.items()
            },
        },
        "latency_ms": {"p50": round(latencies["worker"].p50, 2), "p99": round(latencies["worker"].p99, 2)},
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, LocalBroker(Path(folder), port=0) as broker:
        result = asyncio.run(main(Console(stderr=True), broker.bootstrap_servers))
    print(json.dumps(result))

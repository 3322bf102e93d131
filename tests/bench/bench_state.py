"""`make bench-state`: what the states of 100,000 runs cost, and whether memory stays level while runs come and go.

Size and recovery: 100,000 states with a full default window are written to the changelog, and a worker starts: in
memory, with an empty RocksDB, and with one that has them. Level: a worker whose clock runs faster judges runs that
begin, loop and finish, for some hours of append time; their states go two hours after their end. Machines here are
shared and noisy: times are upper bounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from loopwarden.broker import LocalBroker, create_topics
from loopwarden.judge import RunState, freeze, judge
from loopwarden_schemas.codec import encode_event, event_from_value
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.topics import Topics, declared_topics, partition_for

RUNS = int(os.environ.get("BENCH_RUNS", "100000"))
HOURS = float(os.environ.get("BENCH_HOURS", "6"))
LEVEL_SECONDS = float(os.environ.get("BENCH_LEVEL_SECONDS", "90"))
CALLS_PER_RUN = 20
FLEET_EVENTS_PER_S = int(os.environ.get("BENCH_EVENTS_PER_S", "6000"))
POLICY = PolicyDocument.from_value({"tools": {"loopDetection": {"enabled": True}}})
TEMPLATES = 300
READY_S = 600
FAST_CLOCK_WORKER = Path(__file__).with_name("fast_clock_worker.py")

AIM_BYTES = 6 * 1024
AIM_SECONDS = 30.0
AIM_GROWTH = 1.1
"""The end of the hours beside their middle; until two of them are over, nothing goes."""


class Held(NamedTuple):
    """A worker that holds all runs: seconds from its start until it judges, those of them in which it computed, and its
    resident memory then (MB)."""

    seconds: float
    cpu: float
    megabytes: float


def full_window(seed: int) -> RunState:
    """A run in whose window no two calls are alike, and which has seen as many events as are remembered."""
    chance = random.Random(seed)
    state = None
    run_id = new_id(chance)
    common = {"run_id": run_id, "session_id": new_id(chance), "agent_id": "main", "ts": 0}
    for number in range(64):
        call = {"call_id": f"toolu_{chance.randbytes(12).hex()}", "tool": "read", "args": {"path": f"{seed}/{number}"}}
        for kind in ("tool_call.started", "tool_call.finished"):
            event: Any = event_from_value(
                {**common, **call, "type": kind, "event_id": new_id(chance), "result": number}
            )
            state = judge(state, event, POLICY).state
    assert state is not None
    state.offset, state.index = 0, 0
    state.newest_at = time.time_ns() // 1_000_000
    return state


def new_id(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


class Bench:
    """One broker, and workers on it."""

    def __init__(self, servers: str, console: Console) -> None:
        self.servers = servers
        self.console = console
        self.held = declared_topics("bench-held-")
        self.level = declared_topics("bench-level-")

    async def fill(self) -> float:
        """Write the states of all runs to the changelog; return the bytes there of each."""
        create_topics(self.servers, self.held)
        templates = [full_window(seed) for seed in range(TEMPLATES)]
        size = 0
        async with producer(self.servers) as producing:
            for partition in range(self.held.events.partitions):
                # What their states have seen.
                await producing.send_and_wait(self.held.events.name, started("seen", 0), partition=partition)
            batches = [producing.create_batch() for _ in range(self.held.changelog.partitions)]
            chance = random.Random(1)
            with Progress(console=self.console, transient=True) as bar:
                task = bar.add_task("writing states", total=RUNS)
                for number in range(RUNS):
                    state = templates[number % TEMPLATES]
                    state.run_id = new_id(chance)
                    key, value = state.run_id.encode(), freeze(state)
                    partition = partition_for(key, len(batches))
                    if batches[partition].append(key=key, value=value, timestamp=None) is None:
                        size += batches[partition].size()
                        await producing.send_batch(batches[partition], self.held.changelog.name, partition=partition)
                        batches[partition] = producing.create_batch()
                        batches[partition].append(key=key, value=value, timestamp=None)
                        bar.update(task, completed=number)
                for partition, batch in enumerate(batches):
                    size += batch.size()
                    await producing.send_batch(batch, self.held.changelog.name, partition=partition)
        return size / RUNS

    async def recover(self, what: str, store: str, folder: Path) -> Held:
        """Start a worker, wait until it judges, look at it, and stop it."""
        began = time.monotonic()
        with worker(self.servers, self.held, store, folder, [sys.executable, "-m", "loopwarden.worker"]) as process:
            with self.console.status(f"recovery: {what}"):
                await judged(self.servers, self.held, process)
            return Held(time.monotonic() - began, cpu_seconds(process.pid), megabytes(process.pid))

    async def come_and_go(self, store: str, folder: Path) -> list[tuple[float, float, int]]:
        """Let runs come and go; return hours passed, memory (MB) and runs so far, all along."""
        create_topics(self.servers, self.level)
        factor = HOURS * 3600 / LEVEL_SECONDS
        found = []
        with worker(
            self.servers, self.level, store, folder, [sys.executable, str(FAST_CLOCK_WORKER), str(factor)]
        ) as process:
            await judged(self.servers, self.level, process)
            began = time.monotonic()
            with Progress(console=self.console, transient=True) as bar:
                task = bar.add_task("runs come and go", total=LEVEL_SECONDS)
                async with producer(self.servers) as producing:
                    for finished, (due, run_id, record) in enumerate(fleet()):
                        passed = time.monotonic() - began
                        while passed < due:
                            bar.update(task, completed=passed)
                            await asyncio.sleep(min(0.1, due - passed))
                            passed = time.monotonic() - began
                        partition = partition_for(run_id, self.level.events.partitions)
                        await producing.send(self.level.events.name, record, key=run_id.encode(), partition=partition)
                        if passed >= len(found) * LEVEL_SECONDS / 30:
                            found.append((passed * factor / 3600, megabytes(process.pid), finished))
                        if passed > LEVEL_SECONDS:
                            break
                        if process.poll() is not None:
                            sys.exit(f"the worker ended with {process.returncode}")
        return found


def fleet() -> Iterator[tuple[float, str, bytes]]:
    """Runs that follow each other: when each is due (s), its id, and its whole life in one record."""
    chance = random.Random(2)
    events_per_run = 2 * CALLS_PER_RUN + 2
    for number in range(10**9):
        run_id = new_id(chance)
        events: list[dict[str, Any]] = [{"type": "run.started", "agent_id": "main"}]
        for call in range(CALLS_PER_RUN):
            fields = {"call_id": f"toolu_{chance.randbytes(12).hex()}", "tool": "read", "args": {"path": call // 12}}
            events.append({"type": "tool_call.started", **fields})
            events.append({"type": "tool_call.finished", **fields, "result": "the same"})
        events.append({"type": "run.finished"})
        for event in events:
            event |= {"run_id": run_id, "event_id": new_id(chance), "ts": 0}
        yield number * events_per_run / FLEET_EVENTS_PER_S, run_id, encode_event(events)


def started(run_id: str, number: int) -> bytes:
    event = {"type": "run.started", "event_id": f"{run_id}-{number}", "ts": 0, "run_id": run_id}
    return encode_event(event)


@contextlib.asynccontextmanager
async def producer(servers: str) -> Any:
    producing = AIOKafkaProducer(bootstrap_servers=servers, max_batch_size=256 * 1024, linger_ms=5, acks=1)
    await producing.start()
    try:
        yield producing
    finally:
        await producing.stop()


@contextlib.contextmanager
def worker(
    servers: str, topics: Topics, store: str, folder: Path, command: list[str]
) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "LOOPWARDEN_BOOTSTRAP_SERVERS": servers,
        "LOOPWARDEN_TOPIC_PREFIX": topics.prefix,
        "LOOPWARDEN_DATA_DIR": str(folder),
        "LOOPWARDEN_STORE": store,
    }
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stderr=log, stdout=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def judged(servers: str, topics: Topics, process: subprocess.Popen[bytes]) -> None:
    """Wait until the worker has told of a new event in every partition that it is judged."""
    async with producer(servers) as producing:
        wanted = {}
        for partition in range(topics.events.partitions):
            sent = await producing.send_and_wait(topics.events.name, started("new", partition), partition=partition)
            wanted[TopicPartition(topics.progress.name, partition)] = sent.offset + 1
    consumer = AIOKafkaConsumer(bootstrap_servers=servers)
    await consumer.start()
    try:
        consumer.assign(list(wanted))
        await consumer.seek_to_beginning()
        deadline = time.monotonic() + READY_S
        while wanted:
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the worker did not get ready: {process.poll()}")
            for tp, records in (await consumer.getmany(timeout_ms=50)).items():
                if max(msgpack.unpackb(record.value)["judged"] for record in records) >= wanted.get(tp, 0):
                    wanted.pop(tp, None)
    finally:
        await consumer.stop()


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process so far, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def megabytes(pid: int) -> float:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {pid} is gone")


async def main(console: Console, servers: str, folder: Path) -> dict[str, Any]:
    bench = Bench(servers, console)
    size = await bench.fill()
    folders = {name: folder / name for name in ("memory", "rocksdb", "level")}
    for each in folders.values():
        each.mkdir()
    held = {
        "memory": await bench.recover("in memory", "memory://", folders["memory"]),
        "rocksdb, empty": await bench.recover("into an empty RocksDB", "rocksdb://", folders["rocksdb"]),
        "rocksdb, kept": await bench.recover("from RocksDB", "rocksdb://", folders["rocksdb"]),
    }
    console.print(f"{RUNS:,} runs with a full default window: {size:,.0f} bytes of state each on the changelog")
    table = Table()
    for column in ("store", "recovery s", "CPU s", "worker MB"):
        table.add_column(column, justify="left" if column == "store" else "right")
    for name, each in held.items():
        table.add_row(name, f"{each.seconds:.1f}", f"{each.cpu:.1f}", f"{each.megabytes:,.0f}")
    console.print(table)
    level = await bench.come_and_go("memory://", folders["level"])
    console.print(f"{HOURS:g} hours of append time in {LEVEL_SECONDS:g} s: runs that come and go, in memory")
    table = Table()
    for column in ("", "hour", "runs so far", "worker MB"):
        table.add_column(column, justify="right" if column else "left")
    shown = {"start": level[0], "middle": level[len(level) // 2], "end": level[-1]}
    for name, (hour, memory, runs) in shown.items():
        table.add_row(name, f"{hour:.1f}", f"{runs:,.0f}", f"{memory:,.0f}")
    console.print(table)
    recovery = max(held["memory"].seconds, held["rocksdb, empty"].seconds)
    growth = shown["end"][1] / shown["middle"][1]
    aims = {"state_bytes": size < AIM_BYTES, "recovery": recovery < AIM_SECONDS, "level": growth < AIM_GROWTH}
    for name, reached in aims.items():
        if not reached:
            console.print(f"not reached: {name}")
    return {
        "bench": "state",
        "runs": RUNS,
        "state_bytes": round(size),
        "recovery_s": {name: round(each.seconds, 1) for name, each in held.items()},
        "recovery_cpu_s": {name: round(each.cpu, 1) for name, each in held.items()},
        "worker_mb": {name: round(each.megabytes) for name, each in held.items()},
        "level_mb": {name: round(memory) for name, (_, memory, _) in shown.items()},
        "level_hours": HOURS,
        "level_runs": level[-1][2],
        "aims_reached": aims,
    }


if __name__ == "__main__":
    # It says much while topics are new.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder, LocalBroker(Path(folder) / "broker", port=0) as broker:
        result = asyncio.run(main(Console(stderr=True), broker.bootstrap_servers, Path(folder)))
    print(json.dumps(result))

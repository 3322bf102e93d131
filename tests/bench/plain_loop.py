"""The same job as the worker's, written by hand around aiokafka: what Faust costs is measured against it.

Decode, judge, verdicts as whole batches, changed states to a changelog once a second, offsets committed after that,
progress after each poll. It has no recovery, no dead letters, no policies in the log and no protection against zombies.

    python tests/bench/plain_loop.py SERVERS EVENTS_TOPIC OUTPUT_PREFIX POLICY_JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import msgpack
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from loopwarden.judge import RunState, freeze, judge
from loopwarden_schemas.codec import decode_record, encode_verdict
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import PolicyApplied, Rejected
from loopwarden_schemas.topics import declared_topics


class Batches:
    """Records for one partition, built into batches."""

    def __init__(self, producer: AIOKafkaProducer, topic: str) -> None:
        self.producer, self.topic = producer, topic
        self.batches: list[Any] = []

    def append(self, key: bytes, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        if not self.batches or not self.batches[-1].append(timestamp=None, key=key, value=value, headers=headers):
            self.batches.append(self.producer.create_batch())
            self.batches[-1].append(timestamp=None, key=key, value=value, headers=headers)

    async def send(self) -> list[Any]:
        batches, self.batches = self.batches, []
        return [await self.producer.send_batch(batch, self.topic, partition=0) for batch in batches]


async def run(servers: str, topic: str, prefix: str, policy: PolicyDocument) -> None:
    partition, outputs = TopicPartition(topic, 0), declared_topics(prefix, partitions=1)
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=outputs.app_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=10_000,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=servers, acks="all", enable_idempotence=True, max_batch_size=256 * 1024
    )
    await consumer.start()
    await producer.start()
    verdicts, changelog = Batches(producer, outputs.verdicts.name), Batches(producer, outputs.changelog.name)
    states: dict[bytes, RunState] = {}
    changed: dict[bytes, RunState] = {}
    checkpoint_at, published = time.monotonic() + 1, 0
    while True:
        for records in (await consumer.getmany(timeout_ms=200)).values():
            for record in records:
                for index, event in enumerate(decode_record(record.value, record.timestamp, "application/msgpack")):
                    if isinstance(event, Rejected | PolicyApplied):
                        continue
                    key = record.key
                    state, _, found = judge(states.get(key), event, policy)
                    state.offset, state.index = record.offset, index
                    states[key] = changed[key] = state
                    if found:
                        headers = [
                            ("content-type", b"application/msgpack"),
                            ("cause-partition", b"0"),
                            ("cause-offset", b"%d" % record.offset),
                            ("cause-append-time", b"%d" % record.timestamp),
                        ]
                        for verdict in found:
                            verdicts.append(key, encode_verdict(verdict), headers)
                            published += 1
            await asyncio.gather(*await verdicts.send())
            progress = msgpack.packb({"judged": records[-1].offset + 1, "verdicts": published})
            await producer.send_and_wait(outputs.progress.name, progress, key=b"0", partition=0)
        if time.monotonic() > checkpoint_at:
            checkpoint_at = time.monotonic() + 1
            position = await consumer.position(partition) if changed else None
            for key, state in changed.items():
                changelog.append(key, freeze(state), [])
            changed = {}
            await asyncio.gather(*await changelog.send())
            if position is not None:
                await consumer.commit({partition: position})


if __name__ == "__main__":
    servers, topic, prefix, policy = sys.argv[1:]
    asyncio.run(run(servers, topic, prefix, PolicyDocument.from_value(json.loads(policy))))

"""Produce the workload at a steady rate, in a process of its own so that measuring does not wait for producing.

The `ts` of each event is when it was produced, in microseconds; its verdicts carry it on.

    python tests/bench/produce_at_rate.py SERVERS EVENTS_TOPIC EVENTS_PER_SECOND EVENTS TAG
"""

from __future__ import annotations

import asyncio
import sys
import time

from aiokafka import AIOKafkaProducer
from workload import events

from loopwarden_schemas.codec import encode_event


async def run(servers: str, topic: str, rate: int, total: int, tag: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks=1)
    await producer.start()
    prepared = list(events(total, tag))
    begun = time.perf_counter()
    for number, event in enumerate(prepared):
        ahead = begun + number / rate - time.perf_counter()
        if ahead > 0:
            await asyncio.sleep(ahead)
        event["ts"] = time.time_ns() // 1000
        await producer.send(topic, encode_event(event), key=event["run_id"].encode(), partition=0)
    await producer.stop()


if __name__ == "__main__":
    servers, topic, rate, total, tag = sys.argv[1:]
    asyncio.run(run(servers, topic, int(rate), int(total), tag))

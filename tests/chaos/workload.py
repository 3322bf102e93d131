"""What the agents of a fleet publish, and how badly it arrives: an endless log of mixed loops, the same for a seed.

Many runs at once. Half of them are the random histories of the vectors, half are made here, of loops and what breaks
them. Some deliveries come twice, some late, some as lists; a few are no events at all, or come under a wrong key.
"""

from __future__ import annotations

import gzip
import heapq
import itertools
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import orjson

from loopwarden_schemas.codec import encode_event

HISTORIES: Final = Path(__file__).parents[1] / "vectors" / "random-histories.jsonl.gz"

LIVE_RUNS: Final = 300
_TWICE, _LATE, _JSON, _POISON = 0.04, 0.04, 0.2, 0.01
_LATEST: Final = 400
"""A late or repeated delivery comes at most so many deliveries after its place."""

Event = dict[str, Any]


class Delivery(NamedTuple):
    """One record for `agent-events`."""

    key: bytes
    value: bytes


def deliveries(seed: int) -> Iterator[Delivery]:
    """Return the records of a fleet, without end."""
    random = Random(seed)
    names = (f"run-{seed}-{number}" for number in itertools.count())
    live = [_run(next(names), random) for _ in range(LIVE_RUNS)]
    tickets = itertools.count()
    waiting: list[tuple[int, int, Delivery]] = []
    for now in itertools.count():
        while waiting and waiting[0][0] <= now:
            yield heapq.heappop(waiting)[2]
        place = random.randrange(LIVE_RUNS)
        events = list(itertools.islice(live[place], random.choice((1, 1, 1, 2, 3, 20))))
        if not events:
            live[place] = _run(next(names), random)
            continue
        for delivery in _records(events, random):
            chance = random.random()
            if chance < _TWICE + _LATE:
                heapq.heappush(waiting, (now + random.randint(1, _LATEST), next(tickets), delivery))
            if chance >= _LATE:
                yield delivery


def _records(events: list[Event], random: Random) -> Iterator[Delivery]:
    encode: Callable[[Any], bytes] = orjson.dumps if random.random() < _JSON else encode_event
    key = events[0]["run_id"].encode()
    if random.random() < _POISON:
        poison = {"schema": 1, "type": "tool_call.started", "run_id": events[0]["run_id"]}
        yield random.choice(
            (
                Delivery(key, random.randbytes(20)),
                Delivery(key, encode_event(poison)),
                Delivery(key, encode_event([*events, poison, {**events[0], "type": "unheard of"}])),
                Delivery(b"somebody-else", encode_event(events[0])),
            )
        )
    if len(events) > 1 and random.random() < 0.5:
        yield Delivery(key, encode(events))
    else:
        yield from (Delivery(key, encode(event)) for event in events)


def _run(run_id: str, random: Random) -> Iterator[Event]:
    """The events of one run, as its gateway publishes them."""
    policy, script = _history(random) if random.random() < 0.5 else _loops(random)
    events = itertools.chain([{"type": "run.started", "agent_id": "chaos", "policy": policy}], script)
    for number, event in enumerate(events):
        yield {"schema": 1, "ts": number, **event, "run_id": run_id, "event_id": f"{run_id}/{number}"}


@cache
def _histories() -> list[tuple[Event, list[Event]]]:
    with gzip.open(HISTORIES, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    return [(case["config"], case["events"]) for case in cases]


def _history(random: Random) -> tuple[Event, list[Event]]:
    return random.choice(_histories())


def _loops(random: Random) -> tuple[Event, Iterator[Event]]:
    warning = random.randint(1, 6)
    policy = {
        "enabled": True,
        "warningThreshold": warning,
        "criticalThreshold": warning + random.randint(1, 6),
        "globalCircuitBreakerThreshold": random.choice((8, 15, 30)),
        "unknownToolThreshold": random.randint(2, 5),
    }
    return policy, _script(Random(random.random()))


def _script(random: Random) -> Iterator[Event]:
    """Loops of one run, broken off by progress; in the end it finishes, or is left lying."""
    for number in range(random.randint(2, 8)):
        yield from random.choice(_LOOPS)(random, f"c{number}")
        if random.random() < 0.15:
            yield {"type": "compaction", "trigger": random.choice(("overflow", "manual")), "succeeded": True}
        if random.random() < 0.05:
            yield {"type": "operator.override", "action": random.choice(("allow", "release")), "by": "ada"}
    if random.random() < 0.7:
        yield {"type": "run.finished", "reason": "done"}


def _repeat(random: Random, name: str) -> Iterator[Event]:
    call = {"tool": random.choice(("read", "exec", "browser")), "args": {"path": f"/{random.randint(0, 2)}"}}
    for number in range(random.randint(2, 16)):
        yield from _call(f"{name}-{number}", call, {"result": "the same"})


def _poll(random: Random, name: str) -> Iterator[Event]:
    call = {"tool": "process", "args": {"action": "poll", "sessionId": "s"}}
    waiting = {"details": {"status": "running", "aggregated": ""}, "content": []}
    for number in range(random.randint(2, 16)):
        yield from _call(f"{name}-{number}", call, {"result": waiting})


def _alternate(random: Random, name: str) -> Iterator[Event]:
    for number in range(random.randint(4, 20)):
        yield from _call(f"{name}-{number}", {"tool": "list", "args": {"side": number % 2}}, {"result": number % 2})


def _unknown(random: Random, name: str) -> Iterator[Event]:
    for number in range(random.randint(2, 8)):
        yield from _call(f"{name}-{number}", {"tool": "nope", "args": {}}, {"error": "unknown tool: nope"})


def _progress(random: Random, name: str) -> Iterator[Event]:
    for number in range(random.randint(1, 5)):
        result = {"result": random.random()}
        yield from _call(f"{name}-{number}", {"tool": "write", "args": {"line": random.random()}}, result)


def _call(call_id: str, call: Event, outcome: Event) -> Iterator[Event]:
    yield {"type": "tool_call.started", "call_id": call_id, **call}
    yield {"type": "tool_call.finished", "call_id": call_id, **call, **outcome}


_LOOPS: Final = (_repeat, _poll, _alternate, _unknown, _progress, _progress)

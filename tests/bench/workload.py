"""1,000 runs for the stream benchmark: real agent runs where they are on this machine, and random histories.

Every run begins again with a `run.started` whenever its events are used up, so that all events are judged.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HISTORIES = Path(__file__).resolve().parents[1] / "vectors" / "random-histories.jsonl.gz"
TRACES = Path("/work/shared/traces")

RUNS = 1_000
_REAL_RUNS = 600

Event = dict[str, Any]


def _histories() -> list[list[Event]]:
    with gzip.open(HISTORIES, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["events"] for line in lines]


def _traces() -> list[list[Event]]:
    """The longest real runs: they are what a fleet's partition is mostly full of."""
    runs = []
    for file in sorted(TRACES.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            runs += [json.loads(line)["events"] for line in lines]
    runs.sort(key=len, reverse=True)
    return [[event for number, call in enumerate(run) for event in _call(number, call)] for run in runs[:_REAL_RUNS]]


def _call(number: int, call: dict[str, Any]) -> Iterator[Event]:
    common = {"call_id": f"c{number}", "tool": call["tool"], "args": call["args"]}
    yield {"type": "tool_call.started", **common}
    yield {"type": "tool_call.finished", **common, "error" if call["error"] else "result": call["result"]}


def events(total: int, tag: str) -> Iterator[Event]:
    """So many wire events of 1,000 runs, all runs at once; `tag` keeps the run ids of two calls apart."""
    traces = _traces()
    histories = _histories()
    scripts = traces + [histories[number % len(histories)] for number in range(RUNS - len(traces))]
    random.Random(1).shuffle(scripts)
    generators = [_for_ever(f"{tag}-{number}", script) for number, script in enumerate(scripts)]
    made = 0
    while True:
        for generator in generators:
            if made == total:
                return
            yield next(generator)
            made += 1


def _for_ever(run_id: str, script: list[Event]) -> Iterator[Event]:
    number = 0
    while True:
        round_ = number
        common = {"schema": 1, "run_id": run_id, "agent_id": "bench", "ts": number}
        yield {**common, "type": "run.started", "event_id": f"{run_id}-{number}"}
        for event in script:
            number += 1
            event = {**event, **common, "event_id": f"{run_id}-{number}", "ts": number}
            if "call_id" in event:
                event["call_id"] = f"{event['call_id']}-{round_}"
            yield event
        number += 1

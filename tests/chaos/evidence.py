"""What a failure leaves behind, so that it can be looked into when everything has ended."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from loopwarden.client import ClusterError, Record, following
from loopwarden_schemas.codec import decode_record
from loopwarden_schemas.structs import Rejected

from .scene import Scene

_MOST_RUNS: Final = 10


def keep_evidence(folder: Path, scene: Scene, error: Exception) -> None:
    """Write the error, and all records of the runs that it names, topic by topic, as JSON lines.

    `events-RUN.jsonl` is as `loopwarden judge` reads it; `ts` is the append time there.
    """
    folder.mkdir()
    (folder / "error.txt").write_text(f"{error}\n")
    runs = sorted(getattr(error, "runs", ()))[:_MOST_RUNS]
    if not runs:
        return
    with contextlib.suppress(ClusterError):
        for topic in (scene.topics.events, scene.topics.verdicts, scene.topics.changelog):
            _keep(folder, scene, topic.name, {run.encode(): run for run in runs})


def _keep(folder: Path, scene: Scene, topic: str, runs: dict[bytes, str]) -> None:
    with following(scene.connection, topic) as follower:
        begin, ends = follower.beginnings(), follower.ends()
        for polled in follower.read({partition: (begin[partition], end) for partition, end in ends.items()}):
            for record in polled:
                if record.key not in runs:
                    continue
                kind = "events" if topic == scene.topics.events.name else topic
                with (folder / f"{kind}-{runs[record.key]}.jsonl").open("a") as file:
                    file.writelines(json.dumps(line) + "\n" for line in _lines(record, of_events=kind == "events"))


def _lines(record: Record, *, of_events: bool) -> Iterator[dict[str, Any]]:
    if of_events:
        for event in decode_record(record.value, record.timestamp, record.content_type):
            if not isinstance(event, Rejected):
                yield {**msgspec.to_builtins(event), "ts": record.timestamp}
        return
    headers = {name: text.decode(errors="replace") for name, text in record.headers}
    value = None if record.value is None else msgspec.to_builtins(msgspec.msgpack.decode(record.value))
    yield {"partition": record.partition, "offset": record.offset, "headers": headers, "value": value}

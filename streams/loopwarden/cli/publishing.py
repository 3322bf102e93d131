"""What `loopwarden publish` does: a file's events, checked, into `agent-events`."""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress

from loopwarden.cli.reading import Reading, reading_of
from loopwarden.cli.terminal import plural, say
from loopwarden.client import Connection, EventProducer, event_producer
from loopwarden_schemas.structs import PolicyApplied


def publish_file(file: str, connection: Connection, rate: float | None, verbose: bool, follow: bool = False) -> int:
    """Publish a file and tell the counts; return the exit code. `rate` is in events a second.

    Raises:
        InputError: the file is not there, or has a format that cannot be read.
        ClusterError: the broker is not there, or did not acknowledge an event.
    """
    runs: set[str] = set()
    with reading_of(file, verbose, follow=follow) as reading:
        try:
            with event_producer(connection) as producer, suppress(KeyboardInterrupt) if follow else nullcontext():
                _publish(reading, producer, rate, runs)
        finally:
            reading.conclude()
    topic = connection.topics().events.name
    say(
        f"{reading.name}: {plural(producer.acknowledged, 'event')} of {plural(len(runs), 'run')} published to {topic}"
        f" at {connection.bootstrap_servers}"
    )
    return 1 if reading.bad else 0


def _publish(reading: Reading, producer: EventProducer, rate: float | None, runs: set[str]) -> None:
    started = time.monotonic()
    sent = 0
    try:
        for item in reading.events():
            if isinstance(item.event, PolicyApplied):
                reading.refuse(item.line, "policy.applied: only `loopwarden policy apply` puts a policy into force")
                continue
            if rate is not None:
                time.sleep(max(0.0, started + sent / rate - time.monotonic()))
            producer.publish(item.event.run_id, item.record, f"of line {item.line}")
            runs.add(item.event.run_id)
            sent += 1
    except KeyboardInterrupt:
        producer.flush()
        say(f"{reading.name}: interrupted; {plural(producer.acknowledged, 'event')} had been published")
        raise

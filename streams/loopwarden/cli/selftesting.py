"""What `loopwarden selftest` does: a known loop in, and the verdicts that must come of it out."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from loopwarden.cli.terminal import plural, say
from loopwarden.client import Connection, Follower, Record, event_producer, following, wait_until_judged
from loopwarden.judge import RunState, judge
from loopwarden_schemas.codec import decode_verdict, encode_event, event_from_value
from loopwarden_schemas.policy import DEFAULT_DOCUMENT
from loopwarden_schemas.structs import PolicyApplied, Rejected, Verdict
from loopwarden_schemas.topics import partition_for
from loopwarden_schemas.verdicts import RULES_VERSION

_POLICY: Final = {
    "enabled": True,
    "historySize": 10,
    "warningThreshold": 2,
    "criticalThreshold": 3,
    "unknownToolThreshold": 10,
    "globalCircuitBreakerThreshold": 30,
    "detectors": {"genericRepeat": True, "knownPollNoProgress": True, "pingPong": True},
    "postCompactionGuard": {"windowSize": 3},
}
"""All of it, whatever the fleet's policy is: the verdicts must be those that are computed here."""

_TOOL: Final = "loopwarden_selftest"
_POLL_S: Final = 0.05


class _Came(NamedTuple):
    """A verdict of the run, and when it was read (`time.monotonic`)."""

    verdict: Verdict
    at: float


def send_a_loop(connection: Connection, timeout: float) -> int:
    """Send a loop and wait for its verdicts; tell what came of it and return the exit code. `timeout` is in seconds.

    Raises:
        ClusterError: the broker is not there, or did not acknowledge the loop.
    """
    run_id = f"loopwarden-selftest-{uuid.uuid4()}"
    events: list[Mapping[str, Any]] = list(loop_of(run_id))
    missing = {verdict.verdict_id: verdict for verdict in _judged_here(events)}
    with (
        following(connection, connection.topics().verdicts.name) as follower,
        event_producer(connection) as producer,
    ):
        partition = partition_for(run_id, producer.partitions)
        follower.start("now", (partition,))
        follower.poll(0)
        sent_at = time.monotonic()
        producer.publish(run_id, encode_event(events), "the loop of the selftest")
        producer.flush()
        acknowledged_at = time.monotonic()
        came = _answers(follower, run_id, set(missing), sent_at + timeout)
        offset = producer.ends[partition] - 1
    for each in came:
        missing.pop(each.verdict.verdict_id, None)
    where = f"partition {partition} of {connection.topics().events.name} at {connection.bootstrap_servers}"
    if not missing:
        block = next(each for each in came if each.verdict.action == "block")
        print(
            f"ok: the loop was blocked {_ms(block.at - sent_at)} after it was sent ({where};"
            f" the broker had it after {_ms(acknowledged_at - sent_at)})"
        )
        return 0
    say(f"no verdict on the loop within {timeout:g} s: {where}, offset {offset}" if not came else _other(came, missing))
    if not came:
        judged = wait_until_judged(connection, partition, offset, 0.5) is not None
        say(
            "a worker says that it judged it: does it publish with another prefix, or is the loop a dead letter?"
            if judged
            else "no worker has judged it: is one running (`loopwarden worker`), and how far behind is it?"
        )
    return 1


def loop_of(run_id: str) -> Iterator[dict[str, Any]]:
    """The events of a run that makes the same call until it is blocked, tries once more, and ends."""
    calls: list[dict[str, Any]] = []
    for number in range(4):
        call = {"call_id": f"c{number}", "tool": _TOOL, "args": {"again": True}}
        calls.append({"type": "tool_call.started", **call})
        calls.append({"type": "tool_call.finished", **call, "result": "the same"})
    started = {"type": "run.started", "cause": "loopwarden selftest", "policy": _POLICY}
    now = time.time_ns() // 1_000_000
    for number, event in enumerate([started, *calls[:-1], {"type": "run.finished", "reason": "selftest"}]):
        yield {"schema": 1, "event_id": f"{run_id}/{number}", "run_id": run_id, "ts": now, **event}


def _judged_here(events: Iterable[Mapping[str, Any]]) -> list[Verdict]:
    """What the judge on this machine says of the loop: ids do not depend on where a log is judged."""
    state: RunState | None = None
    verdicts: list[Verdict] = []
    for value in events:
        event = event_from_value(value)
        assert not isinstance(event, (Rejected, PolicyApplied))
        judged = judge(state, event, DEFAULT_DOCUMENT)
        state = judged.state
        verdicts += judged.verdicts
    return verdicts


def _answers(follower: Follower, run_id: str, wanted: set[str], deadline: float) -> list[_Came]:
    came: list[_Came] = []
    key = run_id.encode()
    while not wanted <= {each.verdict.verdict_id for each in came}:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        records = follower.poll(min(_POLL_S, left))
        now = time.monotonic()
        came += [_Came(verdict, now) for record in records if record.key == key and (verdict := _verdict(record))]
    return came


def _verdict(record: Record) -> Verdict | None:
    try:
        return decode_verdict(record.value or b"", record.content_type)
    except ValueError:
        # Of a newer worker, or of somebody else: it is not what must come.
        return None


def _other(came: list[_Came], missing: dict[str, Verdict]) -> str:
    others = {each.verdict.rules_version for each in came} - {RULES_VERSION}
    told = f"{plural(len(came), 'verdict')} came back, but not {plural(len(missing), 'other')} that must come"
    return f"{told}: the worker judges by rules {others.pop()}, this machine by {RULES_VERSION}" if others else told


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"

"""What `loopwarden override` does: one `operator.override` into `agent-events`, and what will come of it in words."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any, Final, NamedTuple

from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.client import Connection, Record, event_producer, following, wait_until_judged
from loopwarden_schemas.codec import decode_verdict, encode_event, event_from_value
from loopwarden_schemas.structs import Rejected, Verdict
from loopwarden_schemas.topics import partition_for

_DURATION: Final = re.compile(r"(\d{1,9})([smhd])")
_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_CLOCKS_APART_MS: Final = 2000
"""Where the broker's clock differs by more from this machine's, an allowance ends at another time than was meant."""


class Override(NamedTuple):
    """What was asked for, as the options say it."""

    action: str
    run: str
    tool: str | None
    duration: str | None
    by: str
    why: str


def decide(connection: Connection, given: Override, wait: float | None) -> int:
    """Write a decision to the log and tell what comes of it; return the exit code. `wait` is in seconds.

    Raises:
        Mistake: an option is wrong.
        ClusterError: the broker is not there, or did not acknowledge it.
    """
    now = time.time_ns() // 1_000_000
    event = _event(given, now)
    with event_producer(connection) as producer:
        partition = partition_for(given.run, producer.partitions)
        producer.publish(given.run, encode_event(event), f"the decision about run {given.run}")
        producer.flush()
    offset, appended_at = producer.ends[partition] - 1, producer.appended_at[partition]
    print(f"{_what_happens(given, event.get('until'))}; in the log as partition {partition}, offset {offset}")
    if "until" in event and abs(appended_at - now) > _CLOCKS_APART_MS:
        left = (event["until"] - appended_at) / 1000
        say(f"the broker's clock is not this machine's: by it the allowance ends in {left:,.0f} s")
    if wait is None:
        return 0
    end = wait_until_judged(connection, partition, offset, wait)
    if end is None:
        say(f"it was not judged within {wait:g} s. Is a worker running? The decision holds as soon as one judges it")
        return 1
    _tell(_verdicts_of(connection, partition, end, event["event_id"]))
    return 0


def milliseconds(duration: str, option: str = "--for") -> int:
    """Return the milliseconds of `30s`, `10m`, `2h` or `1d`; `option` is named where it is none.

    Raises:
        Mistake: it is none of these.
    """
    match = _DURATION.fullmatch(duration.strip())
    if match is None or not int(match[1]):
        raise Mistake(f"{option}: must be a time such as 30s, 10m, 2h or 1d, got {duration!r}")
    return int(match[1]) * _MS[match[2]]


def _event(given: Override, now: int) -> dict[str, Any]:
    for option, text in (("--run", given.run), ("--by", given.by), ("--why", given.why)):
        if not text.strip():
            raise Mistake(f"{option}: must not be empty")
    for option, value in (("--tool", given.tool), ("--for", given.duration)):
        if value is not None and given.action != "allow":
            raise Mistake(f"{option}: belongs to allow alone, {given.action} is about the whole run")
    event: dict[str, Any] = {
        "schema": 1,
        "type": "operator.override",
        "event_id": str(uuid.uuid4()),
        "run_id": given.run,
        "ts": now,
        "action": given.action,
        "by": given.by,
        "why": given.why,
    }
    if given.tool is not None:
        event["tool"] = given.tool
    if given.duration is not None:
        event["until"] = now + milliseconds(given.duration)
    checked = event_from_value(event)
    if isinstance(checked, Rejected):
        raise Mistake(f"this would be no event: {checked.detail}")
    return event


def _what_happens(given: Override, until: int | None) -> str:
    run = f"run {printable(given.run)}"
    if given.action == "abort":
        return f"{run}: it is ended; its runner is told to stop it, and nothing more of it is judged for an hour"
    if given.action == "release":
        return f"{run}: its counted calls are forgotten, its blocks end, and if it was aborted it may go on"
    calls = "no call" if given.tool is None else f"no call of {printable(given.tool)}"
    clock = "the run ends" if until is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(until / 1000))
    return f"{run}: {calls} is blocked until {clock}"


def _verdicts_of(connection: Connection, partition: int, end: int, event_id: str) -> list[Verdict]:
    """The verdicts that the event caused; they are among the newest of the partition."""
    found: dict[str, Verdict] = {}
    with following(connection, connection.topics().verdicts.name) as follower:
        beginning = follower.beginnings()[partition]
        for records in follower.read({partition: (max(beginning, end - _VERDICTS_READ), end)}):
            for verdict in filter(None, map(_verdict, records)):
                if verdict.event_id == event_id:
                    found[verdict.verdict_id] = verdict
    return list(found.values())


_VERDICTS_READ: Final = 2000
"""How far back the verdicts of a decision are looked for: what comes between it and the progress is one batch."""


def _verdict(record: Record) -> Verdict | None:
    try:
        return decode_verdict(record.value or b"", record.content_type)
    except ValueError:
        return None


def _tell(verdicts: list[Verdict]) -> None:
    if not verdicts:
        print("judged: nothing stood in its way, no verdict was published")
        return
    print(f"judged: {plural(len(verdicts), 'verdict')}")
    for verdict in verdicts:
        print(f"  {verdict.action}  {verdict.reason}  {printable(verdict.message)}")

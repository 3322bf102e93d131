"""What `loopwarden history` does: one run's part of `agent-events` and `loop-verdicts`, put together."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
import orjson
import typer

from loopwarden.cli.log_parts import number_in_header
from loopwarden.cli.scanning import scanning_bar
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.client import Connection, Record, following
from loopwarden.report.following_through import Followed, FollowingThrough
from loopwarden_schemas.codec import decode_record, decode_verdict, verdict_json
from loopwarden_schemas.structs import (
    TOOL_CALL_EVENTS,
    Compaction,
    EventOfRun,
    OperatorOverride,
    PolicyApplied,
    Rejected,
    RunFinished,
    RunStarted,
    ToolCallBlocked,
    ToolCallFinished,
    Verdict,
)
from loopwarden_schemas.topics import partition_for

_PAYLOADS: Final = ("args", "result", "error")
"""What a call asked and was answered is none of a history's business."""

_NO_EVENT: Final = 1 << 30
"""Stands for the index of an event that its record does not hold any more: behind all others."""


class Happened(NamedTuple):
    """One event of the run, or one verdict below the event that caused it."""

    offset: int
    append_time: int
    what: EventOfRun | Followed

    @property
    def is_plain_call(self) -> bool:
        """Whether it is a call that nobody refused."""
        return isinstance(self.what, TOOL_CALL_EVENTS) and not isinstance(self.what, ToolCallBlocked)


def show_history(connection: Connection, run_id: str, calls: bool, as_json: bool) -> int:
    """Print a run's history; return the exit code. `calls`: every call, too.

    Raises:
        ClusterError: the broker or a topic is not there.
    """
    topics = connection.topics()
    with scanning_bar(f"Reading run {printable(run_id)}") as progress:
        events, events_whole = _records(connection, topics.events.name, run_id, progress)
        verdicts, verdicts_whole = _records(connection, topics.verdicts.name, run_id, progress)
    happened = put_together(run_id, events, verdicts)
    for entry in happened:
        if calls or not entry.is_plain_call:
            typer.echo(orjson.dumps(_as_json(entry)).decode() if as_json else _in_words(entry))
    where = f"{topics.events.name} and {topics.verdicts.name} at {connection.bootstrap_servers}"
    if not (events_whole and verdicts_whole):
        say("the oldest records of its partition are gone: what is shown may not be all of it")
    if not happened:
        say(f"run {run_id}: {where} hold nothing of it. Is the id right?")
        return 1
    of_verdicts = sum(isinstance(entry.what, Followed) for entry in happened)
    counted = f"{plural(len(happened) - of_verdicts, 'event')}, {plural(of_verdicts, 'verdict')}"
    say(f"run {run_id}: {counted} in {where}{'' if calls else ' (--calls shows every call)'}")
    return 0


def put_together(run_id: str, events: list[Record], verdicts: list[Record]) -> list[Happened]:
    """Return what happened in the order of the log: each event once, each verdict once and below its cause."""
    placed: list[tuple[tuple[int, int, int], Happened | tuple[int, Verdict]]] = []
    places: dict[tuple[int, str], tuple[int, int]] = {}
    known: set[tuple[str, type, str | None]] = set()
    for record in events:
        for index, event in enumerate(decode_record(record.value, record.timestamp, record.content_type)):
            if isinstance(event, (Rejected, PolicyApplied)) or event.run_id != run_id:
                continue
            identity = (event.event_id, type(event), event.call_id if isinstance(event, TOOL_CALL_EVENTS) else None)
            if identity in known:
                continue
            known.add(identity)
            places.setdefault((record.offset, event.event_id), (record.offset, index))
            placed.append(((record.offset, index, -1), Happened(record.offset, record.timestamp, event)))
    told: set[str] = set()
    for record in verdicts:
        verdict = _verdict(record)
        if verdict is None or verdict.run_id != run_id or verdict.verdict_id in told:
            continue
        told.add(verdict.verdict_id)
        offset = number_in_header(record, "cause-offset", -1)
        place = places.get((offset, verdict.event_id), (offset, _NO_EVENT))
        append_time = number_in_header(record, "cause-append-time", record.timestamp)
        placed.append(((*place, verdict.n), (append_time, verdict)))
    placed.sort(key=lambda each: each[0])
    through = FollowingThrough()
    happened: list[Happened] = []
    for (offset, _, _), what in placed:
        if isinstance(what, Happened):
            assert not isinstance(what.what, Followed)
            through.see_event(what.what)
            happened.append(what)
        else:
            append_time, verdict = what
            happened.append(Happened(offset, append_time, through.see_verdict(verdict)))
    return happened


def _records(
    connection: Connection, topic: str, run_id: str, progress: Callable[[int, int], None]
) -> tuple[list[Record], bool]:
    """The run's records in a topic, and whether the partition still has all that was ever in it."""
    key = run_id.encode()
    found: list[Record] = []
    with following(connection, topic) as follower:
        partition = partition_for(run_id, len(follower.partitions))
        start, end = follower.beginnings()[partition], follower.ends()[partition]
        for records in follower.read({partition: (start, end)}):
            found += [record for record in records if record.key == key]
            progress(records[-1].offset + 1 - start, end - start)
    return found, start == 0


def _verdict(record: Record) -> Verdict | None:
    try:
        return decode_verdict(record.value or b"", record.content_type)
    except ValueError as error:
        say(f"partition {record.partition} offset {record.offset} of the verdicts: {error}")
        return None


def _as_json(entry: Happened) -> dict[str, Any]:
    place = {"offset": entry.offset, "append_time": entry.append_time}
    if isinstance(entry.what, Followed):
        verdict = orjson.Fragment(verdict_json(entry.what.verdict))
        return {"kind": "verdict", **place, "verdict": verdict, "followed": entry.what.as_json()}
    event = msgspec.to_builtins(entry.what)
    told = {name: value for name, value in event.items() if value is not None and name not in _PAYLOADS}
    del told["append_time"]
    return {"kind": "event", **place, "event": told}


def _in_words(entry: Happened) -> str:
    kind, told = _of_verdict(entry.what) if isinstance(entry.what, Followed) else _of_event(entry.what)
    return f"{_clock(entry.append_time)}  {kind:<9}  {printable(told)}"


def _of_verdict(followed: Followed) -> tuple[str, str]:
    verdict = followed.verdict
    about = "the run" if verdict.scope == "run" else (verdict.tool or "-")
    about += " (every call)" if verdict.scope == "tool" else ""
    count = "" if verdict.count is None else f"  {verdict.count}/{verdict.threshold}"
    what = f"  {followed.in_words()}" if verdict.action != "clear" else ""
    return verdict.action, f"{verdict.phase:<7}  {verdict.reason:<25}  {about}{count}{what}"


def _of_event(event: EventOfRun) -> tuple[str, str]:
    if isinstance(event, OperatorOverride):
        tool = f" {event.tool}" if event.tool is not None and event.action == "allow" else ""
        until = "" if event.until is None or event.action != "allow" else f" until {_clock(event.until)}"
        return "override", f"{event.action}{tool}{until}, by {event.by or 'somebody'}: {event.why or 'no reason given'}"
    if isinstance(event, RunStarted):
        agent = "" if event.agent_id is None else f", agent {event.agent_id}"
        return "run", f"started{agent}{'' if event.cause is None else f': {event.cause}'}"
    if isinstance(event, RunFinished):
        return "run", f"finished{'' if event.reason is None else f': {event.reason}'}"
    if isinstance(event, Compaction):
        return "compacted", f"{event.trigger or 'automatic'}, {'succeeded' if event.succeeded else 'failed'}"
    call = "" if event.call_id is None else f" ({event.call_id})"
    if isinstance(event, ToolCallBlocked):
        return "refused", f"{event.tool}{call}"
    return "finished" if isinstance(event, ToolCallFinished) else "started", f"{event.tool}{call}"


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}.{rest:03d}"

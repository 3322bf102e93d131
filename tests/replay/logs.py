"""Partitions of `agent-events` as Hypothesis draws them, and what a worker would publish about them, by plain means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from loopwarden.judge import RunState, judge
from loopwarden.replay import Export, LogPart, Replay
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.codec import decode_record, encode_event
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import PolicyApplied, Rejected, Verdict
from loopwarden_schemas.topics import partition_for

from ..judge.strategies import fleets, logs  # noqa: TID252 - tests are no package that could be named


class Record(NamedTuple):
    """A record of the partition: its offset is its place in the list."""

    append_time: int
    key: bytes | None
    value: bytes


class Published(NamedTuple):
    """A verdict as the worker publishes it."""

    cause: int
    verdict: Verdict


class Log(NamedTuple):
    """A partition, the archive of policies and what the worker publishes."""

    records: list[Record]
    archive: dict[int, PolicyDocument]
    published: list[Published]

    def part(self, **more: Any) -> LogPart:
        given = {"partitions": 1, "end": len(self.records), "archive": self.archive, **more}
        return LogPart(**given)

    def fill(self, taking: Replay | Export, published: Sequence[Published] | None = None, first: int = 0) -> None:
        """Give it the log from an offset on, and what was published."""
        for offset, record in enumerate(self.records[first:], first):
            taking.take(offset, record.append_time, record.key, record.value, None)
        for cause, verdict in self.published if published is None else published:
            taking.take_recorded(verdict, cause, verdict.run_id.encode())


def log_of(records: list[Record], archive: dict[int, PolicyDocument]) -> Log:
    """A log with what judging it once, from the start, in one process gives."""
    states: dict[str, RunState] = {}
    policy, number = DEFAULT_DOCUMENT, -1
    published = []
    for offset, record in enumerate(records):
        for event in decode_record(record.value, record.append_time):
            if isinstance(event, Rejected):
                continue
            if isinstance(event, PolicyApplied):
                document = archive.get(event.number)
                if document is not None and document.digest == event.digest and event.number >= number:
                    policy, number = document, event.number
                continue
            if record.key != event.run_id.encode() or partition_for(event.run_id, 1) != 0:
                continue
            try:
                judged = judge(states.get(event.run_id), event, policy)
            except NotCanonical:
                continue
            states[event.run_id] = judged.state
            published += [Published(offset, verdict) for verdict in judged.verdicts]
    return Log(records, archive, published)


def applied(number: int, document: PolicyDocument) -> bytes:
    event = {"type": "policy.applied", "event_id": f"p{number}", "ts": 0, "number": number, "digest": document.digest}
    return encode_event(event)


@st.composite
def partitions(draw: st.DrawFn, max_runs: int = 3, max_moves: int = 5) -> Log:
    """Some runs at once, in lists of events and alone, policies applied between, and what is no event at all."""
    archive = {number: PolicyDocument.from_value(draw(fleets())) for number in range(draw(st.integers(1, 3)))}
    events: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, max_runs))):
        run = {"run_id": f"run-{number}", "ts": draw(st.integers(0, 9))}
        events += [{**event, **run, "when": event["ts"]} for event in draw(logs(max_moves))]
    events.sort(key=lambda event: event["when"])  # as a topic is in the order of its append times
    records = [Record(1000, None, applied(0, archive[0]))]
    now = 1000
    for event in events:
        now = max(now, event.pop("when"))
        what = draw(st.integers(0, 40))
        if what == 0:
            number = draw(st.sampled_from(sorted(archive)))
            records.append(Record(now, None, applied(number, archive[draw(st.sampled_from(sorted(archive)))])))
        elif what == 1:
            records.append(Record(now, b"somebody else's", encode_event(event)))
        elif what == 2:
            records.append(Record(now, event["run_id"].encode(), b"no event"))
        value = encode_event([event, {"type": "no event"}] if what == 3 else event)
        records.append(Record(now, event["run_id"].encode(), value))
    return log_of(records, archive)

"""Runs as lines of JSON that can be judged again anywhere: events, the policies they began under, recorded verdicts.

`judge` reads the events and leaves out the rest; `replay --from-file` compares. An event keeps its producer's `ts` and
says in `append_time` when the broker appended it, which is the time that counts: every field of a verdict comes out the
same. What an event carried beyond the contract is left out, as it is for the judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from loopwarden.replay.beginnings import Why
from loopwarden.replay.log_part import LogPart
from loopwarden.replay.records import Records
from loopwarden_schemas.codec import verdict_json
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import Event, EventOfRun, PolicyApplied, Verdict

_PAYLOADS: Final = frozenset(("args", "result", "error", "policy"))
"""Given as null is another thing than not given."""

_UNPLACED: Final = 1 << 62


class RunExported(msgspec.Struct, frozen=True, tag="run.exported", tag_field="type"):
    """What an export tells of a run ahead of its events.

    Attributes:
        run_id: The run.
        partition: Where it lies.
        events: How many of its events follow.
        judged_events: So many of them had been judged: the verdicts of the others were still to come.
        why: None: the run is seen from its beginning. Else why it is not: it cannot be compared.
    """

    run_id: str
    partition: int
    events: int
    judged_events: int
    why: Why | None = None


class VerdictRecorded(msgspec.Struct, frozen=True, tag="verdict.recorded", tag_field="type"):
    """A verdict as it was published, below the event that caused it.

    Attributes:
        verdict: The verdict.
        cause_offset: Of the event in `agent-events`, as the verdict's record says.
    """

    verdict: Verdict
    cause_offset: int | None = None


def recorded_of(value: Mapping[str, Any]) -> RunExported | VerdictRecorded:
    """Return what a line says beside the events.

    Raises:
        ValueError: it is neither.
    """
    try:
        return msgspec.convert(value, RunExported | VerdictRecorded)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


class _Line(NamedTuple):
    """A line in its place: by the number of the policy in force, since a file has one policy in force at a time."""

    number: int
    append_time: int
    partition: int
    offset: int
    order: int
    content: bytes


class Export:
    """Gathers runs of one partition. First it takes all records in their order, then the verdicts."""

    def __init__(self, part: LogPart) -> None:
        self._part = part
        self._records = Records(part)
        self._folder = part.folder()
        self._beginnings = part.beginnings()
        self._lines: list[_Line] = []
        self._places: dict[tuple[str, int, str], _Line] = {}
        self._events: dict[str, list[int]] = {}
        self._told: set[tuple[str, str]] = set()
        self._newest = 0

    @property
    def dead(self) -> Mapping[str, int]:
        """How often something was left out that went to the dead letters, by the reason."""
        return self._records.dead

    @property
    def verdicts(self) -> int:
        """How many recorded verdicts there are."""
        return len(self._told)

    def take(
        self, offset: int, append_time: int, key: bytes | None, value: bytes | None, content_type: str | None
    ) -> None:
        """Take the next record of the partition."""
        self._beginnings.start(append_time)
        # Leaders' clocks differ; the order of the log must stay.
        self._newest = max(self._newest, append_time)
        for event in self._records.take(key, value, append_time, content_type):
            folded = self._folder.fold(event)
            if folded.rejected is not None:
                self._records.reject(folded.rejected.reason, key)
            elif isinstance(event, PolicyApplied):
                known_from = self._part.known_from
                self._beginnings.policy_known = known_from is None or self._folder.number >= known_from
            else:
                self._add(event, offset)

    def take_recorded(self, verdict: Verdict, cause_offset: int | None, key: bytes | None = None) -> None:
        """Take a verdict that was published, and the offset of its cause as its record says. `key`: its record's."""
        if (key is not None and not self._part.wants(key)) or (verdict.run_id, verdict.verdict_id) in self._told:
            return
        self._told.add((verdict.run_id, verdict.verdict_id))
        self._beginnings.see_recorded(verdict.run_id, verdict.begun)
        place = self._places.get((verdict.run_id, -1 if cause_offset is None else cause_offset, verdict.event_id))
        number, append_time, order = self._folder.number, self._newest, verdict.n
        if place is not None:
            number, append_time, order = place.number, place.append_time, place.order + verdict.n
        offset = _UNPLACED if cause_offset is None else cause_offset
        cause = b"null" if cause_offset is None else b"%d" % cause_offset
        line = b'{"type":"verdict.recorded","cause_offset":%b,"verdict":%b}' % (cause, verdict_json(verdict))
        self._lines.append(_Line(number, append_time, self._part.partition, offset, order, line))

    def lines(self) -> list[_Line]:
        """Return the lines of its events and verdicts, to be put in order by `export_lines`."""
        return self._lines

    def runs(self) -> Iterator[RunExported]:
        """Yield what is to be told of each run."""
        for run_id, (events, judged) in self._events.items():
            why = self._beginnings.not_whole.get(run_id)
            yield RunExported(run_id, self._part.partition, events, judged, why)

    def documents(self) -> dict[int, PolicyDocument]:
        """Return the documents that its lines may name."""
        return {**(self._part.archive or {}), self._part.number: self._part.policy}

    def _add(self, event: EventOfRun, offset: int) -> None:
        self._beginnings.see(event)
        counts = self._events.setdefault(event.run_id, [0, 0])
        counts[0] += 1
        counts[1] += offset < self._part.end
        # Room for the verdicts that it causes; in a list each of its events stands alone.
        order = counts[0] << 32
        line = _Line(self._folder.number, self._newest, self._part.partition, offset, order, event_json(event))
        self._lines.append(line)
        self._places.setdefault((event.run_id, offset, event.event_id), line)


def export_lines(exports: Iterable[Export]) -> Iterator[bytes]:
    """Yield the lines of a file, without their ends."""
    all_exports = list(exports)
    for export in all_exports:
        yield from map(msgspec.json.encode, export.runs())
    documents = {number: document for export in all_exports for number, document in export.documents().items()}
    in_force = -1
    for line in sorted(line for export in all_exports for line in export.lines()):
        if line.number != in_force:
            in_force = line.number
            yield _policy_json(in_force, documents[in_force], line.append_time)
        yield line.content


def event_json(event: Event) -> bytes:
    """Return an event as a line of JSON, without the line's end."""
    fields = msgspec.to_builtins(event)
    return msgspec.json.encode({name: fields[name] for name in fields if fields[name] is not None or name in _PAYLOADS})


def _policy_json(number: int, document: PolicyDocument, append_time: int) -> bytes:
    return msgspec.json.encode(
        {
            "schema": 1,
            "type": "policy.applied",
            "event_id": f"policy-{number}",
            "ts": append_time,
            "number": number,
            "digest": document.digest,
            "policy": document.value,
        }
    )

"""What must be on the topics: the log of events, judged once from its start, in order, in one process.

By plain means: no lane, no checkpoint, no memory that runs leave and come back to.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

from loopwarden.client import Record
from loopwarden.judge import RunState, freeze, judge
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.codec import decode_record, encode_verdict
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import EventOfRun, PolicyApplied, Rejected
from loopwarden_schemas.topics import partition_for


class Expected(NamedTuple):
    """One verdict that the log asks for."""

    verdict_id: str
    run_id: str
    cause: int
    """Offset of its event."""
    value: bytes


class DeadLetter(NamedTuple):
    """One event that nobody can judge, by its place in the log."""

    partition: int
    offset: int
    element: int
    """Its index in the record's list."""
    reason: str


class Oracle:
    """Judges the log as it is read, record by record.

    Attributes:
        events: How many events were judged.
        verdicts: All that the log asks for, by partition, in its order.
        dead: All that must be dead letters.
    """

    def __init__(self, partitions: int) -> None:
        self.events = 0
        self.verdicts: dict[int, list[Expected]] = defaultdict(list)
        self.dead: list[DeadLetter] = []
        self._partition = lru_cache(maxsize=10_000)(lambda key: partition_for(key, partitions))
        self._documents: dict[int, PolicyDocument] = {}
        self._applied: dict[int, int] = {}
        self._states: dict[str, RunState] = {}

    @property
    def runs(self) -> int:
        """How many runs the log has."""
        return len(self._states)

    def knows(self, number: int, document: PolicyDocument) -> None:
        """Tell it of a document in the archive; to be done before its `policy.applied` is taken."""
        self._documents[number] = document

    def take(self, record: Record) -> None:
        """Judge the next record of a partition."""
        for index, event in enumerate(decode_record(record.value, record.timestamp, record.content_type)):
            reason = self._rejection(event, record)
            if reason is None and not isinstance(event, (Rejected, PolicyApplied)):
                reason = self._judge(event, record, index)
            if reason is not None:
                self.dead.append(DeadLetter(record.partition, record.offset, index, reason))

    def states(self) -> dict[bytes, bytes]:
        """Return the state records of all runs, by their keys, as the changelog must hold them."""
        return {run_id.encode(): freeze(state) for run_id, state in self._states.items()}

    def _rejection(self, event: EventOfRun | PolicyApplied | Rejected, record: Record) -> str | None:
        if isinstance(event, Rejected):
            return event.reason
        if isinstance(event, PolicyApplied):
            document = self._documents.get(event.number)
            in_force = self._applied.get(record.partition, -1)
            if document is None or document.digest != event.digest or event.number < in_force:
                return "unknown_policy"
            self._applied[record.partition] = event.number
            return None
        key = event.run_id.encode()
        if record.key != key or self._partition(key) != record.partition:
            return "misrouted"
        return None

    def _judge(self, event: EventOfRun, record: Record, index: int) -> str | None:
        number = self._applied.get(record.partition)
        policy = DEFAULT_DOCUMENT if number is None else self._documents[number]
        try:
            state, _, verdicts = judge(self._states.get(event.run_id), event, policy)
        except NotCanonical:
            return "invalid_payload"
        self.events += 1
        state.offset, state.index = record.offset, index
        self._states[event.run_id] = state
        self.verdicts[record.partition] += [
            Expected(verdict.verdict_id, event.run_id, record.offset, encode_verdict(verdict)) for verdict in verdicts
        ]
        return None

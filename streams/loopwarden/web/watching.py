"""The topics' records to the fleet and to the runs whose pages are open."""

from __future__ import annotations

from collections import defaultdict

from loopwarden.client import Connection, Record
from loopwarden.web.fleet import Fleet, Published
from loopwarden.web.open_runs import OpenRuns
from loopwarden.web.topic_reader import TopicReader
from loopwarden_schemas.codec import decode_record, decode_verdict
from loopwarden_schemas.structs import EventOfRun, PolicyApplied, Rejected

_AT_ONCE = 200
"""Records that are taken while nobody can ask: some milliseconds."""


class Watching:
    """Reads `agent-events` and `loop-verdicts` while it is open. The broker need not be there.

    Attributes:
        fleet: What is known.
        open_runs: The runs that someone looks at.
    """

    def __init__(self, connection: Connection, look_back_ms: int) -> None:
        self.connection = connection
        self.look_back_ms = look_back_ms
        self.fleet = Fleet()
        self.open_runs = OpenRuns(connection, self.fleet)
        topics = connection.topics()
        self._readers = (
            TopicReader(connection, topics.events.name, look_back_ms, self._take_events),
            TopicReader(connection, topics.verdicts.name, look_back_ms, self._take_verdicts),
        )

    def __enter__(self) -> Watching:
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(self, *exception: object) -> None:
        for reader in self._readers:
            reader.close()

    @property
    def trouble(self) -> str | None:
        """Why something is not read just now; None: all is well."""
        return next((reader.trouble for reader in self._readers if reader.trouble is not None), None)

    @property
    def caught_up(self) -> bool:
        """Whether everything that was there at the start has been read."""
        return all(reader.caught_up for reader in self._readers)

    def _take_events(self, records: list[Record]) -> None:
        self.open_runs.close_unused()
        for start in range(0, len(records), _AT_ONCE):
            events: defaultdict[int, list[EventOfRun]] = defaultdict(list)
            unreadable = 0
            for record in records[start : start + _AT_ONCE]:
                for event in decode_record(record.value, record.timestamp, record.content_type):
                    if isinstance(event, Rejected):
                        unreadable += 1
                    elif isinstance(event, PolicyApplied):
                        self.open_runs.take_policy(record.partition, record.offset, event)
                    elif event.run_id.encode("utf-8", "surrogatepass") != record.key:
                        unreadable += 1
                    else:
                        events[record.partition].append(event)
                        self.open_runs.take_event(record.offset, event)
            for partition, found in events.items():
                self.fleet.take_events(partition, found)
            if unreadable:
                self.fleet.take_events(0, (), unreadable)

    def _take_verdicts(self, records: list[Record]) -> None:
        for record in records:
            try:
                verdict = decode_verdict(record.value or b"", record.content_type)
            except ValueError:
                self.fleet.take_verdicts(record.partition, (), 1)
                continue
            self.fleet.take_verdicts(record.partition, [Published(record.timestamp, verdict)])
            self.open_runs.take_verdict(verdict)

"""One part of the log judged again, and compared with the verdicts that were recorded."""

from __future__ import annotations

from loopwarden.replay.comparison import Comparing, Comparison
from loopwarden.replay.exported import RunExported
from loopwarden.replay.log_part import LogPart
from loopwarden.replay.records import Records
from loopwarden_schemas.structs import Event, PolicyApplied, Verdict


class Replay:
    """Judges a part of a log again. First it takes all records, or events, in their order; then the verdicts.

    Args:
        part: What is judged.
        agent: Compare only the runs of this agent; None: all.
    """

    def __init__(self, part: LogPart, agent: str | None = None) -> None:
        self._part = part
        self._agent = agent
        self._records = Records(part)
        self._folder = part.folder()
        self._beginnings = part.beginnings()
        self._comparing = Comparing(part)
        self._agents: dict[str, str] = {}
        self._active: set[str] | None = set() if part.since else None
        """Runs with events in what is compared; None: all that is read is."""
        self._judged: dict[str, int] = {}
        """Of the exported runs: how many of their events that are still to come had been judged."""

    def take(
        self, offset: int, append_time: int, key: bytes | None, value: bytes | None, content_type: str | None
    ) -> None:
        """Take the next record of the partition."""
        self._beginnings.start(append_time)
        for event in self._records.take(key, value, append_time, content_type):
            self._fold(event, offset, key)

    def take_event(self, event: Event, offset: int) -> str | None:
        """Take the next event of a file; return why it is refused, or None. `offset`: its line."""
        self._records.events += 1
        if not isinstance(event, PolicyApplied) and event.run_id in self._judged:
            self._beginnings.came(event.run_id)
            if not self._judged[event.run_id]:
                offset = self._part.end
            else:
                self._judged[event.run_id] -= 1
        return self._fold(event, offset, b"")

    def take_exported(self, exported: RunExported) -> None:
        """Take what the file says of a run whose events follow."""
        self._judged[exported.run_id] = exported.judged_events
        self._beginnings.expect(exported.run_id, exported.events)
        if exported.why is not None:
            self._beginnings.not_whole[exported.run_id] = exported.why

    def take_recorded(self, verdict: Verdict, cause_offset: int | None, key: bytes | None = None) -> None:
        """Take a verdict that was published, and the offset of its cause as its record says. `key`: its record's."""
        if key is None or self._part.wants(key):
            self._comparing.recorded(verdict, cause_offset)

    def runs(self) -> frozenset[str]:
        """Return the runs of which something was seen: events, or verdicts."""
        return frozenset(self._beginnings.begun) | self._comparing.runs()

    def compared(self) -> Comparison:
        """Return what came of it."""
        found = self._comparing.compare(self._beginnings, self._is_wanted, self._agent)
        found.records, found.events, found.dead = self._records.read, self._records.events, self._records.dead
        return found

    def _is_wanted(self, run_id: str) -> bool:
        if self._active is not None and run_id not in self._active:
            return False
        return self._agent is None or self._agents.get(run_id) == self._agent

    def _fold(self, event: Event, offset: int, key: bytes | None) -> str | None:
        if isinstance(event, PolicyApplied) and self._part.fixed:
            return None
        folded = self._folder.fold(event)
        if folded.rejected is not None:
            self._records.reject(folded.rejected.reason, key)
            return f"{folded.rejected.reason}: {folded.rejected.detail}"
        if isinstance(event, PolicyApplied):
            known_from = self._part.known_from
            self._beginnings.policy_known = known_from is None or self._folder.number >= known_from
            return None
        self._beginnings.see(event)
        if self._agent is not None and event.agent_id is not None:
            self._agents.setdefault(event.run_id, event.agent_id)
        if self._active is not None and offset >= self._part.since:
            self._active.add(event.run_id)
        for verdict in folded.verdicts:
            self._comparing.replayed(verdict, offset)
        return None

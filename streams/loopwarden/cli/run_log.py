"""A run with what was published about it, from the cluster or from a file: what a report is drawn of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from loopwarden.cli.log_parts import Asked, parts_to_read
from loopwarden.cli.log_reading import read_events, read_verdicts
from loopwarden.cli.reading import Reading
from loopwarden.cli.scanning import scanning_bar
from loopwarden.cli.terminal import plural, printable
from loopwarden.client import Connection
from loopwarden.importers import Recorded, open_source
from loopwarden.replay import LogPart, RunExported, Why, recorded_of
from loopwarden.replay.records import Records
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import Event, EventOfRun, PolicyApplied, Verdict

_NOT_WHOLE: dict[Why, str] = {
    "truncated": "The run began before what is left of the log: its first events are missing",
    "policy_unknown": "The run began under a policy of which the log does not tell any more when it was applied:"
    " it may have been judged by another one than here",
    "other_rules": "The run has verdicts of another rules version",
    "cut_short": "The run lost events in the file, which says itself that there were more: this may not be all of it",
}


@dataclass
class RunLog:
    """What was read of a run.

    Attributes:
        events: In the order of the log, with each `policy.applied` and its document between them.
        verdicts: Those that were published; None: that is not known.
        policy: In force where the log begins.
        number: Of that policy; -1: none was applied.
        notes: What the reader of a report has to know about the log.
        bad: Lines of a file that could not be read.
    """

    events: list[Event] = field(default_factory=list)
    verdicts: list[Verdict] | None = None
    policy: PolicyDocument = DEFAULT_DOCUMENT
    number: int = -1
    notes: list[str] = field(default_factory=list)
    bad: int = 0

    def runs(self) -> list[str]:
        """The runs that it holds events of, in the order of their first ones."""
        return list(dict.fromkeys(event.run_id for event in self.events if not isinstance(event, PolicyApplied)))


def run_log_of_cluster(connection: Connection, run_id: str) -> RunLog:
    """Read a run from the topics. No group is joined, nothing is written.

    Raises:
        ClusterError: the broker or a topic is not there.
    """
    [to_read] = parts_to_read(connection, Asked((run_id,), judged_only=False))
    taking = _Taking(run_id, to_read.part)
    done = 0
    with scanning_bar(f"Reading run {printable(run_id)}") as progress:

        def advance(count: int) -> None:
            nonlocal done
            done += count
            progress(done, to_read.size)

        read_events(connection, to_read, taking, advance)
        unreadable = read_verdicts(connection, to_read, taking, advance)
    notes = taking.notes()
    if unreadable:
        notes.append(f"{plural(unreadable, 'record')} among the verdicts that are none")
    return RunLog(taking.events, taking.verdicts, to_read.part.policy, to_read.part.number, notes)


def run_log_of_file(file: str, run_id: str | None, verbose: bool) -> RunLog:
    """Read a file that `judge` can read, or one of `loopwarden export` with its published verdicts.

    Args:
        file: Its name.
        run_id: The run whose published verdicts and notes are wanted; None: those of every run.
        verbose: Tell everything that is bad or left out.

    Raises:
        InputError: the file is not there, or has a format that cannot be read.
    """
    log = RunLog()
    exported: Counter[str] = Counter()

    def take_recorded(item: Recorded) -> None:
        try:
            told = recorded_of(item.value)
        except ValueError as error:
            reading.refuse(item.line, str(error))
            return
        if log.verdicts is None:
            log.verdicts = []
        if not isinstance(told, RunExported):
            log.verdicts.append(told.verdict)
        elif run_id in (None, told.run_id):
            log.notes += _notes(told.why, told.events - told.judged_events)
            exported[told.run_id] += told.events

    with open_source(file) as source:
        reading = Reading(source, verbose, recorded=take_recorded)
        log.events = [item.event for item in reading.events()]
    reading.conclude()
    if exported - Counter(event.run_id for event in log.events if not isinstance(event, PolicyApplied)):
        log.notes += _notes("cut_short", 0)
    log.bad = reading.bad
    return log


class _Taking:
    """Takes a run's records and verdicts as they are read."""

    def __init__(self, run_id: str, part: LogPart) -> None:
        self.events: list[Event] = []
        self.verdicts: list[Verdict] = []
        self._run_id = run_id
        self._part = part
        self._records = Records(part)
        self._beginnings = part.beginnings()
        self._not_judged_yet = 0

    def take(
        self, offset: int, append_time: int, key: bytes | None, value: bytes | None, content_type: str | None
    ) -> None:
        """Take the next record of the partition."""
        self._beginnings.start(append_time)
        for event in self._records.take(key, value, append_time, content_type):
            if isinstance(event, PolicyApplied):
                self._apply(event)
            else:
                self._add(event, offset)

    def take_recorded(self, verdict: Verdict, cause_offset: int | None, key: bytes | None = None) -> None:
        """Take a verdict that was published."""
        if verdict.run_id == self._run_id and (key is None or self._part.wants(key)):
            self._beginnings.see_recorded(verdict.run_id, verdict.begun)
            self.verdicts.append(verdict)

    def notes(self) -> list[str]:
        """What is to be known about the log."""
        notes = _notes(self._beginnings.not_whole.get(self._run_id), self._not_judged_yet)
        dead = self._records.dead
        if dead:
            told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(dead.items()))
            notes.append(f"Left out as dead letters: {told}")
        return notes

    def _apply(self, event: PolicyApplied) -> None:
        document = (self._part.archive or {}).get(event.number)
        # The archive is what is trusted. (design.md, "Policy".)
        if document is None or document.digest != event.digest:
            self._records.reject("unknown_policy")
            return
        event.policy = document.value
        self.events.append(event)
        known_from = self._part.known_from
        self._beginnings.policy_known = known_from is None or event.number >= known_from

    def _add(self, event: EventOfRun, offset: int) -> None:
        self._beginnings.see(event)
        self._not_judged_yet += offset >= self._part.end
        self.events.append(event)


def _notes(why: Why | None, not_judged_yet: int) -> list[str]:
    notes = [] if why is None else [_NOT_WHOLE[why]]
    if not_judged_yet:
        notes.append(f"{plural(not_judged_yet, 'event')} had not been judged yet: their verdicts were still to come")
    return notes

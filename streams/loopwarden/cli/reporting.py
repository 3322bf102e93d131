"""What `loopwarden report` does: a run from the cluster or a file, as a page."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.policy_source import fleet_policy
from loopwarden.cli.reading import Reading, same_file
from loopwarden.cli.run_log import RunLog, read_run_log
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.client import Connection
from loopwarden.importers import open_source
from loopwarden.report import Timeline, TimelineBuilder
from loopwarden.report.as_json import to_json
from loopwarden.report.html import to_html
from loopwarden.report.markdown import to_markdown
from loopwarden_schemas.structs import Event, PolicyApplied

_FORMS: Final[dict[str, Callable[[Timeline], str]]] = {"html": to_html, "md": to_markdown, "json": to_json}
_ENDINGS: Final = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".json": "json"}
_RUNS_NAMED: Final = 10


class Wanted(NamedTuple):
    """What the user asked for.

    Attributes:
        run_id: The run; None: the only one of the file.
        output: A file; None or `-`: standard output.
        form: html, md or json; None: as `output` ends.
        policy: A file; None: the policies in force by the log.
        shown_characters: Of each payload.
    """

    run_id: str | None
    output: str | None
    form: str | None
    policy: str | None
    shown_characters: int

    def write(self, run: Timeline) -> None:
        """Write the report.

        Raises:
            Mistake: the file cannot be written.
        """
        ending = "" if self.output is None else Path(self.output).suffix.lower()
        text = _FORMS[self.form or _ENDINGS.get(ending, "html")](run)
        if self.output is None or self.output == "-":
            sys.stdout.buffer.write(text.encode())
            return
        try:
            Path(self.output).write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise Mistake(f"{self.output}: cannot be written: {error.strerror}") from None
        say(f"{self.output}: run {printable(run.run_id)}, {plural(len(run.cells), 'call')}. {run.headline}")


def report_from_cluster(connection: Connection, run_id: str, wanted: Wanted) -> int:
    """Write the report of a run as the topics have it; return the exit code.

    Raises:
        ClusterError: the broker or a topic is not there.
        PolicyError: the policy's file is not there, or has mistakes.
        Mistake: the output cannot be written.
    """
    # Before the topics are read: a mistake in the policy should not take that long to show.
    document = fleet_policy(wanted.policy)
    log = read_run_log(connection, run_id)
    if not any(not isinstance(event, PolicyApplied) for event in log.events):
        where = f"{connection.topics().events.name} at {connection.bootstrap_servers}"
        say(f"run {run_id}: {where} holds nothing of it. Is the id right?")
        return 1
    builder = TimelineBuilder(
        run_id,
        document,
        source=wanted.policy or "the defaults",
        shown_characters=wanted.shown_characters,
        notes=_notes(log),
    )
    builder.add_verdicts(log.verdicts)
    for event in _judged_by(wanted, log.events):
        builder.add(event)
    wanted.write(builder.timeline())
    return 0


def report_from_file(file: str, wanted: Wanted, verbose: bool) -> int:
    """Write the report of a run as a file has it; return the exit code.

    Raises:
        InputError: the file is not there, or has a format that cannot be read.
        PolicyError: so is, or has, the policy's.
        Mistake: the run is not in the file, or the output cannot be written.
    """
    if wanted.output is not None and same_file(file, wanted.output):
        raise Mistake(f"{wanted.output}: must not be the file that is read")
    document = fleet_policy(wanted.policy)
    with open_source(file) as source:
        reading = Reading(source, verbose)
        events = [item.event for item in reading.events()]
    reading.conclude()
    run_id = _only_run(reading.name, events) if wanted.run_id is None else wanted.run_id
    if not any(not isinstance(event, PolicyApplied) and event.run_id == run_id for event in events):
        say(f"{reading.name}: holds nothing of run {run_id}{_runs_in_words(events)}")
        return 1
    source_name = wanted.policy or "the defaults"
    builder = TimelineBuilder(run_id, document, source=source_name, shown_characters=wanted.shown_characters)
    for event in _judged_by(wanted, events):
        builder.add(event)
    wanted.write(builder.timeline())
    return 1 if reading.bad else 0


def _judged_by(wanted: Wanted, events: list[Event]) -> list[Event]:
    if wanted.policy is None:
        return events
    return [event for event in events if not isinstance(event, PolicyApplied)]


def _only_run(name: str, events: list[Event]) -> str:
    runs = _runs(events)
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise Mistake(f"{name}: must hold at least one event of a run")
    raise Mistake(f"{name}: holds {plural(len(runs), 'run')}: say with --run ID which one{_runs_in_words(events)}")


def _runs(events: list[Event]) -> list[str]:
    return list(dict.fromkeys(event.run_id for event in events if not isinstance(event, PolicyApplied)))


def _runs_in_words(events: list[Event]) -> str:
    runs = _runs(events)
    more = ", ..." if len(runs) > _RUNS_NAMED else ""
    return f"; it holds {', '.join(map(printable, runs[:_RUNS_NAMED]))}{more}" if runs else ""


def _notes(log: RunLog) -> list[str]:
    notes = []
    if not log.whole:
        notes.append("The oldest records of the run's partition are gone: this may not be all of the run")
    if log.unknown_policies:
        numbers = ", ".join(map(str, log.unknown_policies))
        notes.append(f"Policies applied in the log that the archive does not hold were passed over: {numbers}")
    return notes

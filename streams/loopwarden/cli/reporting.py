"""What `loopwarden report` does: a run from the cluster or a file, as a page."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.policy_source import fleet_policy
from loopwarden.cli.reading import same_file
from loopwarden.cli.run_log import RunLog, run_log_of_cluster, run_log_of_file
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.client import Connection
from loopwarden.report import Timeline, TimelineBuilder
from loopwarden.report.as_json import to_json
from loopwarden.report.html import to_html
from loopwarden.report.markdown import to_markdown
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import PolicyApplied

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


def report_from_cluster(connection: Connection, run_id: str, wanted: Wanted) -> int:
    """Write the report of a run as the topics have it; return the exit code.

    Raises:
        ClusterError: the broker or a topic is not there.
        PolicyError: the policy's file is not there, or has mistakes.
        Mistake: the output cannot be written.
    """
    # Before the topics are read: a mistake in the policy should not take that long to show.
    policy = _given_policy(wanted)
    log = run_log_of_cluster(connection, run_id)
    if not log.runs():
        where = f"{connection.topics().events.name} at {connection.bootstrap_servers}"
        say(f"run {run_id}: {where} holds nothing of it. Is the id right?")
        return 1
    _write(_drawn(log, run_id, policy, wanted), wanted)
    return 0


def report_from_file(file: str, wanted: Wanted, verbose: bool) -> int:
    """Write the report of a run as a file has it; return the exit code.

    Raises:
        InputError: the file is not there, or has a format that cannot be read.
        PolicyError: so is, or has, the policy's.
        Mistake: which run is not said, or the output cannot be written.
    """
    if wanted.output is not None and same_file(file, wanted.output):
        raise Mistake(f"{wanted.output}: must not be the file that is read")
    policy = _given_policy(wanted)
    log = run_log_of_file(file, wanted.run_id, verbose)
    runs = log.runs()
    if not runs:
        raise Mistake(f"{file}: must hold at least one event of a run")
    if wanted.run_id is None and len(runs) > 1:
        raise Mistake(f"{file}: holds {plural(len(runs), 'run')}: say with --run ID which one; it holds {_some(runs)}")
    if wanted.run_id is not None and wanted.run_id not in runs:
        say(f"{file}: holds nothing of run {wanted.run_id}; it holds {_some(runs)}")
        return 1
    _write(_drawn(log, wanted.run_id or runs[0], policy, wanted), wanted)
    return 1 if log.bad else 0


def _given_policy(wanted: Wanted) -> PolicyDocument | None:
    return None if wanted.policy is None else fleet_policy(wanted.policy)


def _drawn(log: RunLog, run_id: str, policy: PolicyDocument | None, wanted: Wanted) -> Timeline:
    in_force = f"policy {log.number}, in force where the log begins" if log.number >= 0 else "the defaults"
    builder = TimelineBuilder(
        run_id,
        log.policy if policy is None else policy,
        number=log.number,
        source=in_force if policy is None else f"{wanted.policy}, whatever was in force",
        shown_characters=wanted.shown_characters,
        notes=log.notes,
    )
    if log.verdicts is not None:
        builder.add_verdicts(log.verdicts)
    for event in log.events:
        if policy is None or not isinstance(event, PolicyApplied):
            builder.add(event)
    return builder.timeline()


def _write(run: Timeline, wanted: Wanted) -> None:
    ending = "" if wanted.output is None else Path(wanted.output).suffix.lower()
    text = _FORMS[wanted.form or _ENDINGS.get(ending, "html")](run)
    if wanted.output is None or wanted.output == "-":
        sys.stdout.buffer.write(text.encode())
        return
    try:
        Path(wanted.output).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise Mistake(f"{wanted.output}: cannot be written: {error.strerror}") from None
    say(f"{wanted.output}: run {printable(run.run_id)}, {plural(len(run.cells), 'call')}. {run.headline}")


def _some(runs: list[str]) -> str:
    return f"{', '.join(map(printable, runs[:_RUNS_NAMED]))}{', ...' if len(runs) > _RUNS_NAMED else ''}"

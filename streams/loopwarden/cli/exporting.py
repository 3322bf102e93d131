"""What `loopwarden export` does: runs out of the topics into a file."""

from __future__ import annotations

from collections import Counter
from typing import Final

from loopwarden.cli.importing import written
from loopwarden.cli.log_parts import Asked, parts_to_read
from loopwarden.cli.log_reading import read_events, read_verdicts
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.scanning import scanning_bar
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.client import Connection
from loopwarden.replay import WHY, Export, Why, export_lines

_NAMED: Final = 10
"""Runs that are named of those that are not whole."""


def export_runs(connection: Connection, asked: Asked, output: str | None) -> int:
    """Write the runs and tell the counts; return the exit code.

    Raises:
        ClusterError: the broker or a topic is not there.
        Mistake: the log holds nothing of a run, or the output cannot be written.
    """
    parts = parts_to_read(connection, asked)
    total, done = sum(part.size for part in parts), 0
    exports = []
    with scanning_bar("Reading the log") as progress:

        def advance(count: int) -> None:
            nonlocal done
            done += count
            progress(done, total)

        for part in parts:
            export = Export(part.part)
            read_events(connection, part, export, advance)
            read_verdicts(connection, part, export, advance)
            exports.append(export)
    runs = [run for export in exports for run in export.runs()]
    where = f"{connection.topics().events.name} at {connection.bootstrap_servers}"
    for run_id in asked.runs:
        if not any(run.run_id == run_id for run in runs):
            raise Mistake(f"run {run_id}: {where} holds nothing of it. Is the id right?")
    with written(output) as stream:
        for line in export_lines(exports):
            stream.write(line + b"\n")
    events = sum(run.events for run in runs)
    verdicts = sum(export.verdicts for export in exports)
    say(f"{plural(len(runs), 'run')}, {plural(events, 'event')}, {plural(verdicts, 'recorded verdict')} of {where}")
    dead: Counter[str] = Counter()
    for export in exports:
        dead.update(export.dead)
    if dead:
        told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(dead.items()))
        say(f"left out as dead letters: {told}")
    unjudged = sum(run.events - run.judged_events for run in runs)
    if unjudged:
        say(f"{plural(unjudged, 'event')} are not judged yet: their verdicts are still to come")
    not_whole: dict[Why, list[str]] = {}
    for run in runs:
        if run.why is not None:
            not_whole.setdefault(run.why, []).append(printable(run.run_id))
    for why, named in not_whole.items():
        more = f" and {len(named) - _NAMED:,} more (the file says it of each)" if len(named) > _NAMED else ""
        say(f"not whole: {plural(len(named), 'run')} that {WHY[why]}: {', '.join(sorted(named)[:_NAMED])}{more}")
    return 1 if not_whole else 0

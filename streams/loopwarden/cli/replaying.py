"""What `loopwarden replay` does: a part of the log, or a file, judged again and compared with what was recorded."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from loopwarden.cli.comparison_report import About, report
from loopwarden.cli.in_processes import in_processes
from loopwarden.cli.log_parts import Asked, PartToRead, parts_to_read
from loopwarden.cli.log_reading import read_events, read_verdicts
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.reading import Reading
from loopwarden.cli.scanning import scanning_bar
from loopwarden.cli.terminal import plural, printable, say
from loopwarden.client import Connection
from loopwarden.importers import Recorded, open_source
from loopwarden.replay import Comparison, LogPart, Replay, RunExported, recorded_of
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import PolicyApplied


class _Part(NamedTuple):
    """What came of one part."""

    comparison: Comparison
    unreadable: int
    runs: frozenset[str]


def replay_log(connection: Connection, asked: Asked, agent: str | None, as_json: bool) -> int:
    """Judge a part of the log again and tell how it compares; return the exit code.

    Raises:
        ClusterError: the broker or a topic is not there.
        Mistake: a run, or the agent, that was asked for is not there.
    """
    parts = parts_to_read(connection, asked)
    begun = time.monotonic()
    comparison, unreadable = Comparison(), 0
    seen: set[str] = set()
    with scanning_bar("Judging again") as progress:
        for part in in_processes(parts, partial(replay_part, connection, agent), progress):
            comparison.add(part.comparison)
            unreadable += part.unreadable
            seen |= part.runs
    topics = connection.topics()
    where = f"{topics.events.name} at {connection.bootstrap_servers}"
    _must_be_there(asked.runs, seen, where, parts)
    if unreadable:
        say(f"{topics.verdicts.name}: {plural(unreadable, 'record')} that are no verdicts were left out")
    _must_have_runs(agent, comparison, where)
    about = About(
        where,
        len(parts),
        sum(part.unjudged for part in parts),
        time.monotonic() - begun,
        asked.policy is not None,
        bool(asked.runs),
    )
    return report(comparison, about, as_json)


def replay_part(
    connection: Connection, agent: str | None, to_read: PartToRead, advance: Callable[[int], None]
) -> _Part:
    """Judge one part again; `advance` is told the records read."""
    replay = Replay(to_read.part, agent)
    read_events(connection, to_read, replay, advance)
    unreadable = read_verdicts(connection, to_read, replay, advance)
    # Runs by name are few; all runs of a topic are not sent from one process to another.
    runs = replay.runs() if to_read.part.runs is not None else frozenset[str]()
    return _Part(replay.compared(), unreadable if to_read.part.shard == 0 else 0, runs)


def _must_be_there(runs: tuple[str, ...], seen: set[str], where: str, parts: list[PartToRead]) -> None:
    absent = [run for run in runs if run not in seen]
    if absent:
        unjudged = sum(part.unjudged for part in parts)
        later = f" {plural(unjudged, 'record')} of its partition are not judged yet." if unjudged else ""
        raise Mistake(f"run {absent[0]}: {where} holds nothing of it in what was read.{later} Is the id right?")


def _must_have_runs(agent: str | None, comparison: Comparison, where: str) -> None:
    if agent is not None and not comparison.runs and not comparison.differing:
        raise Mistake(f"agent {agent}: {where} holds no run of it in what was read. Is the id right?")


def replay_file(
    file: str, runs: frozenset[str], agent: str | None, policy: PolicyDocument | None, as_json: bool
) -> int:
    """Judge a file again and tell how it compares with the verdicts in it; return the exit code.

    Raises:
        InputError: the file is not there, or has a format that cannot be read.
        Mistake: it holds no recorded verdicts, or not the runs or the agent that were asked for.
    """
    part = LogPart() if policy is None else LogPart(policy=policy, fixed=True)
    replay = Replay(part, agent)
    exported: list[RunExported] = []
    recorded = 0

    def take_recorded(item: Recorded) -> None:
        nonlocal recorded
        try:
            told = recorded_of(item.value)
        except ValueError as error:
            reading.refuse(item.line, str(error))
            return
        if isinstance(told, RunExported):
            exported.append(told)
            if not runs or told.run_id in runs:
                replay.take_exported(told)
        elif not runs or told.verdict.run_id in runs:
            recorded += 1
            replay.take_recorded(told.verdict, None)

    begun = time.monotonic()
    with open_source(file) as source:
        reading = Reading(source, recorded=take_recorded)
        for item in reading.events():
            if runs and not isinstance(item.event, PolicyApplied) and item.event.run_id not in runs:
                continue
            refused = replay.take_event(item.event, item.line)
            if refused is not None:
                reading.refuse(item.line, refused)
    reading.conclude()
    if not recorded and not exported:
        raise Mistake(
            f"{reading.name}: must hold recorded verdicts, as `loopwarden export` writes them, but holds none:"
            " nothing to compare with. `loopwarden judge` tells the verdicts of a file of events"
        )
    absent = sorted(runs - replay.runs())
    if absent:
        raise Mistake(f"run {absent[0]}: {reading.name} holds nothing of it. Is the id right?")
    comparison = replay.compared()
    _must_have_runs(agent, comparison, reading.name)
    about = About(printable(reading.name), 0, 0, time.monotonic() - begun, policy is not None, bool(runs))
    code = report(comparison, about, as_json)
    # What cannot be read may be what differs.
    return 1 if reading.bad and not code else code

"""A history, of the topics or of a file, judged under several policies: by all cores, run by run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from loopwarden.cli.in_processes import in_processes
from loopwarden.cli.legibility import must_be_text
from loopwarden.cli.log_parts import Asked, PartToRead, parts_to_read
from loopwarden.cli.log_reading import read_events
from loopwarden.cli.mistakes import Mistake
from loopwarden.cli.scanning import scanning_bar
from loopwarden.cli.terminal import plural, say
from loopwarden.client import Connection
from loopwarden.importers import STDIN, BadLine, Checked, Recorded, check, open_source
from loopwarden.importers import read_events as read_file
from loopwarden.replay import WHY, LogPart, RunExported, RunUnder, WhatIf, Why, recorded_of
from loopwarden_schemas.policy import PolicyDocument

_BYTES_OF_AN_EVENT: Final = 300
"""About. A file is read in several processes where that is worth it."""

_EVERY: Final = 1000
_NAMED: Final = 10


@dataclass(frozen=True)
class History:
    """Which history, and of it which runs.

    Attributes:
        connection: Where the topics are; None: it is a file.
        file: The file.
        asked: Which part of the topics.
        agent: Only this agent's runs.
        resolved: Reasons that count as resolved; none: their words tell.
    """

    connection: Connection | None
    file: str | None
    asked: Asked = field(default_factory=Asked)
    agent: str | None = None
    resolved: frozenset[str] = frozenset()

    def name(self) -> str:
        """Return what to call it."""
        if self.connection is None:
            return str(self.file)
        return f"{self.connection.topics().events.name} at {self.connection.bootstrap_servers}"

    def parts(self) -> list[PartToRead]:
        """Look up what there is to read.

        Raises:
            ClusterError: the broker or a topic is not there.
            InputError: the file is not there.
        """
        if self.connection is not None:
            return parts_to_read(self.connection, self.asked)
        assert self.file is not None
        if self.file == STDIN:
            raise Mistake("--from-file: must be a file: standard input can be read only once")
        with open_source(self.file) as source:
            must_be_text(source)
            size = source.size or 0
        packed = 8 if Path(self.file).suffix == ".gz" else 1
        runs = frozenset(run.encode() for run in self.asked.runs) or None
        return [PartToRead(LogPart(runs=runs), (0, packed * size // _BYTES_OF_AN_EVENT), (0, 0))]


class Judged(NamedTuple):
    """What came of one part. `bad`: lines of a file that could not be read; `dead`: what the worker would refuse."""

    runs: list[RunUnder]
    events: int
    not_whole: dict[Why, list[str]]
    bad: int
    dead: Counter[str]


class Reduced(NamedTuple):
    """What came of all parts, but for the runs themselves."""

    events: int
    not_whole: dict[Why, list[str]]
    bad: int
    dead: Counter[str]

    def tell(self, name: str) -> None:
        """Say what was left out."""
        for why, runs in self.not_whole.items():
            more = f" and {len(runs) - _NAMED:,} more" if len(runs) > _NAMED else ""
            say(f"left out: {plural(len(runs), 'run')} that {WHY[why]}: {', '.join(sorted(runs)[:_NAMED])}{more}")
        if self.bad:
            say(f"{name}: {plural(self.bad, 'bad line')} left out: `loopwarden judge` tells them")
        if self.dead:
            told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.dead.items()))
            say(f"left out as dead letters: {told}")


def under_policies(
    history: History,
    parts: Sequence[PartToRead],
    policies: Sequence[PolicyDocument | None],
    take: Callable[[list[RunUnder]], None],
    what: str,
) -> Reduced:
    """Judge a history under several policies.

    Args:
        history: Which.
        parts: Of it, as `History.parts` returns them.
        policies: None among them: those in force by the log.
        take: Gets the runs, part by part.
        what: Stands beside the bar.

    Raises:
        ClusterError: the broker or a topic is not there.
        InputError: the file is not there, or has a format that cannot be read.
        Mistake: a run that was asked for is not there.
    """
    events, bad = 0, 0
    not_whole: dict[Why, list[str]] = {}
    dead: Counter[str] = Counter()
    seen: set[str] = set()
    with scanning_bar(what) as progress:
        for part in in_processes(parts, partial(judge_part, history, tuple(policies)), progress):
            take(part.runs)
            events += part.events
            bad += part.bad
            dead += part.dead
            for why, runs in part.not_whole.items():
                not_whole.setdefault(why, []).extend(runs)
                seen.update(runs)
            if history.asked.runs:
                seen.update(run.run_id for run in part.runs)
    absent = [run for run in history.asked.runs if run not in seen]
    if absent:
        raise Mistake(f"run {absent[0]}: {history.name()} holds nothing of it in what was read. Is the id right?")
    return Reduced(events, not_whole, bad, dead)


def judge_part(
    history: History,
    policies: tuple[PolicyDocument | None, ...],
    to_read: PartToRead,
    advance: Callable[[int], None],
) -> Judged:
    """Judge one part; `advance` is told the records read."""
    what_if = WhatIf(to_read.part, policies, history.resolved)
    bad = 0
    if history.connection is not None:
        read_events(history.connection, to_read, what_if, advance)
    else:
        bad = _read_file(str(history.file), what_if, advance)
    records = what_if.records
    return Judged(
        what_if.runs(history.agent),
        records.events,
        what_if.not_whole(),
        bad if to_read.part.shard == 0 else 0,
        records.dead,
    )


def _read_file(file: str, what_if: WhatIf, advance: Callable[[int], None]) -> int:
    bad = 0
    with open_source(file) as source:
        for count, item in enumerate(check(read_file(source)), 1):
            if isinstance(item, Checked):
                what_if.take_event(item.event, item.line)
            elif isinstance(item, Recorded):
                bad += _take_recorded(item, what_if)
            elif isinstance(item, BadLine):
                bad += 1
            if count % _EVERY == 0:
                advance(_EVERY)
    return bad


def _take_recorded(item: Recorded, what_if: WhatIf) -> int:
    try:
        told = recorded_of(item.value)
    except ValueError:
        return 1
    if isinstance(told, RunExported):
        what_if.take_exported(told)
    return 0

"""What `loopwarden watch` does: records of `loop-verdicts` to lines on standard output."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import typer
from rich.cells import cell_len

from loopwarden.cli.fitting import gaps, terminal_width
from loopwarden.cli.terminal import colored, printable, say
from loopwarden.client import Connection, Follower, Record, following
from loopwarden_schemas.codec import decode_verdict, verdict_json
from loopwarden_schemas.structs import Verdict
from loopwarden_schemas.topics import partition_for

_IDS_REMEMBERED: Final = 100_000
"""More than a worker publishes again after a crash; 10 MB."""

COLORS: Final = {"warn": typer.colors.YELLOW, "block": typer.colors.RED, "abort": typer.colors.MAGENTA, "clear": None}


class Wanted(NamedTuple):
    """Which verdicts: those of a run (None: of all), with these actions (none: all)."""

    run: str | None
    actions: frozenset[str]

    def includes(self, verdict: Verdict) -> bool:
        """Whether a verdict is one of them."""
        return self.run in (None, verdict.run_id) and (not self.actions or verdict.action in self.actions)


def watch_verdicts(connection: Connection, wanted: Wanted, as_json: bool, from_beginning: bool, follow: bool) -> None:
    """Print the verdicts that are wanted, until Ctrl-C or, without `follow`, the end as it is now.

    Raises:
        ClusterError: the broker is not there, or goes away.
    """
    # Also while it connects: whoever presses Ctrl-C got what was asked for.
    with suppress(KeyboardInterrupt), following(connection, connection.topics().verdicts.name) as follower:
        _print_verdicts(follower, connection, wanted, as_json, from_beginning or not follow, follow)


def _print_verdicts(
    follower: Follower, connection: Connection, wanted: Wanted, as_json: bool, from_beginning: bool, follow: bool
) -> None:
    topic = connection.topics().verdicts.name
    seen: OrderedDict[str, None] = OrderedDict()
    batches = _records(follower, wanted.run, from_beginning, follow)
    which = "from its beginning" if from_beginning else "from now on"
    say(f"{topic} at {connection.bootstrap_servers} {which}{' (Ctrl-C ends)' if follow else ' to its end'}")
    for records in batches:
        for record in records:
            verdict = _verdict(record, topic)
            if verdict is None or verdict.verdict_id in seen or not wanted.includes(verdict):
                continue
            seen[verdict.verdict_id] = None
            if len(seen) > _IDS_REMEMBERED:
                seen.popitem(last=False)
            _show(verdict, record, as_json)
        sys.stdout.flush()


def _records(follower: Follower, run: str | None, from_beginning: bool, follow: bool) -> Iterator[list[Record]]:
    count = len(follower.partitions)
    partitions = follower.partitions if run is None else (partition_for(run, count),)
    if follow:
        follower.start("beginning" if from_beginning else "now", partitions)
        return iter(follower.poll, None)
    beginnings, ends = follower.beginnings(), follower.ends()
    return follower.read({partition: (beginnings[partition], ends[partition]) for partition in partitions})


def _verdict(record: Record, topic: str) -> Verdict | None:
    try:
        return decode_verdict(record.value or b"", record.content_type)
    except ValueError as error:
        say(f"{topic} partition {record.partition} offset {record.offset}: {error}")
        return None


def _show(verdict: Verdict, record: Record, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(verdict_json(verdict) + b"\n")
        return
    seconds, milliseconds = divmod(record.timestamp, 1000)
    clock = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}.{milliseconds:03d}"
    count = "-" if verdict.count is None else f"{verdict.count}/{verdict.threshold}"
    parts = [
        clock,
        f"{verdict.action:<5}",
        f"{verdict.phase:<7}",
        f"{verdict.reason:<25}",
        printable(verdict.run_id),
        printable(verdict.tool or "-"),
        count,
        f"obeyed {verdict.obeyed}, disobeyed {verdict.disobeyed}",
        printable(verdict.message),
    ]
    before = list(gaps([cell_len(part) for part in parts], terminal_width()))
    parts[1] = colored(parts[1], COLORS[verdict.action])
    typer.echo("".join(gap + part for gap, part in zip(before, parts, strict=True)))

"""What `loopwarden watch` does: records of `loop-verdicts` to lines on standard output."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple

import typer

from loopwarden.cli.terminal import printable, say
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
    topic = connection.topics().verdicts.name
    from_beginning = from_beginning or not follow
    with following(connection, topic) as follower:
        seen: OrderedDict[str, None] = OrderedDict()
        try:
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
        except KeyboardInterrupt:
            return


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
    action = typer.style(f"{verdict.action:<5}", fg=COLORS[verdict.action])
    typer.echo(
        f"{clock}  {action}  {verdict.phase:<7}  {verdict.reason:<25}  {printable(verdict.run_id)}"
        f"  {printable(verdict.tool or '-')}  {count}"
        f"  obeyed {verdict.obeyed}, disobeyed {verdict.disobeyed}  {printable(verdict.message)}"
    )

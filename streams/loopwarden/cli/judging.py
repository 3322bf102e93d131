"""What `loopwarden judge` does: a file through the judge, and what is asked for of it on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from loopwarden.cli.fitting import terminal_width
from loopwarden.cli.policy_source import fleet_policy
from loopwarden.cli.reading import Reading
from loopwarden.cli.summary import Summary
from loopwarden.cli.terminal import say
from loopwarden.cli.verdict_rows import header, row
from loopwarden.importers import open_source
from loopwarden.replay import Folded, Folder
from loopwarden_schemas.codec import verdict_json

Shown: TypeAlias = Literal["table", "verdicts", "decisions"]


def judge_file(file: str, policy: str | None, agent: str | None, shown: Shown, verbose: bool) -> int:
    """Judge a file and print what is to be shown of it; return the exit code.

    Raises:
        InputError: the file is not there, or has a format that cannot be read.
        PolicyError: so is, or has, the policy's.
    """
    folder = Folder(fleet_policy(policy), agent)
    summary = Summary()
    width = terminal_width()
    with open_source(file) as source:
        reading = Reading(source, verbose)
        rows = 0
        for item in reading.events():
            folded = folder.fold(item.event)
            summary.add(folded)
            if folded.rejected is not None:
                reading.refuse(item.line, f"{folded.rejected.reason}: {folded.rejected.detail}")
            if folded.armed and verbose:
                reading.tell(f"post-compaction guard armed for {folded.armed} attempts")
            for line in _lines(folded, shown, width):
                if shown == "table" and not rows:
                    reading.write(header(width).encode())
                rows += 1
                reading.write(line)
    sys.stdout.flush()
    reading.conclude()
    if reading.found_nothing:
        say(f"{reading.name}: is empty: there was nothing to judge")
    if shown == "table":
        print(f"{'' if rows else 'no verdicts; '}{summary.text()}")
    _tell_what_limits_it(folder, summary)
    return 1 if reading.bad else 0


def _lines(folded: Folded, shown: Shown, width: int | None) -> Iterator[bytes]:
    if shown == "decisions":
        yield from map(msgspec.json.encode, folded.decisions)
    elif shown == "verdicts":
        yield from map(verdict_json, folded.verdicts)
    else:
        yield from (row(verdict, width).encode() for verdict in folded.verdicts)


def _tell_what_limits_it(folder: Folder, summary: Summary) -> None:
    if folder.ambiguous:
        say(
            f"{folder.ambiguous} runs begin more than an hour before events that stand above them, when other runs had"
            " been let go: if they continue those, sort the file by ts and judge it again"
        )
    switched_off = summary.switched_off()
    if switched_off is not None:
        say(switched_off)

"""What `loopwarden judge` does: a file through the judge, and what is asked for of it on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import Literal, TypeAlias

import msgspec

from loopwarden.cli.fitting import terminal_width
from loopwarden.cli.given_files import GivenFiles
from loopwarden.cli.policy_source import fleet_policy
from loopwarden.cli.reading import Reading, reading_of
from loopwarden.cli.summary import Summary
from loopwarden.cli.terminal import say
from loopwarden.cli.verdict_rows import header, row
from loopwarden.importers.copies import CopiedCalls
from loopwarden.replay import Folded, Folder
from loopwarden_schemas.codec import verdict_json

Shown: TypeAlias = Literal["table", "verdicts", "decisions"]


def judge_files(
    files: Sequence[str], policy: str | None, agent: str | None, shown: Shown, verbose: bool, follow: bool = False
) -> int:
    """Judge files, one after the other, and print what is to be shown of them; return the exit code.

    Raises:
        InputError: a file is not there, or has a format that cannot be read.
        PolicyError: so is, or has, the policy's.
    """
    folder = Folder(fleet_policy(policy), agent)
    summary = Summary()
    judging = _Judging(folder, summary, shown, verbose)
    given = GivenFiles(files, verbose)
    copies = CopiedCalls()
    bad = 0
    for file in given.files():
        with (
            given.passing_over(file),
            reading_of(file.name, verbose, sought=file.sought, follow=follow, copies=copies) as reading,
        ):
            # Whoever follows a file ends that by Ctrl-C.
            with suppress(KeyboardInterrupt) if follow else nullcontext():
                judging.judge(reading)
            sys.stdout.flush()
            reading.conclude()
            bad += reading.bad
            if reading.found_nothing:
                say(f"{reading.name}: is empty: there was nothing to judge")
    given.conclude()
    if shown == "table":
        print(f"{'' if judging.rows else 'no verdicts; '}{summary.text()}")
    _tell_what_limits_it(folder, summary, len(files) > 1 or given.folders)
    return 1 if bad else 0


class _Judging:
    """Judges the events of files, and prints what is to be shown of them."""

    def __init__(self, folder: Folder, summary: Summary, shown: Shown, verbose: bool) -> None:
        self.rows = 0
        self._folder = folder
        self._summary = summary
        self._shown: Shown = shown
        self._verbose = verbose
        self._width = terminal_width()

    def judge(self, reading: Reading) -> None:
        for item in reading.events():
            folded = self._folder.fold(item.event)
            self._summary.add(folded)
            if folded.rejected is not None:
                reading.refuse(item.line, f"{folded.rejected.reason}: {folded.rejected.detail}")
            if folded.armed and self._verbose:
                reading.tell(f"post-compaction guard armed for {folded.armed} attempts")
            for line in _lines(folded, self._shown, self._width):
                if self._shown == "table" and not self.rows:
                    reading.write(header(self._width).encode())
                self.rows += 1
                reading.write(line)


def _lines(folded: Folded, shown: Shown, width: int | None) -> Iterator[bytes]:
    if shown == "decisions":
        yield from map(msgspec.json.encode, folded.decisions)
    elif shown == "verdicts":
        yield from map(verdict_json, folded.verdicts)
    else:
        yield from (row(verdict, width).encode() for verdict in folded.verdicts)


def _tell_what_limits_it(folder: Folder, summary: Summary, many_files: bool) -> None:
    # Of many files each holds its runs whole: that they begin before those of another one means nothing.
    if folder.ambiguous and not many_files:
        say(
            f"{folder.ambiguous} runs begin more than an hour before events that stand above them, when other runs had"
            " been let go: if they continue those, sort the file by ts and judge it again"
        )
    switched_off = summary.switched_off()
    if switched_off is not None:
        say(switched_off)

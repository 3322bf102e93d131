"""A file of runs read by a command: bad lines are told as they come, what becomes no event is counted."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loopwarden.cli.legibility import must_be_text
from loopwarden.cli.progress import ReadingBar
from loopwarden.cli.terminal import plural, say
from loopwarden.importers import (
    STDIN,
    BadLine,
    CaughtUp,
    Checked,
    Format,
    InputError,
    LeftOut,
    Recorded,
    Source,
    check,
    open_source,
    read_events,
)
from loopwarden.importers.copies import CopiedCalls
from loopwarden.importers.formats import FORMATS
from loopwarden.importers.growing import GrowingFile

_BAD_LINES_SHOWN: Final = 20
"""Of a file that is none of the known formats, every line is bad."""

_LOOK_AGAIN_S: Final = 0.5
"""A session grows by what people and models do."""

RECORDED: Final = "what was recorded of an exported run, which `replay --from-file` compares"


class Reading:
    """One file being read. To begin with it may raise InputError: it is no text at all.

    Args:
        source: The file. One that grows is read on without an end.
        verbose: Show every bad line, and all that is left out.
        expected: The formats that it may have.
        sought: Whether it was only come upon in a folder; see `read_events`.
        copies: Tells copies of the calls of other files; see `read_events`.
        recorded: Takes what an export tells beside the events; without it that is left out.

    Attributes:
        bad: Lines that could not be read, or whose events were refused.
        left_out: How often each kind of thing was left out.
    """

    def __init__(
        self,
        source: Source | GrowingFile,
        verbose: bool = False,
        expected: tuple[Format, ...] = FORMATS,
        sought: bool = False,
        copies: CopiedCalls | None = None,
        recorded: Callable[[Recorded], None] | None = None,
    ) -> None:
        self.name = source.name
        self.bad = 0
        self.left_out: Counter[str] = Counter()
        self._good = 0
        must_be_text(source)
        self._items = (
            source.items() if isinstance(source, GrowingFile) else check(read_events(source, expected, sought, copies))
        )
        self._recorded = recorded
        self._verbose = verbose
        self._to_terminal = sys.stdout.isatty()
        # Whoever follows a stream waits for each line, not for a full buffer.
        self._live = source.size is None
        self._bar = ReadingBar(source.name, source.size, lambda: source.position)

    def events(self) -> Iterator[Checked]:
        """Return the events that can be read."""
        try:
            for item in self._items:
                self._bar.advance()
                if isinstance(item, Checked):
                    self._good += 1
                    yield item
                elif isinstance(item, BadLine):
                    self.refuse(item.line, item.reason)
                elif isinstance(item, Recorded):
                    if self._recorded is None:
                        self._leave_out(LeftOut(item.line, RECORDED))
                    else:
                        self._recorded(item)
                elif isinstance(item, CaughtUp):
                    self._bar.hide()
                    sys.stdout.flush()
                    time.sleep(_LOOK_AGAIN_S)
                else:
                    self._leave_out(item)
        finally:
            self._bar.hide()

    @property
    def found_nothing(self) -> bool:
        """Whether the file had nothing in it, so far."""
        return not (self._good or self.bad or self.left_out)

    def refuse(self, line: int, reason: str) -> None:
        """Count and tell a bad line."""
        self.bad += 1
        if self._verbose or self.bad <= _BAD_LINES_SHOWN:
            self.tell(f"{self.name}, line {line}: {reason}")
        elif self.bad == _BAD_LINES_SHOWN + 1:
            self.tell(f"{self.name}: further bad lines are counted, --verbose shows them")

    def tell(self, text: str) -> None:
        """Say something on standard error while the file is read."""
        self._bar.hide()
        say(text)

    def write(self, line: bytes) -> None:
        """Write a line to standard output while the file is read."""
        if self._to_terminal:
            self._bar.hide()
        sys.stdout.buffer.write(line + b"\n")
        if self._live:
            sys.stdout.buffer.flush()

    def conclude(self) -> None:
        """Tell what was not taken, once the file is read."""
        if self.bad:
            say(f"{self.name}: {plural(self.bad, 'bad line')}")
        # That an export holds more than events is as it should be.
        unexpected = self.left_out.total() - self.left_out[RECORDED]
        if unexpected and not self._verbose:
            say(f"{self.name}: {plural(unexpected, 'item')} left out, --verbose shows what")
        for what, count in sorted(self.left_out.items()) if self._verbose else ():
            times = "once" if count == 1 else f"{count:,} times"
            say(f"{self.name}: left out {times}: {what}")

    def _leave_out(self, item: LeftOut) -> None:
        self.left_out[item.what] += 1
        if self._verbose:
            self.tell(f"{self.name}, line {item.line}: left out: {item.what}")


@contextmanager
def reading_of(
    file: str,
    verbose: bool,
    expected: tuple[Format, ...] = FORMATS,
    *,
    sought: bool = False,
    follow: bool = False,
    copies: CopiedCalls | None = None,
) -> Iterator[Reading]:
    """Open a file, or standard input, to be read; `follow`: and read on as it grows. See `Reading`.

    Raises:
        InputError: it is not there, or no text.
    """
    if follow and file != STDIN:
        if Path(file).is_dir():
            raise InputError(f"{file}: must be a file to be followed; `loopwarden watch-sessions DIR` follows many")
        if not Path(file).exists():
            raise InputError(f"{file}: there is no such file")
        yield Reading(GrowingFile(Path(file), expected=expected, copies=copies), verbose)
        return
    with open_source(file) as source:
        yield Reading(source, verbose, expected, sought, copies)


def same_file(one: str, other: str) -> bool:
    """Whether two names stand for one file that is there."""
    first, second = Path(one), Path(other)
    return first.exists() and second.exists() and first.samefile(second)

"""Which format a file has: the list of those that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeAlias

from loopwarden.importers import claude_code, codex, gemini, openclaw, opencode, trajectories, wire
from loopwarden.importers.copies import COPIED, CopiedCalls
from loopwarden.importers.document import document, is_document
from loopwarden.importers.items import BadLine, CaughtUp, InputError, Item, LeftOut, WireEvent
from loopwarden.importers.rows import CUT_LINE, Row, Rows, rows
from loopwarden.importers.source import Source

_LINES_LOOKED_AT: Final = 100
"""A few broken lines at a file's beginning must not hide what it is."""


class Format(NamedTuple):
    """A format that can be read. Each is a module with these two functions."""

    name: str
    recognises: Callable[[Any], bool]
    read: Callable[[Rows], Iterator[Item]]


WIRE: Final = Format("wire events", wire.recognises, wire.read)
TRAJECTORIES: Final = Format("trajectories", trajectories.recognises, trajectories.read)
OPENCLAW: Final = Format("OpenClaw or pi session", openclaw.recognises, openclaw.read)
CLAUDE_CODE: Final = Format("Claude Code session", claude_code.recognises, claude_code.read)
CODEX: Final = Format("Codex session", codex.recognises, codex.read)
OPENCODE: Final = Format("opencode session", opencode.recognises, opencode.read)
GEMINI: Final = Format("Gemini session", gemini.recognises, gemini.read)

SESSIONS: Final = (OPENCLAW, CODEX, OPENCODE, GEMINI, CLAUDE_CODE)
"""What agents write of themselves."""

FORMATS: Final = (*SESSIONS, TRAJECTORIES, WIRE)
"""In the order in which they are asked."""

_FoundRows: TypeAlias = Iterator[Row | BadLine | CaughtUp]


def format_of(source: Source) -> tuple[Format | None, _FoundRows]:
    """Return the format of a file and all its rows, those included that were looked at.

    None: nothing in it is recognised.
    """
    read = document if is_document(source.head) else rows
    following: _FoundRows = read(source.lines(), source.name)
    looked_at = []
    for row in islice(following, _LINES_LOOKED_AT):
        looked_at.append(row)
        found = _format_of_row(row)
        if found is not None:
            return found, chain(looked_at, following)
    return None, chain(looked_at, following)


def read_events(
    source: Source,
    expected: tuple[Format, ...] = FORMATS,
    sought: bool = False,
    copies: CopiedCalls | None = None,
) -> Iterator[Item]:
    """Return the events of a file, whatever its format, and what in it is no event.

    A file in which nothing is recognised counts as wire events, so that every line of it is reported; unless it was
    only come upon in a search for files (`sought`). Of sessions, calls that are `copies` are left out.

    Raises:
        InputError: its format is none of those `expected`.
    """
    found, found_rows = format_of(source)
    looked_at = list(islice(found_rows, _LINES_LOOKED_AT)) if found not in expected else []
    yield from _read(_accepted(source.name, found, looked_at, expected, sought), chain(looked_at, found_rows), copies)


def _accepted(
    name: str,
    found: Format | None,
    looked_at: list[Row | BadLine | CaughtUp],
    expected: tuple[Format, ...],
    sought: bool,
) -> Format:
    if found is None and sought:
        raise InputError(f"{name}: is no file of runs")
    found = found or WIRE
    if found not in expected:
        names = "a session" if expected == SESSIONS else " or ".join(one.name for one in expected)
        raise InputError(f"{name}: must be {names}, but {_instead(found, looked_at)}")
    return found


def read_growing(
    name: str,
    lines: _FoundRows,
    expected: tuple[Format, ...] = FORMATS,
    sought: bool = False,
    copies: CopiedCalls | None = None,
) -> Iterator[Item]:
    """Return the events of a file that grows: `CaughtUp` stands where more may come, and so it may in the rows.

    Raises:
        InputError: see `read_events`.
    """
    looked_at: list[Row | BadLine | CaughtUp] = []
    for row in lines:
        if isinstance(row, CaughtUp):
            yield row
            continue
        looked_at.append(row)
        found = _format_of_row(row)
        if found is not None or len(looked_at) >= _LINES_LOOKED_AT:
            yield from _read(_accepted(name, found, looked_at, expected, sought), chain(looked_at, lines), copies)
            return


def _format_of_row(row: Row | BadLine | CaughtUp) -> Format | None:
    if not isinstance(row, Row):
        return None
    return next((known for known in FORMATS if known.recognises(row.value)), None)


def _read(found: Format, found_rows: Rows, copies: CopiedCalls | None) -> Iterator[Item]:
    if found not in SESSIONS:
        yield from found.read(found_rows)
        return
    for item in found.read(found_rows):
        if isinstance(item, BadLine) and item.reason == CUT_LINE:
            # The agent is still writing it.
            yield LeftOut(item.line, "a last line that is not whole yet")
        elif isinstance(item, WireEvent) and copies is not None and copies.has(item.event):
            yield LeftOut(item.line, COPIED)
        else:
            yield item


def _instead(found: Format, rows: list[Row | BadLine | CaughtUp]) -> str:
    values = [row.value for row in rows if isinstance(row, Row)]
    if any(map(found.recognises, values)):
        return f"this looks like {found.name}"
    if values:
        return "nothing in it looks like that"
    bad = next((row for row in rows if isinstance(row, BadLine)), None)
    return "this is empty" if bad is None else f"cannot be read as that: line {bad.line}: {bad.reason}"

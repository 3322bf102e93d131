"""Which format a file has: the list of those that can be read, and the names of those that cannot be yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from loopwarden.importers import openclaw, trajectories, wire
from loopwarden.importers.items import BadLine, InputError, Item
from loopwarden.importers.rows import Row, rows
from loopwarden.importers.source import Source

_LINES_LOOKED_AT: Final = 100
"""A few broken lines at a file's beginning must not hide what it is."""


class Format(NamedTuple):
    """A format that can be read. Each is a module with these two functions."""

    name: str
    recognises: Callable[[Any], bool]
    read: Callable[[Iterable[Row | BadLine]], Iterator[Item]]


WIRE: Final = Format("wire events", wire.recognises, wire.read)
TRAJECTORIES: Final = Format("trajectories", trajectories.recognises, trajectories.read)
OPENCLAW: Final = Format("OpenClaw or pi session", openclaw.recognises, openclaw.read)

FORMATS: Final = (OPENCLAW, TRAJECTORIES, WIRE)
"""In the order in which they are asked."""

_CAN_BE_READ: Final = "wire events (JSON lines), trajectories, and sessions of OpenClaw and pi"

_CODEX_TYPES: Final = frozenset("session_meta response_item event_msg turn_context compacted".split())
_CLAUDE_TYPES: Final = frozenset(("summary", "file-history-snapshot", "queue-operation"))


def format_of(source: Source) -> tuple[Format, Iterator[Row | BadLine]]:
    """Return the format of a file and all its rows, those included that were looked at.

    A file in which nothing is recognised counts as wire events, so that every line of it is reported.

    Raises:
        InputError: it is another agent's session, which cannot be read yet.
    """
    following = rows(source.lines())
    looked_at: list[Row | BadLine] = []
    for row in islice(following, _LINES_LOOKED_AT):
        looked_at.append(row)
        if isinstance(row, BadLine):
            continue
        for known in FORMATS:
            if known.recognises(row.value):
                return known, chain(looked_at, following)
        _refuse(source, _other_agent(row.value))
    # An exported session may be one JSON document over many lines, none of which is JSON by itself.
    keys = re.findall(rb'^\s*"(\w+)"\s*:', source.head, re.MULTILINE)
    _refuse(source, _other_agent({key.decode(): None for key in keys}))
    return WIRE, chain(looked_at, following)


def read_events(source: Source, expected: tuple[Format, ...] = FORMATS) -> Iterator[Item]:
    """Return the events of a file, whatever its format, and what in it is no event.

    Raises:
        InputError: its format cannot be read, or is none of those `expected`.
    """
    found, found_rows = format_of(source)
    if found not in expected:
        names = " or ".join(one.name for one in expected)
        instead = _instead(found, list(islice(found_rows, _LINES_LOOKED_AT)))
        raise InputError(f"{source.name}: must be {names}, but {instead}")
    yield from found.read(found_rows)


def _instead(found: Format, rows: list[Row | BadLine]) -> str:
    values = [row.value for row in rows if isinstance(row, Row)]
    if any(map(found.recognises, values)):
        return f"this looks like {found.name}"
    if values:
        return "nothing in it looks like that"
    bad = next((row for row in rows if isinstance(row, BadLine)), None)
    return "this is empty" if bad is None else f"cannot be read as that: line {bad.line}: {bad.reason}"


def _refuse(source: Source, agent: str | None) -> None:
    if agent is not None:
        raise InputError(
            f"{source.name}: this is a session of {agent}, which a later version will read;"
            f" this one reads {_CAN_BE_READ}"
        )


def _other_agent(value: Any) -> str | None:
    """The agent that wrote a session file which cannot be read yet, by one of its lines."""
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    if isinstance(kind, str) and kind in _CODEX_TYPES and "payload" in value:
        return "Codex"
    if (isinstance(kind, str) and kind in _CLAUDE_TYPES) or ("sessionId" in value and "uuid" in value):
        return "Claude Code"
    if "info" in value and "messages" in value:
        return "opencode"
    if "sessionId" in value and ("messages" in value or "projectHash" in value):
        return "Gemini"
    return None

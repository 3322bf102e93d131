"""What reading a file of runs gives, item by item; and the one error that ends the reading."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias


class WireEvent(NamedTuple):
    """An event as it goes on the wire (design.md, "Events"), not checked yet, and the line it comes from."""

    line: int
    event: dict[str, Any]


class BadLine(NamedTuple):
    """A line, from 1, that cannot be read, and why. What comes after it is read all the same."""

    line: int
    reason: str


class LeftOut(NamedTuple):
    """Something that was read and becomes no event. `what` is the same text for the same kind of thing."""

    line: int
    what: str


class Recorded(NamedTuple):
    """What an exported file tells about a run beside its events: a verdict that was published, or how whole it is."""

    line: int
    value: dict[str, Any]


class CaughtUp(NamedTuple):
    """A file that may still grow is read as far as it goes, up to `line`. There may be more when asked again."""

    line: int


Item: TypeAlias = WireEvent | BadLine | LeftOut | Recorded | CaughtUp


class InputError(Exception):
    """A file that cannot be read at all: it is not there, or it is none of the formats known here."""

"""Other people's run files as events: wire events, trajectories, sessions of agents.

    with open_source(path) as source:
        for item in check(read_events(source)):
            match item:
                case Checked(line, wire, record, event): ...
                case BadLine(line, reason): ...
                case LeftOut(line, what): ...

Importing the same file twice gives the same event ids and run ids.
"""

from __future__ import annotations

from loopwarden.importers.contract import Checked, check
from loopwarden.importers.formats import OPENCLAW, SESSIONS, TRAJECTORIES, WIRE, Format, read_events
from loopwarden.importers.items import BadLine, CaughtUp, InputError, Item, LeftOut, Recorded, WireEvent
from loopwarden.importers.source import STDIN, Source, open_source

__all__ = [
    "OPENCLAW",
    "SESSIONS",
    "STDIN",
    "TRAJECTORIES",
    "WIRE",
    "BadLine",
    "CaughtUp",
    "Checked",
    "Format",
    "InputError",
    "Item",
    "LeftOut",
    "Recorded",
    "Source",
    "WireEvent",
    "check",
    "open_source",
    "read_events",
]

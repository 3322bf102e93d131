"""Short ways to read a file or some lines, for tests."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from loopwarden.importers import (
    BadLine,
    CaughtUp,
    Checked,
    Item,
    LeftOut,
    Source,
    WireEvent,
    check,
    open_source,
    read_events,
)


def source_of(content: bytes) -> Source:
    return Source("test", cast(io.RawIOBase, io.BytesIO(content)), len(content))


def items_of(*values: Any) -> list[Item]:
    """What reading these JSON values gives, one a line; bytes are a line as it stands."""
    lines = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    return list(read_events(source_of(b"\n".join(lines) + b"\n")))


def read_file(path: Path) -> list[Checked | BadLine | LeftOut | CaughtUp]:
    with open_source(path) as source:
        return list(check(read_events(source)))


def check_all(*values: Any) -> list[Any]:
    """What these JSON values give, each event held to the contract."""
    return list(check(items_of(*values)))


def events(items: Iterable[Item | Checked]) -> list[dict[str, Any]]:
    return [
        item.event if isinstance(item, WireEvent) else item.wire
        for item in items
        if isinstance(item, WireEvent | Checked)
    ]


def bad(items: Iterable[Item | Checked]) -> list[BadLine]:
    return [item for item in items if isinstance(item, BadLine)]


def left_out(items: Iterable[Item | Checked]) -> list[LeftOut]:
    return [item for item in items if isinstance(item, LeftOut)]

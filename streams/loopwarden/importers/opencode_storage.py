"""The storage of opencode as JSON lines, a part of a message a line: its database, or the folder that it was before.

`opencode.db` is SQLite: `part` (id, message_id, session_id, time_updated, data) and `session` (id, parent_id). Before,
`storage/part/<message>/<part>.json` and `storage/session/<project>/<session>.json`.
"""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from loopwarden.importers.items import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MAGIC: Final = b"SQLite format 3\0"

_PARTS: Final = """
    SELECT part.data, part.id, part.message_id, part.session_id, session.parent_id, part.time_updated
    FROM part LEFT JOIN session ON session.id = part.session_id
    WHERE part.time_updated >= ? ORDER BY part.time_updated, part.id
"""


def is_storage(path: Path) -> bool:
    """Whether a path is such a database or such a folder."""
    if path.is_dir():
        return (path / "part").is_dir() and (path / "session").is_dir()
    try:
        with path.open("rb") as stream:
            return is_database(stream.read(len(_MAGIC)))
    except OSError:
        return False


def is_database(head: bytes) -> bool:
    """Whether a file's first bytes are those of a database."""
    return head.startswith(_MAGIC)


def stored_lines(path: Path) -> Iterator[bytes]:
    """Return every part as a line of JSON.

    Raises:
        InputError: it is a database of something else, or cannot be read.
    """
    if path.is_dir():
        yield from _lines_of_folder(path)
    else:
        for part, _ in parts_since(path, 0):
            yield orjson.dumps(part) + b"\n"


def parts_since(database: Path, time_updated: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Return the parts that were updated at that time (ms) or later, and when, in that order.

    Raises:
        InputError: it is a database of something else, or cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            for data, part, message, session, parent, updated in connection.execute(_PARTS, (time_updated,)):
                named = {"id": part, "messageID": message, "sessionID": session, "parentID": parent}
                yield {**_object(data), **named}, int(updated)
    except sqlite3.Error as error:
        raise InputError(f"{database}: cannot be read as opencode's database: {error}") from None


class LinesRead(io.RawIOBase):
    """Lines that are made as they are asked for, to be read as a file."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        super().__init__()
        self._lines = iter(lines)
        self._rest = b""

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read some bytes."""
        room = memoryview(buffer).cast("B")
        self._rest = self._rest or next(self._lines, b"")
        read = min(len(room), len(self._rest))
        room[:read] = self._rest[:read]
        self._rest = self._rest[read:]
        return read


def _lines_of_folder(storage: Path) -> Iterator[bytes]:
    parents: dict[str, Any] = {}
    for file in storage.glob("session/*/*.json"):
        parents[file.stem] = _object(file.read_bytes()).get("parentID")
    # Ids begin with their time: in their order the parts are as they were made.
    for file in sorted(storage.glob("part/*/*.json")):
        content = file.read_bytes()
        part = _object(content)
        named = {"parentID": parents.get(str(part.get("sessionID")))}
        yield (orjson.dumps({**part, **named}) if part else content.replace(b"\n", b" ")) + b"\n"


def _object(text: str | bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}

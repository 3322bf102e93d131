"""Session files of OpenClaw and of pi, whose format it shares: a conversation as a tree of entries, one a line.

{"type": "session", "version", "id", "timestamp", "cwd"}, then entries with `id`, `parentId` and `timestamp`:
messages of an assistant with `toolCall` parts, `toolResult` messages, compactions, and what is no event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from loopwarden.importers.ids import call_id, event_id, run_prefix
from loopwarden.importers.items import BadLine, CaughtUp, Item, LeftOut, WireEvent
from loopwarden.importers.openclaw_entries import Called, Compacted, Entry, Returned, entry_of
from loopwarden.importers.openclaw_tree import SessionTree
from loopwarden.importers.rows import Row, Rows
from loopwarden.importers.times import milliseconds
from loopwarden_schemas.events import MAX_NAME_BYTES

_ABANDONED: Final = "a call on an abandoned branch"


def recognises(value: Any) -> bool:
    """Whether a line's value begins such a session."""
    return isinstance(value, dict) and value.get("type") == "session"


def read(rows: Rows) -> Iterator[Item]:
    """Return the events of each session: a session is one run, and its id the run's.

    The run is the branch that ends in the file's last entry; what is added to a file that grows belongs to it, on
    whatever branch. A call without a result stays pending; the run is not
    finished, since a session can be gone on with. Several files may follow one another, as `cat` joins them.
    """
    session: _Session | None = None
    seen: set[str] = set()
    for row in rows:
        if isinstance(row, CaughtUp):
            if session is not None:
                yield from session.items()
            yield row
        elif isinstance(row, BadLine):
            yield row
        elif recognises(row.value):
            if session is not None:
                yield from session.items()
            mistake = _mistake(row.value.get("id"), seen)
            session = _Session(row) if mistake is None else None
            if mistake is not None:
                yield BadLine(row.line, f"{mistake}: this session is left out")
        elif session is not None:
            yield from session.add(row)
        elif not seen:
            yield BadLine(row.line, 'a session file must begin with {"type": "session", "id": ...}')
        else:
            yield LeftOut(row.line, "an entry of a session that is left out")
    if session is not None:
        yield from session.items()


def _mistake(session_id: Any, seen: set[str]) -> str | None:
    if not isinstance(session_id, str) or not session_id:
        return f"id: must be text that is not empty, got {session_id!r:.60}"
    if len(session_id.encode()) > MAX_NAME_BYTES:
        return f"id: must be at most {MAX_NAME_BYTES} bytes, got {len(session_id.encode())}"
    if session_id in seen:
        return f"id: must be unique, but {session_id!r} was here before"
    seen.add(session_id)
    return None


class _Session:
    """The entries of one session as they are read, and then the events of its run."""

    def __init__(self, header: Row) -> None:
        self.id: str = header.value["id"]
        self._prefix = run_prefix(self.id)
        self._begun = milliseconds(header.value.get("timestamp"))
        self._tree = SessionTree(self.id)
        self._pending: dict[str, Called] = {}
        self._ts = self._begun if self._begun is not None else 0
        self._told = False

    def add(self, row: Row) -> Iterator[Item]:
        """Add one entry; what of it is not understood is said."""
        if not isinstance(row.value, dict) or not isinstance(row.value.get("type"), str):
            yield BadLine(row.line, "an entry must be an object with a `type`")
            return
        entry, unknown = entry_of(row.line, row.value)
        if not self._tree.add(entry):
            unknown.append("a parentId that names nothing before it: its predecessor is taken for it")
        for what in unknown:
            yield LeftOut(row.line, what)
        if self._told:
            yield from self._events(entry)

    def items(self) -> Iterator[Item]:
        """Return the events of the run, once every entry that there is so far is added."""
        if self._told:
            return
        self._told = True
        path, abandoned = self._tree.path()
        for entry in abandoned:
            for part in entry.parts:
                if isinstance(part, Called):
                    yield LeftOut(entry.line, _ABANDONED)
        for entry in path:
            yield from self._events(entry)

    def _events(self, entry: Entry) -> Iterator[Item]:
        self._ts = entry.ts if entry.ts is not None else self._ts
        for part in entry.parts:
            yield self._item(entry, part, self._ts)

    def _item(self, entry: Entry, part: Called | Returned | Compacted, ts: int) -> Item:
        place = [entry.id if entry.id is not None else f"line-{entry.line}"]
        if isinstance(part, Called):
            fields: dict[str, Any] = {"tool": part.tool, "args": part.args}
            if part.call_id is not None:
                fields["call_id"] = call_id(part.call_id)
                self._pending[part.call_id] = part
            return self._event(entry.line, "tool_call.started", [*place, str(part.position)], ts, fields)
        if isinstance(part, Compacted):
            # They do not say why they compacted; what is known is that it happened within an attempt.
            return self._event(entry.line, "compaction", place, ts, {"trigger": "in_attempt", "succeeded": True})
        call = self._pending.pop(part.call_id, None)
        if call is None:
            return LeftOut(entry.line, "a result without its call")
        # With the arguments: what counts as an outcome depends on them, for a poll or a message that is sent.
        fields = {"call_id": call_id(part.call_id), "tool": part.tool or call.tool, "args": call.args}
        if part.refused:
            return self._event(entry.line, "tool_call.blocked", place, ts, fields)
        return self._event(entry.line, "tool_call.finished", place, ts, {**fields, **part.outcome})

    def _event(self, line: int, kind: str, place: list[str], ts: int, fields: dict[str, Any]) -> WireEvent:
        common = {
            "schema": 1,
            "type": kind,
            "event_id": event_id(self._prefix, *place),
            "run_id": self.id,
            "session_id": self.id,
            "ts": ts,
        }
        return WireEvent(line, common | fields)

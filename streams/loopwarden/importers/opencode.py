"""Sessions of opencode: what `opencode export` writes, and the parts of messages as its storage holds them.

{"info": {"id", "parentID"}, "messages": [{"info": {"role", "time"}, "parts": [...]}]}: a call and its result are one
part, {"type": "tool", "tool", "callID", "state": {"status", "input", "output" | "error", "time": {"start", "end"}}}.
In the storage each part is a document of its own that names its `sessionID`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from loopwarden.importers.calls_of_run import CallsOfRun, Outcome
from loopwarden.importers.items import BadLine, Item, LeftOut, WireEvent
from loopwarden.importers.rows import Row, Rows
from loopwarden.importers.times import milliseconds
from loopwarden.importers.volatile import Volatile, without
from loopwarden_schemas.events import MAX_NAME_BYTES

VOLATILE: Final[Volatile] = (
    # A sub-agent's answer begins with the session it got.
    re.compile(r"^task_id: \S+ \([^)\n]*\)\n*"),
)

DOCUMENT_KEYS: Final = (frozenset(("info", "messages")), frozenset(("sessionID", "messageID", "type")))
"""By these keys at its top a document that spans many lines is recognised."""

_NO_EVENTS: Final = tuple("text reasoning file patch snapshot step-start step-finish agent subtask retry".split())


def recognises(value: Any) -> bool:
    """Whether a value is an exported session, or one part of a message."""
    return isinstance(value, dict) and any(keys <= value.keys() for keys in DOCUMENT_KEYS)


def read(rows: Rows) -> Iterator[Item]:
    """Return the events of each session: a session is one run, and a sub-agent's names the one that began it."""
    runs: dict[str, CallsOfRun] = {}
    for row in rows:
        if not isinstance(row, Row):
            yield row
        elif not recognises(row.value):
            yield BadLine(row.line, "must be a session as `opencode export` writes it, or a part of a message")
        elif "messages" in row.value:
            yield from _session(row.line, row.value, runs)
        else:
            run = _run(row.value["sessionID"], row.value.get("parentID"), runs)
            if isinstance(run, str):
                yield BadLine(row.line, run)
            else:
                yield from _part(row.line, None, row.value, run)


def _session(line: int, document: dict[str, Any], runs: dict[str, CallsOfRun]) -> Iterator[Item]:
    info, messages = document["info"], document["messages"]
    if not isinstance(info, dict) or not isinstance(messages, list):
        yield BadLine(line, "info must be an object, and messages a list")
        return
    run = _run(info.get("id"), info.get("parentID"), runs)
    if isinstance(run, str):
        yield BadLine(line, f"info.{run}")
        return
    items: list[Item] = []
    for message in messages:
        about = message.get("info") if isinstance(message, dict) else None
        parts = message.get("parts") if isinstance(message, dict) else None
        if not isinstance(about, dict) or not isinstance(parts, list):
            items.append(LeftOut(line, "a message without info and parts"))
            continue
        for part in parts:
            items.extend(_part(line, _time(about, "created"), part, run))
    yield from (item for item in items if not isinstance(item, WireEvent))
    # Calls of one message run beside one another, and each stands there with its result.
    yield from sorted((item for item in items if isinstance(item, WireEvent)), key=lambda item: int(item.event["ts"]))


def _run(session_id: Any, parent: Any, runs: dict[str, CallsOfRun]) -> CallsOfRun | str:
    """The run of a session, or what is wrong with its id."""
    if not isinstance(session_id, str) or not session_id:
        return f"id: must be text that is not empty, got {session_id!r:.60}"
    if len(session_id.encode()) > MAX_NAME_BYTES:
        return f"id: must be at most {MAX_NAME_BYTES} bytes, got {len(session_id.encode())}"
    if session_id not in runs:
        parent = parent if isinstance(parent, str) and 0 < len(parent.encode()) <= MAX_NAME_BYTES else None
        runs[session_id] = CallsOfRun(session_id, session_id, parent)
    return runs[session_id]


def _part(line: int, ts: int | None, part: Any, run: CallsOfRun) -> Iterator[Item]:
    """Return the events of one part, as far as it goes; `ts` is its message's."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "compaction":
        place = part["id"] if isinstance(part.get("id"), str) else f"line-{line}"
        yield from run.compaction(line, ts, place, manual=part.get("auto") is False)
    elif kind == "tool":
        yield from _call(line, ts, part, run)
    elif kind not in _NO_EVENTS:
        yield LeftOut(line, f"a part of type {kind!r:.60}")


def _call(line: int, ts: int | None, part: dict[str, Any], run: CallsOfRun) -> Iterator[Item]:
    state = part.get("state")
    if not isinstance(state, dict) or not isinstance(part.get("tool"), str):
        yield LeftOut(line, "a call without a tool or a state")
        return
    status = state.get("status")
    if status == "pending":
        # Its input is not whole yet.
        return
    started, ended = _time(state, "start") or ts, _time(state, "end")
    yield from run.call(line, started, part.get("callID"), part["tool"], state.get("input"))
    if status in ("completed", "error") and not run.waits_for(part.get("callID")):
        return
    if status == "completed":
        output = state.get("output")
        texts = [without(VOLATILE, output)] if isinstance(output, str) else []
        attachments = state.get("attachments")
        others = [_content(one) for one in attachments] if isinstance(attachments, list) else []
        yield from run.result(line, ended, part.get("callID"), Outcome(texts, None, others))
    elif status == "error":
        yield from run.result(line, ended, part.get("callID"), Outcome(error=str(state.get("error") or "")))
    elif status != "running":
        yield LeftOut(line, f"a call with status {status!r:.60}")


def _content(attachment: Any) -> Any:
    """What of an attachment is its content: its ids are new each time."""
    return attachment["url"] if isinstance(attachment, dict) and "url" in attachment else attachment


def _time(about: dict[str, Any], which: str) -> int | None:
    times = about.get("time")
    return milliseconds(times.get(which)) if isinstance(times, dict) else None

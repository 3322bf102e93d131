"""Session files of the Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json`, newer ones `.jsonl`.

Older: one document {"sessionId", "projectHash", "messages": [{"type": "gemini", "toolCalls": [{"id", "name", "args",
"result", "status", "timestamp"}]}]}. Newer: its head as the first line, then a message a line, written anew whenever it
changes, and changes of the head ({"$set"}) or of the conversation ({"$rewindTo"}).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

from loopwarden.importers.calls_of_run import CallsOfRun, Outcome
from loopwarden.importers.items import BadLine, Item, LeftOut
from loopwarden.importers.rows import Row, Rows
from loopwarden.importers.times import milliseconds
from loopwarden.importers.volatile import Volatile, without
from loopwarden_schemas.events import MAX_NAME_BYTES

VOLATILE: Final[Volatile] = (
    # The shell tool names the processes that it started.
    re.compile(r"^(?:Process Group PGID|Background PIDs): .*\n?", re.MULTILINE),
)

DOCUMENT_KEYS: Final = (frozenset(("sessionId", "messages")), frozenset(("sessionId", "projectHash")))

_NO_EVENTS: Final = tuple("user info error warning".split())
_ENDED: Final = tuple("success error cancelled".split())
_GOES_ON: Final = tuple("validating scheduled executing awaiting_approval".split())


def recognises(value: Any) -> bool:
    """Whether a value is such a session, or begins one."""
    return isinstance(value, dict) and "uuid" not in value and any(keys <= value.keys() for keys in DOCUMENT_KEYS)


def read(rows: Rows) -> Iterator[Item]:
    """Return the events of each session: a session is one run, and a sub-agent's another, below it.

    Calls that were taken back ($rewindTo) were made all the same.
    """
    run: CallsOfRun | None = None
    for row in rows:
        if not isinstance(row, Row):
            yield row
            continue
        value = row.value
        if recognises(value):
            mistake = _mistake(value["sessionId"])
            if mistake is not None:
                run = None
                yield BadLine(row.line, f"{mistake}: this session is left out")
                continue
            if run is None or run.run_id != value["sessionId"]:
                run = CallsOfRun(value["sessionId"], value["sessionId"], _parent(row))
            yield from _messages(row.line, value.get("messages"), run)
        elif not isinstance(value, dict):
            yield BadLine(row.line, "a line must be an object")
        elif run is None:
            yield BadLine(row.line, "a session must begin with its sessionId and projectHash")
        elif isinstance(value.get("$set"), dict):
            yield from _messages(row.line, value["$set"].get("messages"), run)
        elif "$rewindTo" not in value:
            yield from _message(row.line, value, run)


def _parent(row: Row) -> str | None:
    """The session whose sub-agent's it is. Only its folder has that: chats/<session>/<sub-agent's session>.jsonl."""
    folder = PurePath(row.file).parent
    is_below = row.value.get("kind") == "subagent" and folder.parent.name == "chats"
    return folder.name if is_below and _mistake(folder.name) is None else None


def _mistake(session_id: Any) -> str | None:
    if not isinstance(session_id, str) or not session_id:
        return f"sessionId: must be text that is not empty, got {session_id!r:.60}"
    if len(session_id.encode()) > MAX_NAME_BYTES:
        return f"sessionId: must be at most {MAX_NAME_BYTES} bytes, got {len(session_id.encode())}"
    return None


def _messages(line: int, messages: Any, run: CallsOfRun) -> Iterator[Item]:
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            yield from _message(line, message, run)
        else:
            yield LeftOut(line, "a message that is no object")


def _message(line: int, message: dict[str, Any], run: CallsOfRun) -> Iterator[Item]:
    kind, calls = message.get("type"), message.get("toolCalls")
    if kind != "gemini":
        if kind not in _NO_EVENTS:
            yield LeftOut(line, f"a message of type {kind!r:.60}")
        return
    asked_at = milliseconds(message.get("timestamp"))
    made = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    # Calls of one message are made beside one another.
    for call in made:
        if isinstance(call.get("name"), str):
            yield from run.call(line, asked_at, call.get("id"), call["name"], call.get("args"))
        else:
            yield LeftOut(line, "a tool call without a name")
    for call in made:
        status = call.get("status")
        if status in _ENDED:
            if run.waits_for(call.get("id")):
                yield from run.result(line, milliseconds(call.get("timestamp")), call["id"], _outcome(call))
        elif status not in _GOES_ON:
            yield LeftOut(line, f"a call with status {status!r:.60}")


def _outcome(call: dict[str, Any]) -> Outcome:
    texts: list[str] = []
    others: list[Any] = []
    errors: list[str] = []
    result = call.get("result")
    for part in result if isinstance(result, list) else [result]:
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        # The answer's own id is the call's, and new each time.
        response = answer.get("response") if isinstance(answer, dict) else None
        if isinstance(response, dict):
            for key, value in response.items():
                if isinstance(value, str):
                    (errors if key == "error" else texts).append(value)
                else:
                    others.append({key: value})
        elif isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif part is not None:
            others.append(part)
    texts = [without(VOLATILE, text) for text in texts]
    if call.get("status") != "success":
        return Outcome(error="\n".join([*errors, *texts]) or str(call["status"]))
    return Outcome([*texts, *errors], None, others)

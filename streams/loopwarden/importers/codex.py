"""Session files of Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`.

{"timestamp", "type", "payload"}: `session_meta` begins a session; a call is a `response_item` with a `function_call` or
`custom_tool_call`, its result one with the `..._output` of the same `call_id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from loopwarden.importers.calls_of_run import CallsOfRun, Outcome
from loopwarden.importers.items import BadLine, Item, LeftOut
from loopwarden.importers.rows import Row, Rows
from loopwarden.importers.times import milliseconds
from loopwarden.importers.volatile import Volatile, without
from loopwarden_schemas.events import MAX_NAME_BYTES

VOLATILE: Final[Volatile] = (
    re.compile(r"^Chunk ID: [0-9a-f]+\n", re.MULTILINE),
    re.compile(r"^Wall time:? [\d.]+ seconds\n", re.MULTILINE),
    # The same, where a script prints what its tool returned.
    re.compile(r'"(?:chunk_id|wall_time_seconds|duration_seconds)":\s*(?:"[^"]*"|[\d.]+),?\s*'),
)

_TYPES: Final = tuple("session_meta response_item event_msg turn_context compacted".split())
_NO_EVENTS: Final = tuple("turn_context world_state inter_agent_communication_metadata".split())
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")
_RESULTS: Final = ("function_call_output", "custom_tool_call_output")
_NO_CALLS: Final = tuple(
    "message reasoning agent_message ghost_snapshot compaction compaction_summary context_compaction".split()
)
_ABOUT_CALLS: Final = tuple("mcp_tool_call_end exec_command_end patch_apply_end dynamic_tool_call_response".split())
"""What is shown of a call that stands in the file anyway, unless it was made from within another call."""

_EXIT: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_HEAD_ENDS: Final = re.compile(r"^Output:$", re.MULTILINE)

_COPIED: Final = "a call or result copied from the session that this one began with"
_NESTED: Final = "a tool's call from within another call"


def recognises(value: Any) -> bool:
    """Whether a line's value is one of such a session."""
    return isinstance(value, dict) and value.get("type") in _TYPES and isinstance(value.get("payload"), dict)


def read(rows: Rows) -> Iterator[Item]:
    """Return the events of each session: a session is one run. Forks and sub-agents have the run that began them.

    Their files begin with a copy of that run's history, which is left out where it can be told from their own.
    """
    session: _Session | None = None
    for row in rows:
        if not isinstance(row, Row):
            yield row
            continue
        value = row.value
        if not isinstance(value, dict) or not isinstance(value.get("payload"), dict):
            yield BadLine(row.line, "a line must be an object with a `type` and a `payload`")
        elif value.get("type") == "session_meta" and (session is None or not session.continues(value["payload"])):
            mistake = _mistake(value["payload"].get("id"))
            session = _Session(value["payload"]) if mistake is None else None
            if mistake is not None:
                yield BadLine(row.line, f"{mistake}: this session is left out")
        elif session is not None:
            yield from session.items(row.line, value)
        else:
            yield BadLine(row.line, "a session must begin with a session_meta that has an id")


def _mistake(session_id: Any) -> str | None:
    if not isinstance(session_id, str) or not session_id:
        return f"session_meta: id: must be text that is not empty, got {session_id!r:.60}"
    if len(session_id.encode()) > MAX_NAME_BYTES:
        return f"session_meta: id: must be at most {MAX_NAME_BYTES} bytes, got {len(session_id.encode())}"
    return None


class _Session:
    """One session as its lines are read."""

    def __init__(self, meta: dict[str, Any]) -> None:
        self._id: str = meta["id"]
        self._parent = _began_from(meta)
        self._known = {self._id, self._parent}
        self._run = CallsOfRun(self._id, self._id, self._parent)
        self._turn: Any = None
        self._compacted_as: set[str] = set()
        """How the newest compaction was told, until the next call: it is told twice."""

    def continues(self, meta: dict[str, Any]) -> bool:
        """Whether the meta data are this session's once more, or a copy of its ancestors'."""
        if meta.get("id") not in self._known:
            return False
        self._known.add(_began_from(meta))
        return True

    def items(self, line: int, value: dict[str, Any]) -> Iterator[Item]:
        kind, payload = value.get("type"), value["payload"]
        told = payload.get("type")
        ts = milliseconds(value.get("timestamp"))
        if isinstance(payload.get("turn_id"), str):
            self._turn = payload["turn_id"]
        if kind == "response_item":
            yield from self._response(line, ts, payload)
        elif kind == "compacted" or (kind, told) == ("event_msg", "context_compacted"):
            yield from self._compaction(line, ts, str(kind), value)
        elif kind == "event_msg":
            if told in _ABOUT_CALLS and not self._run.has(payload.get("call_id")):
                yield LeftOut(line, f"{_NESTED}: {told}")
        elif kind not in _NO_EVENTS and kind != "session_meta":
            yield LeftOut(line, f"a line of type {kind!r:.60}")

    def _response(self, line: int, ts: int | None, item: dict[str, Any]) -> Iterator[Item]:
        kind = item.get("type")
        if kind in _CALLS or kind in _RESULTS:
            if self._is_copied(item):
                yield LeftOut(line, _COPIED)
            elif kind in _RESULTS:
                yield from self._run.result(line, ts, item.get("call_id"), _outcome(item.get("output")))
            elif isinstance(item.get("name"), str) or kind == "local_shell_call":
                self._compacted_as.clear()
                yield from self._run.call(line, ts, item.get("call_id"), *_called(item))
            else:
                yield LeftOut(line, "a tool call without a name")
        elif kind not in _NO_CALLS:
            yield LeftOut(line, f"a response_item of type {kind!r:.60}")

    def _compaction(self, line: int, ts: int | None, told_as: str, value: dict[str, Any]) -> Iterator[Item]:
        if self._compacted_as and told_as not in self._compacted_as:
            self._compacted_as.add(told_as)
            return
        self._compacted_as = {told_as}
        if self._parent is not None and self._is_copied({}):
            yield LeftOut(line, _COPIED)
            return
        place = value["payload"].get("window_id")
        yield from self._run.compaction(line, ts, place if isinstance(place, str) else f"line-{line}")

    def _is_copied(self, item: dict[str, Any]) -> bool:
        """Whether an item belongs to a turn that is older than the session. (Ids of version 7 sort by their time.)"""
        if self._parent is None:
            return False
        about = item.get("internal_chat_message_metadata_passthrough")
        turn = about.get("turn_id", self._turn) if isinstance(about, dict) else self._turn
        return _is_version_7(turn) and _is_version_7(self._id) and turn < self._id


def _began_from(meta: dict[str, Any]) -> str | None:
    """The session whose history a session's file begins with, or that began it."""
    source = meta.get("source")
    agent = source.get("subagent") if isinstance(source, dict) else None
    spawned = agent.get("thread_spawn") if isinstance(agent, dict) else None
    spawned_by = spawned.get("parent_thread_id") if isinstance(spawned, dict) else None
    for parent in (spawned_by, meta.get("parent_thread_id"), meta.get("forked_from_id")):
        if isinstance(parent, str) and _mistake(parent) is None and parent != meta.get("id"):
            return parent
    return None


def _is_version_7(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 36 and text[14] == "7"


def _called(item: dict[str, Any]) -> tuple[str, Any]:
    if item["type"] == "local_shell_call":
        return "local_shell", item.get("action")
    if item["type"] == "custom_tool_call":
        return item["name"], item.get("input")
    arguments = item.get("arguments")
    try:
        return item["name"], orjson.loads(arguments) if isinstance(arguments, str) else arguments
    except orjson.JSONDecodeError:
        return item["name"], arguments


def _outcome(output: Any) -> Outcome:
    exit_code, failed = None, False
    if isinstance(output, str) and output.startswith("{"):
        output, exit_code = _unpacked(output)
    if isinstance(output, dict):
        failed = output.get("success") is False
        output = output.get("content", output.get("body"))
    parts = [{"text": output}] if isinstance(output, str) else output
    parts = parts if isinstance(parts, list) else []
    texts = [part["text"] for part in parts if _is_text(part)]
    others = [part for part in parts if not _is_text(part)]
    if exit_code is None and texts:
        end = _HEAD_ENDS.search(texts[0])
        found = _EXIT.search(texts[0], 0, end.start() if end is not None else len(texts[0]))
        exit_code = int(found[1]) if found is not None else None
    texts = [without(VOLATILE, text) for text in texts]
    if failed or exit_code not in (None, 0):
        return Outcome(error="\n".join(texts))
    return Outcome(texts, None, others)


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)


def _unpacked(output: str) -> tuple[Any, int | None]:
    """What stands in an output that is JSON text itself: {"output", "metadata": {"exit_code"}}."""
    try:
        value = orjson.loads(output)
    except orjson.JSONDecodeError:
        return output, None
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(value.get("output"), str):
        return output, None
    exit_code = metadata.get("exit_code")
    text = value["output"] if exit_code in (None, 0) else f"{value['output']}\n(exit code {exit_code})"
    return text, exit_code if isinstance(exit_code, int) else None

"""Session files of Claude Code: `~/.claude/projects/<project>/<session>.jsonl`, and its sub-agents' beside it.

{"type": "assistant" | "user" | "system" | ..., "sessionId", "uuid", "parentUuid", "timestamp", "isSidechain",
"agentId", "message": {"content": [...]}}: calls are `tool_use` parts, results `tool_result` parts of a user's message,
a compaction is a system line with the subtype `compact_boundary`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from loopwarden.importers.calls_of_run import CallsOfRun, Outcome
from loopwarden.importers.items import BadLine, Item, LeftOut
from loopwarden.importers.rows import Row, Rows
from loopwarden.importers.times import milliseconds
from loopwarden.importers.volatile import Volatile, without
from loopwarden_schemas.events import MAX_NAME_BYTES

VOLATILE: Final[Volatile] = (
    # BashOutput says when it looked.
    re.compile(r"\n*<timestamp>[^<]*</timestamp>"),
    # A sub-agent's answer ends with its id and what it cost.
    re.compile(r"\n*agentId: \w+ \([^)\n]*\)"),
    re.compile(r"\n*<usage>[^<]*</usage>"),
)

_NO_EVENTS: Final = tuple(
    "summary file-history-snapshot file-history-delta queue-operation attachment last-prompt permission-mode ai-title"
    " custom-title agent-name agent-color agent-setting tag mode pr-link worktree-state speculation-accept"
    " content-replacement bridge-session".split()
)
_SYSTEM_NO_EVENTS: Final = tuple(
    "stop_hook_summary turn_duration local_command microcompact_boundary informational api_error away_summary"
    " bridge_status scheduled_task_fire memory_saved agents_killed permission_retry file_snapshot api_metrics".split()
)
_NO_CALL_PARTS: Final = tuple("text thinking redacted_thinking image document fallback".split())
_SUB_AGENT_SEEN: Final = "a sub-agent's message as its parent saw it: its own file has it"


def recognises(value: Any) -> bool:
    """Whether a line's value is one of such a session."""
    if not isinstance(value, dict) or "messages" in value or "projectHash" in value:
        return False
    return ("sessionId" in value and ("uuid" in value or isinstance(value.get("type"), str))) or (
        value.get("type") in ("summary", "file-history-snapshot", "queue-operation")
    )


def read(rows: Rows) -> Iterator[Item]:
    """Return the events of each session: a session is one run, and each of its sub-agents another, below it.

    A sub-agent's run is named after the session and the agent. A call that is asked for again and again in the file,
    as a message grows, is one call.
    """
    session = _Sessions()
    for row in rows:
        if not isinstance(row, Row):
            yield row
        elif not isinstance(row.value, dict) or not isinstance(row.value.get("type"), str):
            yield BadLine(row.line, "a line must be an object with a `type`")
        else:
            yield from session.items(row.line, row.value)


class _Sessions:
    """The runs that a file's lines belong to."""

    def __init__(self) -> None:
        self._runs: dict[str, CallsOfRun] = {}
        self._roots: dict[str, str] = {}
        """The first line of the branch that a sub-agent's line belongs to, where lines do not name the agent."""

    def items(self, line: int, value: dict[str, Any]) -> Iterator[Item]:
        kind, message = value["type"], value.get("message")
        if kind in ("assistant", "user") and isinstance(message, dict):
            yield from self._message(line, value, message)
        elif kind == "system" and value.get("subtype") == "compact_boundary":
            run = self._run(value)
            if isinstance(run, str):
                yield BadLine(line, run)
                return
            about = value.get("compactMetadata")
            manual = isinstance(about, dict) and about.get("trigger") == "manual"
            place = value.get("uuid") if isinstance(value.get("uuid"), str) else f"line-{line}"
            yield from run.compaction(line, milliseconds(value.get("timestamp")), str(place), manual)
        elif kind == "system":
            if value.get("subtype") not in _SYSTEM_NO_EVENTS:
                yield LeftOut(line, f"a system line of subtype {value.get('subtype')!r:.60}")
        elif kind == "progress":
            data = value.get("data")
            if isinstance(data, dict) and data.get("type") == "agent_progress":
                yield LeftOut(line, _SUB_AGENT_SEEN)
        elif kind not in _NO_EVENTS:
            yield LeftOut(line, f"a line of type {kind!r:.60}")

    def _message(self, line: int, value: dict[str, Any], message: dict[str, Any]) -> Iterator[Item]:
        content = message.get("content")
        run = self._run(value)
        if isinstance(run, str):
            yield BadLine(line, run)
            return
        ts = milliseconds(value.get("timestamp"))
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, dict) else None
            if kind == "tool_use" and isinstance(part.get("name"), str):
                yield from run.call(line, ts, part.get("id"), part["name"], part.get("input"))
            elif kind == "tool_result":
                yield from run.result(line, ts, part.get("tool_use_id"), _outcome(part))
            elif kind not in _NO_CALL_PARTS:
                yield LeftOut(line, f"a part of type {kind!r:.60} in a message")

    def _run(self, value: dict[str, Any]) -> CallsOfRun | str:
        """The run that a line belongs to, or what is wrong with its session."""
        session = value.get("sessionId")
        if not isinstance(session, str) or not session:
            return f"sessionId: must be text that is not empty, got {session!r:.60}"
        run_id, parent = session, None
        if value.get("isSidechain") is True:
            run_id, parent = f"{session}/{self._agent(value)}", session
        if len(run_id.encode()) > MAX_NAME_BYTES:
            return f"sessionId: must be at most {MAX_NAME_BYTES} bytes with its agent's id, got {len(run_id.encode())}"
        if run_id not in self._runs:
            self._runs[run_id] = CallsOfRun(run_id, session, parent)
        return self._runs[run_id]

    def _agent(self, value: dict[str, Any]) -> str:
        if isinstance(value.get("agentId"), str):
            return str(value["agentId"])
        uuid, parent = str(value.get("uuid")), str(value.get("parentUuid"))
        return self._roots.setdefault(uuid, self._roots.get(parent, uuid))


def _outcome(result: dict[str, Any]) -> Outcome:
    content = result.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts = parts if isinstance(parts, list) else []
    texts = [without(VOLATILE, part["text"]) for part in parts if _is_text(part)]
    if result.get("is_error") is True:
        return Outcome(error="\n".join(texts))
    return Outcome(texts, None, [part for part in parts if not _is_text(part)])


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)

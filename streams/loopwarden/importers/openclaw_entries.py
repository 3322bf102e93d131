"""One entry of an OpenClaw or pi session: what of it matters to a run, so that the prose need not be kept."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from loopwarden.importers.times import milliseconds

ROOT: Final = ""
"""The parent of an entry that has none: `parentId` is null. (An entry's own id is never empty.)"""

_NO_EVENTS: Final = tuple(
    "model_change thinking_level_change custom custom_message label session_info branch_summary context_transform"
    " ephemeral".split()
)
# `bashExecution` is a command that a person ran: no call of the agent.
_NO_CALLS: Final = tuple("user system custom hookMessage bashExecution branchSummary compactionSummary".split())
_NO_CALL_PARTS: Final = tuple("text thinking redacted_thinking image".split())


class Called(NamedTuple):
    """A tool call in an assistant's message; `position` is its place among the message's parts."""

    call_id: str | None
    tool: str
    args: Any
    position: int


class Returned(NamedTuple):
    """A tool's result: `outcome` holds what `tool_call.finished` says of it; or the call was refused."""

    call_id: str
    tool: str | None
    outcome: dict[str, Any]
    refused: bool


class Compacted(NamedTuple):
    """The context was compacted."""


Part: TypeAlias = Called | Returned | Compacted


class Entry(NamedTuple):
    """One entry. `parent` None: it does not say (version 1); `ROOT`: it has none. `ts` in ms, None: it does not say."""

    line: int
    id: str | None
    parent: str | None
    ts: int | None
    parts: list[Part]


def entry_of(line: int, value: dict[str, Any]) -> tuple[Entry, list[str]]:
    """Return the entry that a line holds, and what in it is not understood."""
    unknown: list[str] = []
    parts: list[Part] = []
    message = value.get("message")
    if value["type"] == "compaction":
        parts.append(Compacted())
    elif value["type"] == "message" and isinstance(message, dict):
        parts = _parts(message, unknown)
    elif value["type"] not in _NO_EVENTS:
        unknown.append(f"an entry of type {value['type']!r:.60}")
    ts = milliseconds(value.get("timestamp"))
    if ts is None and isinstance(message, dict):
        ts = milliseconds(message.get("timestamp"))
    return Entry(line, _text(value.get("id")), _parent(value), ts, parts), unknown


def _parent(value: dict[str, Any]) -> str | None:
    if "parentId" not in value or value.get("id") is None:
        return None
    return _text(value["parentId"]) or ROOT


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _parts(message: dict[str, Any], unknown: list[str]) -> list[Part]:
    role = message.get("role")
    if role == "assistant":
        return _calls(message.get("content"), unknown)
    if role == "toolResult":
        if isinstance(message.get("toolCallId"), str):
            return [_returned(message)]
        unknown.append("a result without toolCallId")
    elif role not in _NO_CALLS:
        unknown.append(f"a message with role {role!r:.60}")
    return []


def _calls(content: Any, unknown: list[str]) -> list[Part]:
    calls: list[Part] = []
    for index, part in enumerate(content if isinstance(content, list) else ()):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "toolCall" and isinstance(part.get("name"), str):
            calls.append(Called(_text(part.get("id")), part["name"], part.get("arguments"), index))
        elif kind == "toolCall":
            unknown.append("a tool call without a name")
        elif kind not in _NO_CALL_PARTS:
            unknown.append(f"a part of type {kind!r:.60} in an assistant's message")
    return calls


def _returned(result: dict[str, Any]) -> Returned:
    content, details = result.get("content"), result.get("details")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    refused = (
        isinstance(details, dict) and details.get("status") == "blocked" and details.get("deniedReason") == "tool-loop"
    )
    outcome: dict[str, Any]
    if result.get("isError") is True:
        outcome = {"error": _error_text(content)}
    else:
        outcome = {"result": {"content": content, **({} if details is None else {"details": details})}}
    return Returned(result["toolCallId"], _text(result.get("toolName")), outcome, refused)


def _error_text(content: Any) -> str:
    texts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))

"""What is hashed, and how: XXH3-128 (seed 0, lower-case hex) of canonical JSON. (`reference/hashing.md`.)

The gateway and the judge use this one module, so that hashes sent instead of payloads give the same verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from xxhash import xxh3_64_intdigest, xxh3_128_hexdigest

from loopwarden_schemas.canonical import MAX_NESTING, NotCanonical, canonical

CHANNELS: Final = frozenset(
    (
        "telegram whatsapp discord slack signal imessage msteams googlechat mattermost matrix feishu line irc nostr "
        "zalo"
    ).split()
)
"""Tools named after a channel: with a non-empty string `to` in their arguments they are outbound sends. (design.md.)"""

SEND_ACTIONS: Final = frozenset(
    "send broadcast reply thread-reply sendWithEffect sendAttachment upload-file sticker poll".split()
)
"""Actions of the tool `message` that are outbound sends. (Reference, section 3.2.)"""

VOLATILE_KEYS: Final = frozenset(
    (
        "messageId message_id messageIds platformMessageId platformMessageIds fileId file_id fileKey pollId poll_id "
        "receipt runId idempotencyKey ts timestamp sentAt deliveredAt createdAt"
    ).split()
)
"""What a send answers anew each time and says nothing of progress. (Reference, section 3.2.)"""

MAX_KEPT_ID_BYTES: Final = 64
"""Longer ids are kept as their hash. (design.md, limits.)"""

# White space and line ends as ECMAScript's trim() knows them: U+FEFF is one, U+0085 and U+001C to U+001F are not.
_ECMASCRIPT_SPACE = (
    "\t\n\v\f\r \u00a0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_TOOL_ALIASES = {"": "tool", "bash": "exec", "apply-patch": "apply_patch"}
_UNKNOWN_TOOL = re.compile(
    r"""\bunknown\s+tool[:\s]+["'`]?([a-z0-9_.-]+)|\btool\s+["'`]?([a-z0-9_.-]+)["'`]?\s+(?:not\s+found|is\s+not\s+available)""",
    re.IGNORECASE,
)


def digest(value: Any) -> str:
    """Return the hash of a value: XXH3-128 of its canonical JSON, 32 hexadecimal digits.

    Raises:
        NotCanonical: the value has no canonical JSON.
    """
    return xxh3_128_hexdigest(canonical(value))


@lru_cache(maxsize=4096)
def normalise_tool(name: str) -> str:
    """Return a tool's name as every rule sees it: trimmed, lower-cased, aliases replaced. (Reference, section 1.)"""
    name = name.strip(_ECMASCRIPT_SPACE).lower()
    return _TOOL_ALIASES.get(name, name)


def is_known_poll(tool: str, args: Any) -> bool:
    """Whether a call only asks for news: `command_status`, or `process` with action poll or log. (Section 6.)"""
    if tool == "process":
        return type(args) is dict and args.get("action") in ("poll", "log")
    return tool == "command_status"


def unknown_tool_of(error_text: str) -> str | None:
    """Return the tool's name (lower case) where an error says that there is no such tool, else None. (Section 6.1.)"""
    found = _UNKNOWN_TOOL.search(error_text)
    return (found[1] or found[2]).lower() if found else None


def error_text(error: Any) -> str:
    """Return what of an error is hashed: its message, or its name when that is empty; text as it is; else its JSON."""
    if type(error) is str:
        return error
    if type(error) is dict:
        message, name = error.get("message"), error.get("name")
        if type(message) is str and message:
            return message
        if type(name) is str and name:
            return name
        if type(message) is str or type(name) is str:
            return ""
    return canonical(error).decode()


def outcome_array(tool: str, args: Any, result: Any) -> list[Any] | None:
    """Return what of a result is hashed, or None where it is no outcome (the runner's own veto).

    Args:
        tool: The normalised name.
        args: The arguments as they came; None also where only their hash is known.
        result: The result; for errors see `error_text`.

    Raises:
        NotCanonical: the details of a send are nested deeper than 64.
    """
    if type(result) is not dict:
        return ["value", result]
    details = result.get("details")
    if type(details) is not dict:
        return ["result", {}, _text(result)]
    status = _string(details.get("status"))
    if status == "blocked" and details.get("deniedReason") == "tool-loop":
        return None
    if tool == "exec" and status in _EXEC:
        return _EXEC[status](details, result)
    if tool == "process" and is_known_poll(tool, args):
        action, fields = args["action"], _PROCESS[args["action"]]
        return [action, *(details.get(field) for field in fields), _text(result)]
    if is_outbound_send(tool, args):
        return ["send", _without_volatile(details)]
    return ["result", details, _text(result)]


def result_digest(tool: str, args: Any, result: Any) -> str | None:
    """Return the `result_hash` of a result (see `outcome_array`), or None where it is no outcome.

    Raises:
        NotCanonical: what is hashed of it has no canonical JSON.
    """
    outcome = outcome_array(tool, args, result)
    return None if outcome is None else digest(outcome)


def error_digest(error: Any) -> tuple[str, str | None]:
    """Return the `result_hash` of an error, and the name (lower case) of the tool which it calls unknown.

    Raises:
        NotCanonical: the error has no canonical JSON.
    """
    text = error_text(error)
    return digest(["error", text]), unknown_tool_of(text)


def is_outbound_send(tool: str, args: Any) -> bool:
    """Whether a call sends a message to somebody. (Reference, section 3.2.)"""
    if tool == "sessions_send":
        return True
    if type(args) is not dict:
        return False
    if tool == "message":
        return _string(args.get("action")) in SEND_ACTIONS
    to = args.get("to") if tool in CHANNELS else None
    return type(to) is str and to != ""


def _string(value: Any) -> str:
    return value if type(value) is str else ""


def _text(result: Mapping[str, Any]) -> str:
    content = result.get("content")
    if type(content) is not list:
        return ""
    parts = []
    for part in content:
        if type(part) is dict:
            text = part.get("text")
            if type(text) is str and type(part.get("type")) is str:
                parts.append(text)
    return "\n".join(parts).strip(_ECMASCRIPT_SPACE)


def _exec_running(details: Mapping[str, Any], result: Mapping[str, Any]) -> list[Any]:
    return ["exec", "running", _string(details.get("tail"))]


def _exec_ended(details: Mapping[str, Any], result: Mapping[str, Any]) -> list[Any]:
    exit_code = details.get("exitCode")
    return [
        "exec",
        details["status"],
        exit_code if type(exit_code) in (int, float) else None,
        details.get("timedOut") is True,
        _string(details.get("aggregated")).strip(_ECMASCRIPT_SPACE) or _text(result),
    ]


def _exec_approval(details: Mapping[str, Any], result: Mapping[str, Any]) -> list[Any]:
    return ["exec", details["status"], *(_string(details.get(f)) for f in ("reason", "host", "command", "warningText"))]


_EXEC = {
    "running": _exec_running,
    "completed": _exec_ended,
    "failed": _exec_ended,
    "approval-pending": _exec_approval,
    "approval-unavailable": _exec_approval,
}
_PROCESS = {
    "poll": ("status", "exitCode", "exitSignal", "aggregated"),
    "log": ("status", "totalLines", "totalChars", "truncated", "exitCode", "exitSignal"),
}


def _without_volatile(value: Any, depth: int = MAX_NESTING) -> Any:
    if depth == 0 and type(value) in (list, dict):
        raise NotCanonical(f"nested deeper than {MAX_NESTING}")
    if type(value) is list:
        return [_without_volatile(item, depth - 1) for item in value]
    if type(value) is not dict:
        return value
    is_message = type(value.get("text")) is str and (
        any(type(value.get(key)) is str for key in ("direction", "senderId", "accountId"))
        or type(value.get("conversation")) is dict
    )
    return {
        key: _without_volatile(item, depth - 1)
        for key, item in value.items()
        if key not in VOLATILE_KEYS and not (is_message and key == "id")
    }


def short_id(text: str) -> str:
    """Return an id as it is kept and shown: itself, or where it is over 64 bytes its XXH3-128."""
    if len(text) <= MAX_KEPT_ID_BYTES and (text.isascii() or len(text.encode()) <= MAX_KEPT_ID_BYTES):
        return text
    return xxh3_128_hexdigest(text.encode())


id_hash: Final = xxh3_64_intdigest
"""`id_hash(utf8, seed=0)`: the 8-byte hash that stands for an id or a name which is only ever compared."""

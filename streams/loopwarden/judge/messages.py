"""What a verdict tells the model, in plain words.

They depend on nothing but the verdict and never quote the arguments: reminders that do feed the loop.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MAX_TOOL_NAME: Final = 64

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9_.-]")

_WARN = {
    "known_poll_no_progress": "`{tool}` was polled {count} times and answered the same each time.",
    "ping_pong": "The last {count} calls alternate between two calls; this one of `{tool}` would go on with it.",
    "generic_repeat": "`{tool}` was called {count} times with the same arguments recently.",
}
_BLOCK = {
    "unknown_tool_repeat": "The last {count} calls asked for `{tool}`, which does not exist.",
    "global_circuit_breaker": "`{tool}` was called {count} times with the same arguments and always returned the same.",
    "known_poll_no_progress": "`{tool}` was polled {count} times and answered the same each time.",
    "ping_pong": "The last {count} calls alternate between two calls that always return the same.",
    "generic_repeat": "`{tool}` was called {count} times with the same arguments and always returned the same.",
}
_ABORT = {
    "compaction_loop_persisted": "The run is ended: after its context was compacted, `{tool}` was called {count} times "
    "with the same arguments and the same result.",
    "block_ignored": "The run is ended: blocked calls were tried {count} times, lastly of `{tool}`.",
    None: "The run is ended by an operator.",
}
_CLEAR = {
    "call": "The block on a call of `{tool}` is lifted.",
    "tool": "The block on the tool `{tool}` is lifted.",
    "run": "The run may go on: an operator released it.",
}
_THEN_WARN = " If it brings nothing new, do something else: try another approach, or say what you are missing."
_THEN_BLOCK = {
    "call": " This call is blocked. Do not try it again: take another approach, or say what you are missing.",
    "tool": " The tool is blocked. Use one of the tools you have been given.",
}


@lru_cache(maxsize=1024)  # The same few tools and counts come again and again.
def message(action: str, detector: str | None, scope: str, tool: str | None, count: int | None) -> str:
    """Return the words of a verdict."""
    name = _NOT_IN_A_NAME.sub("", tool or "")[:MAX_TOOL_NAME] or "tool"
    if action == "clear":
        return _CLEAR[scope].format(tool=name)
    if action == "abort":
        return _ABORT[detector].format(tool=name, count=count)
    if action == "warn":
        return _WARN[detector or ""].format(tool=name, count=count) + _THEN_WARN
    return _BLOCK[detector or ""].format(tool=name, count=count) + _THEN_BLOCK[scope]

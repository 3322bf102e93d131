"""The runs of `loopwarden/recordings`, as scripts for a model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .model_server import Messages, Overflow, Step, ToolCall


def same_call_exec(workspace: Path) -> list[Step]:
    return [ToolCall("exec", {"command": "echo hello"})] * 40


def same_call_read(workspace: Path) -> list[Step]:
    return [_read(workspace, "a.txt")] * 40


def ping_pong(workspace: Path) -> list[Step]:
    return [_read(workspace, "a.txt"), _read(workspace, "b.txt")] * 20


def poll(workspace: Path) -> list[Step]:
    start = ToolCall("exec", {"command": "sleep 60", "background": True})
    # OpenClaw ends only when the command has.
    return [start, *[ToolCall("process", _of_started("poll"))] * 29, ToolCall("process", _of_started("kill"))]


def edit_and_check(workspace: Path) -> list[Step]:
    steps: list[Step] = []
    for number in range(12):
        steps.append(ToolCall("write", {"path": str(workspace / "draft.txt"), "content": f"version {number}\n"}))
        steps.append(ToolCall("exec", {"command": "cat draft.txt"}))
    return steps


def changing_result(workspace: Path) -> list[Step]:
    return [ToolCall("exec", {"command": "date +%N"})] * 24


def loop_across_compaction(workspace: Path) -> list[Step]:
    read = _read(workspace, "a.txt")
    return [*[read] * 6, Overflow(), *[read] * 34]


def _read(workspace: Path, name: str) -> Step:
    return ToolCall("read", {"path": str(workspace / name)})


def _of_started(action: str) -> Callable[[Messages], dict[str, Any]]:
    def args(messages: Messages) -> dict[str, Any]:
        for message in messages:
            found = re.search(r"\(session ([\w-]+), pid", str(message.get("content")))
            if found:
                return {"action": action, "sessionId": found.group(1)}
        raise AssertionError("no command was started")

    return args

"""Hooks of Claude Code, through the sidecar: a command that reads one JSON from stdin, and may answer with one.

    python -m loopwarden.adapters.claude_code settings     # the block for .claude/settings.json

Claude Code waits for this command twice a call, so it costs what Python costs to start and one request: it is run as
`python -I -S claude_code.py` and imports json and socket alone, nothing of ours.

A session is one run, each of its sub-agents another, named as the importer of session files names them. A prompt of
the user's begins a run anew where an abort has ended it. Whatever goes wrong here, Claude Code goes on: it is told by
an exit status of 1 with the reason, which it shows and does not act upon.
"""

from __future__ import annotations

import json
import os
import socket
import sys

DEFAULT_URL = "http://127.0.0.1:9099"
URL_VARIABLE = "LOOPWARDEN_SIDECAR_URL"
TOKEN_VARIABLE = "LOOPWARDEN_SIDECAR_TOKEN"

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "SessionEnd",
)

USAGE = """\
usage: python -m loopwarden.adapters.claude_code settings [--certain SECONDS]

Prints the hooks to put into .claude/settings.json. Without `settings` it is such a hook: it reads one JSON from stdin,
and tells the sidecar. --certain: wait at most so long until what was sent before is judged; above 0."""

VOLATILE = ("durationMs", "durationSeconds", "totalDurationMs", "totalTokens", "usage", "agentId", "timestamp")
"""What Claude Code adds to a tool's response that differs each time though the tool answered the same."""

_TIMEOUT_S = 2.0
_HOOK_TIMEOUT_S = 10

JsonObject = dict[str, object]


class SidecarAway(Exception):
    """Nobody answers there; the call goes on."""


class SidecarRefused(Exception):
    """The sidecar did not take the request; the call goes on, and the user should know why."""


def main(arguments: list[str]) -> int:
    """Answer one hook, or print the settings; return the exit status."""
    rest = arguments[1:] if arguments[:1] == ["settings"] else arguments
    try:
        certain = float(rest[1]) if rest[:1] == ["--certain"] and len(rest) == 2 else 0.0
        if rest and not certain > 0:
            raise ValueError
    except ValueError:
        # Else a person who asks for help would wait for a hook on stdin.
        asked = rest in (["-h"], ["--help"])
        print(USAGE, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 1
    if arguments[:1] == ["settings"]:
        print(json.dumps(settings(certain), indent=2))
        return 0
    try:
        hook = json.load(sys.stdin)
        answer = answered(hook, certain)
    except SidecarAway as error:
        # Said once a session: with every call it would bury what the agent does.
        print(f"loopwarden: {error}; calls are not watched", file=sys.stderr)
        return 1 if hook["hook_event_name"] == "SessionStart" else 0
    except SidecarRefused as error:
        print(f"loopwarden: {error}", file=sys.stderr)
        return 1
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"loopwarden: stdin must hold a hook's JSON of Claude Code: {error!r}", file=sys.stderr)
        return 1
    if answer is not None:
        print(json.dumps(answer))
    return 0


def settings(certain: float = 0.0) -> JsonObject:
    """Return the `hooks` for settings.json, which call this file with this Python."""
    command = f'"{sys.executable}" -I -S "{os.path.abspath(__file__)}"'  # noqa: PTH100 - pathlib costs 10 ms
    if certain:
        command += f" --certain {certain:g}"
    hook = {"type": "command", "command": command, "timeout": _HOOK_TIMEOUT_S}
    return {"hooks": {event: [{"hooks": [hook]}] for event in EVENTS}}


def answered(hook: JsonObject, certain: float = 0.0) -> JsonObject | None:
    """Tell the sidecar what a hook says; return what Claude Code is to be told, if anything.

    Raises:
        SidecarAway, SidecarRefused: it could not be told.
    """
    kind = hook["hook_event_name"]
    run = {"run_id": hook["session_id"], "session_id": hook["session_id"]}
    if hook.get("agent_id"):
        run["run_id"] = f"{hook['session_id']}/{hook['agent_id']}"
    if kind in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
        call = {**run, "tool": hook["tool_name"], "args": hook.get("tool_input"), "call_id": hook.get("tool_use_id")}
        if certain:
            call["certain"] = certain
        return _before(call) if kind == "PreToolUse" else _after(str(kind), hook, call)
    event = _event(str(kind), hook, run)
    if event is not None:
        post("/v1/events", {**run, **event}, _TIMEOUT_S)
    return None


def _before(call: JsonObject) -> JsonObject | None:
    answer = post("/v1/calls/before", call, _waiting(call))
    if answer["action"] in ("allow", "warn"):
        return None  # a warning comes with the result, and permissions stay the user's business
    refusal: JsonObject = {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": answer["message"],
        }
    }
    if answer["action"] == "abort":
        refusal.update({"continue": False, "stopReason": answer["message"]})
    return refusal


def _after(kind: str, hook: JsonObject, call: JsonObject) -> JsonObject | None:
    if kind == "PostToolUseFailure":
        call["error"] = hook.get("error")
    elif "tool_response" in hook:
        response = hook["tool_response"]
        if isinstance(response, dict):
            response = {name: value for name, value in response.items() if name not in VOLATILE}
        call["result"] = response
    if not call["call_id"]:
        # Without an id the sidecar cannot know the call; the outcome finds it by its arguments. (design.md, "Events".)
        del call["call_id"]
        call.pop("certain", None)
        post("/v1/events", {"type": "tool_call.finished", **call}, _TIMEOUT_S)
        return None
    note = post("/v1/calls/after", call, _waiting(call))["note"]
    return None if note is None else {"hookSpecificOutput": {"hookEventName": kind, "additionalContext": note}}


def _event(kind: str, hook: JsonObject, run: JsonObject) -> JsonObject | None:
    if kind in ("SessionStart", "UserPromptSubmit"):
        return {"type": "run.started", "cause": hook.get("source", "prompt")}
    if kind == "SubagentStart":
        return {"type": "run.started", "cause": hook.get("agent_type"), "parent_run_id": run["session_id"]}
    if kind == "PostCompact":
        trigger = "manual" if hook.get("trigger") == "manual" else "overflow"
        return {"type": "compaction", "trigger": trigger, "succeeded": True}
    if kind in ("SubagentStop", "SessionEnd"):
        return {"type": "run.finished", "reason": hook.get("reason", "done")}
    return None


def _waiting(call: JsonObject) -> float:
    certain = call.get("certain", 0.0)
    return _TIMEOUT_S + (certain if isinstance(certain, float) else 0.0)


def post(path: str, body: JsonObject, timeout: float) -> JsonObject:
    """Send a request to the sidecar; return its answer.

    Raises:
        SidecarAway: it does not answer.
        SidecarRefused: it did not take the request.
    """
    url = os.environ.get(URL_VARIABLE) or DEFAULT_URL
    content = json.dumps({name: value for name, value in body.items() if value is not None or name in _NULLS}).encode()
    token = os.environ.get(TOKEN_VARIABLE)
    head = [f"POST {path} HTTP/1.1", f"Host: {_host(url)}", "Content-Type: application/json", "Connection: close"]
    head += [f"Content-Length: {len(content)}", *([f"Authorization: Bearer {token}"] if token else ())]
    try:
        with _connected(url, timeout) as connection:
            connection.sendall("\r\n".join([*head, "", ""]).encode() + content)
            response = b"".join(iter(lambda: connection.recv(65536), b""))
    except OSError as error:
        raise SidecarAway(f"no sidecar answers at {url} (`loopwarden sidecar` starts one): {error}") from None
    first, _, rest = response.partition(b"\r\n")
    status = first.split(b" ")[1:2]
    try:
        answer = json.loads(rest.partition(b"\r\n\r\n")[2])
    except ValueError:
        raise SidecarRefused(f"what answers at {url} is no sidecar") from None
    if status not in ([b"200"], [b"202"]) or not isinstance(answer, dict):
        said = answer.get("error") if isinstance(answer, dict) else answer
        raise SidecarRefused(f"the sidecar at {url} did not take {path}: {said}")
    return answer


_NULLS = ("args", "result", "error")


def _host(url: str) -> str:
    return "localhost" if url.startswith("unix:") else url.partition("://")[2].rstrip("/")


def _connected(url: str, timeout: float) -> socket.socket:
    if url.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        connection.connect(url.removeprefix("unix:"))
        return connection
    host, _, port = _host(url).rpartition(":")
    if not port.isdigit():
        raise SidecarRefused(f"{URL_VARIABLE}: must be http://HOST:PORT or unix:PATH, got {url!r}")
    return socket.create_connection((host.strip("[]"), int(port)), timeout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

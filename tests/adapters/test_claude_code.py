"""The hooks' command as Claude Code runs it: a process for each, with the JSON that its documentation shows."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import events_of

PAGE = Path(__file__).parents[2] / "docs" / "adapters" / "claude-code.md"
COMMON = {"transcript_path": "/home/ada/.claude/projects/x/s1.jsonl", "cwd": "/x"}
CERTAIN = ("--certain", "30")


class ClaudeCode:
    """What of Claude Code runs the hooks: the commands of its settings."""

    def __init__(self, url: str, *arguments: str, **environment: str) -> None:
        self.session_id = secrets.token_hex(8)
        self.environment = {**os.environ, "LOOPWARDEN_SIDECAR_URL": url, **environment}
        self.settings = json.loads(
            self.shell(f"{sys.executable} -m loopwarden.adapters.claude_code settings", arguments)
        )

    def shell(self, command: str, arguments: tuple[str, ...]) -> str:
        done = subprocess.run(
            [*shlex.split(command), *arguments], capture_output=True, env=self.environment, check=True
        )
        return done.stdout.decode()

    def run_hook(self, kind: str, **fields: Any) -> subprocess.CompletedProcess[str]:
        (group,) = self.settings["hooks"][kind]
        (hook,) = group["hooks"]
        given = json.dumps({**COMMON, "session_id": self.session_id, "hook_event_name": kind, **fields})
        return subprocess.run(
            hook["command"], shell=True, input=given, capture_output=True, text=True, env=self.environment, timeout=60
        )

    def hook(self, kind: str, **fields: Any) -> Any:
        """What a hook answers; None: nothing."""
        done = self.run_hook(kind, **fields)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout) if done.stdout else None

    def read(self, number: int, milliseconds: int = 3, **fields: Any) -> tuple[Any, Any]:
        """A call that always reads the same; what its two hooks answer."""
        call = {"tool_name": "Read", "tool_input": {"file_path": "/x"}, "tool_use_id": f"toolu_{number}", **fields}
        before = self.hook("PreToolUse", **call)
        if before is not None:
            return before, None
        response = {"type": "text", "file": {"content": "same"}, "durationMs": milliseconds}
        return None, self.hook("PostToolUse", **call, tool_response=response)


def test_a_loop_is_warned_about_in_its_context_then_denied_and_a_compaction_reaches_the_log(
    sidecar: Any, judging: Any
) -> None:
    claude = ClaudeCode(sidecar.place, *CERTAIN)
    assert claude.hook("SessionStart", source="startup") is None
    assert claude.hook("UserPromptSubmit", prompt="read it") is None
    told = [claude.read(number, milliseconds=number) for number in range(5)]
    assert told[0] == told[1] == (None, None)
    note = told[2][1]["hookSpecificOutput"]
    assert note["hookEventName"] == "PostToolUse" and "was called 2 times" in note["additionalContext"]
    denied = told[4][0]["hookSpecificOutput"]
    assert denied["permissionDecision"] == "deny"
    assert "This call is blocked" in denied["permissionDecisionReason"]
    assert "continue" not in told[4][0]

    failing = {"tool_name": "Bash", "tool_input": {"command": "false"}, "tool_use_id": "toolu_f"}
    assert claude.hook("PreToolUse", **failing) is None
    assert claude.hook("PostToolUseFailure", **failing, error="Exit code 1", is_interrupt=False) is None
    assert claude.hook("PostCompact", trigger="auto", compact_summary="...") is None
    assert claude.hook("SessionEnd", reason="logout") is None

    assert sidecar.stop() == 0
    events = [event for event in events_of(judging) if event.run_id == claude.session_id]
    assert [type(event).__name__ for event in events] == [
        *["RunStarted"] * 2,
        *["ToolCallStarted", "ToolCallFinished"] * 4,
        "ToolCallBlocked",
        "ToolCallStarted",
        "ToolCallFinished",
        "Compaction",
        "RunFinished",
    ]
    assert "durationMs" not in events[3].result
    assert events[12].error == "Exit code 1"
    assert (events[13].trigger, events[13].succeeded) == ("overflow", True)


def test_an_abort_stops_the_agent_and_the_users_next_prompt_begins_anew(sidecar: Any) -> None:
    claude = ClaudeCode(sidecar.place, *CERTAIN)
    claude.hook("SessionStart", source="startup")
    claude.hook("PostCompact", trigger="auto", compact_summary="...")
    told = [claude.read(number) for number in range(4)]
    aborted = told[3][0]
    assert aborted["continue"] is False
    assert aborted["stopReason"].startswith("The run is ended: after its context was compacted")
    claude.hook("UserPromptSubmit", prompt="try something else")
    assert claude.read(9) == (None, None)


def test_a_sub_agent_is_a_run_of_its_own_below_the_session(sidecar: Any, judging: Any) -> None:
    claude = ClaudeCode(sidecar.place, *CERTAIN)
    who = {"agent_id": "a7", "agent_type": "Explore"}
    claude.hook("SubagentStart", **who)
    for number in range(3):
        claude.read(number)
        claude.read(number + 10, **who)
    claude.hook("SubagentStop", **who)
    assert sidecar.stop() == 0
    session, events = claude.session_id, events_of(judging)
    below = [event for event in events if event.run_id == f"{session}/a7"]
    assert below[0].parent_run_id == session
    assert len(below) == 8 and {event.session_id for event in below} == {session}
    assert len([event for event in events if event.run_id == session]) == 6


def test_versions_that_give_a_call_no_id_are_watched_all_the_same(sidecar: Any, judging: Any) -> None:
    claude = ClaudeCode(sidecar.place, *CERTAIN)
    told = [claude.read(number, tool_use_id=None) for number in range(5)]
    assert [before for before, _ in told[:4]] == [None] * 4
    assert told[4][0]["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert sidecar.stop() == 0
    events = [event for event in events_of(judging) if event.run_id == claude.session_id]
    assert [type(event).__name__ for event in events][:8] == ["ToolCallStarted", "ToolCallFinished"] * 4


def test_without_a_sidecar_every_call_goes_on_and_the_user_is_told_once_a_session() -> None:
    claude = ClaudeCode("http://127.0.0.1:9")
    begun = claude.run_hook("SessionStart", source="startup")
    assert begun.returncode == 1 and "no sidecar answers at http://127.0.0.1:9" in begun.stderr
    for kind in ("PreToolUse", "PostToolUse"):
        done = claude.run_hook(kind, tool_name="Read", tool_input={}, tool_use_id="t", tool_response="x")
        assert (done.returncode, done.stdout) == (0, "")


def test_what_the_sidecar_does_not_take_is_said_and_the_call_goes_on(start: Any) -> None:
    sidecar = start("--broker", "127.0.0.1:9", LOOPWARDEN_SIDECAR_TOKEN="secret")
    call = {"tool_name": "Read", "tool_input": {}, "tool_use_id": "t"}
    refused = ClaudeCode(sidecar.place, LOOPWARDEN_SIDECAR_TOKEN="wrong").run_hook("PreToolUse", **call)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "did not take /v1/calls/before" in refused.stderr and "token is needed" in refused.stderr
    # With the right one, and the broker away, the call is allowed without a word.
    assert ClaudeCode(sidecar.place, LOOPWARDEN_SIDECAR_TOKEN="secret").hook("PreToolUse", **call) is None


def test_what_is_no_hook_gets_a_line_and_no_traceback() -> None:
    claude = ClaudeCode("http://127.0.0.1:9")
    (hook,) = claude.settings["hooks"]["PreToolUse"][0]["hooks"]
    for given in ("", "[]", '{"hook_event_name": "PreToolUse"}', "null"):
        done = subprocess.run(hook["command"], shell=True, input=given, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert done.stderr.startswith("loopwarden: stdin must hold a hook's JSON") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code"), [("--help", 0), ("settings --help", 0), ("settings --certain", 1), ("setings", 1)]
)
def test_a_person_who_asks_for_help_or_mistypes_gets_it_and_no_hook_that_waits(arguments: str, code: int) -> None:
    command = [sys.executable, "-m", "loopwarden.adapters.claude_code", *arguments.split()]
    reads, _writes = os.pipe()  # stdin never ends, as on a terminal
    done = subprocess.run(command, stdin=reads, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert "settings [--certain SECONDS]" in (done.stderr if code else done.stdout)


def test_the_command_imports_nothing_of_ours_and_no_package() -> None:
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", hook_file(), "settings"],
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in loaded.splitlines()[1:]}
    assert "json" in names
    assert not names - set(sys.stdlib_module_names) - {"posixpath"}
    assert not names & {"typing", "asyncio", "email", "http", "urllib", "pathlib", "logging"}


def test_the_page_shows_the_settings_that_the_command_prints() -> None:
    (shown,) = re.findall(r"^```json\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    printed = ClaudeCode("").settings["hooks"]
    assert json.loads(shown)["hooks"].keys() == printed.keys()
    commands = re.findall(r"^(python -m .*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert commands == ["python -m loopwarden.adapters.claude_code settings"]


def hook_file() -> str:
    from loopwarden.adapters import claude_code

    return str(claude_code.__file__)

"""Session files that grow while `loopwarden watch-sessions` runs: real files, and a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from kafka import KafkaConsumer

from loopwarden.broker import LocalBroker
from loopwarden_schemas.codec import decode_record
from loopwarden_schemas.structs import EventOfRun
from loopwarden_schemas.topics import Topics

from ...newcomer import ROOT  # noqa: TID252 - tests are no package that could be named
from ...pages import blocks, commands_in  # noqa: TID252

STRICT = "{ tools: { loopDetection: { enabled: true, warningThreshold: 4, criticalThreshold: 8 } } }"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "strict.json5").write_text(STRICT)
    return tmp_path / "strict.json5"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without agents."""
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def claude_code(session: str, numbers: range, tool: str = "Read") -> str:
    """Calls that return the same each time, as Claude Code writes them."""
    lines = []
    for number in numbers:
        head = {"sessionId": session, "timestamp": f"2026-01-01T00:{number:02}:00.000Z", "isSidechain": False}
        use = {"type": "tool_use", "id": f"{session}-{number}", "name": tool, "input": {"file_path": "a"}}
        found = {"type": "tool_result", "tool_use_id": f"{session}-{number}", "content": "the same"}
        lines.append({**head, "uuid": f"c{number}", "type": "assistant", "message": {"content": [use]}})
        lines.append({**head, "uuid": f"r{number}", "type": "user", "message": {"content": [found]}})
    return "".join(json.dumps(line) + "\n" for line in lines)


def codex(session: str, numbers: range) -> str:
    lines: list[dict[str, Any]] = [{"type": "session_meta", "payload": {"id": session}}]
    for number in numbers:
        call = {"type": "function_call", "call_id": f"{number}", "name": "exec_command", "arguments": '{"cmd": "ls"}'}
        output = {"type": "function_call_output", "call_id": f"{number}", "output": f"Chunk ID: a{number}\nOutput:\n"}
        lines += [{"type": "response_item", "payload": payload} for payload in (call, output)]
    return "".join(json.dumps({"timestamp": "2026-01-01T00:00:00Z", **line}) + "\n" for line in lines)


def append(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as stream:
        stream.write(text)


def told(running: Any) -> list[tuple[str, str]]:
    """Run and action of each verdict, with --json."""
    verdicts = [orjson.loads(line) for line in running.out.splitlines()]
    return [(verdict["run_id"], verdict["action"]) for verdict in verdicts]


def test_a_loop_is_told_in_one_line_as_it_is_written(command: Any, policy: Path, tmp_path: Path) -> None:
    file = tmp_path / "sessions" / "project" / "a.jsonl"
    append(file, claude_code("a", range(1)))
    with command("watch-sessions", tmp_path / "sessions", "--policy", policy) as watching:
        watching.wait_for("Ctrl-C ends")
        assert f"{tmp_path / 'sessions'}, 1 file" in watching.err
        # The first three calls and half a line; then the rest.
        text = claude_code("a", range(1, 5))
        append(file, text[:-40])
        append(file, text[-40:])
        watching.wait_for("generic_repeat")
        watching.interrupt()

        assert watching.exit_code() == 0
        [line] = watching.out.splitlines()
        assert "warn" in line
        assert "4/4" in line
        assert "Traceback" not in watching.err
        assert "1 warned about" in watching.err.splitlines()[-1]


def test_what_was_there_counts_but_is_told_only_when_asked_for(command: Any, policy: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    append(folder / "a.jsonl", claude_code("a", range(5)))
    append(folder / "b.jsonl", claude_code("b", range(3)))
    options = (folder, "--policy", policy, "--json")
    with command("watch-sessions", *options) as watching:
        watching.wait_for("Ctrl-C ends")
        append(folder / "a.jsonl", claude_code("a", range(5, 6)))
        # The fifth call is the first that four equal outcomes stand before.
        append(folder / "b.jsonl", claude_code("b", range(3, 5)))
        watching.wait_for('"warn"')
        assert told(watching) == [("b", "warn")]
    with command("watch-sessions", *options, "--from-start") as watching:
        watching.wait_for('"run_id":"b"')
        assert told(watching) == [("a", "warn"), ("b", "warn")]


def test_files_may_come_be_replaced_and_go_and_others_are_passed_over(
    command: Any, policy: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sessions"
    append(folder / "notes.jsonl", '{"note": "no session"}\n' * 200)
    append(folder / "gone.jsonl", claude_code("gone", range(1)))
    with command("watch-sessions", folder, "--policy", policy, "--json", "--verbose") as watching:
        watching.wait_for("Ctrl-C ends")
        (folder / "gone.jsonl").unlink()
        append(folder / "notes.jsonl", '{"note": "still none"}\n')
        append(folder / "new" / "rollout-1.jsonl", codex("new", range(5)))
        watching.wait_for("new")
        watching.wait_for("notes.jsonl: is no file of runs")
        append(tmp_path / "rewritten", codex("new", range(8)))
        (tmp_path / "rewritten").replace(folder / "new" / "rollout-1.jsonl")
        watching.wait_for('"block"')

        assert [verdict for verdict in told(watching) if verdict[1] == "warn"] == [("new", "warn")]
        assert watching.process.poll() is None


@pytest.mark.parametrize("verbose", [False, True])
def test_a_file_that_no_event_is_found_in_is_told_at_the_end(
    command: Any, policy: Path, tmp_path: Path, verbose: bool
) -> None:
    folder = tmp_path / "sessions"
    append(folder / "strange.jsonl", "")
    append(folder / "a.jsonl", claude_code("a", range(1)))
    with command("watch-sessions", folder, "--policy", policy, *["--verbose"] * verbose) as watching:
        watching.wait_for("Ctrl-C ends")
        append(folder / "strange.jsonl", '{"an agent": "of a later version"}\n')
        append(folder / "a.jsonl", claude_code("a", range(1, 5)))
        watching.wait_for("generic_repeat")
        # What is found after that is of a later look at all the files.
        append(folder / "b.jsonl", claude_code("second", range(5)))
        watching.wait_for("second")
        watching.interrupt()

        assert watching.exit_code() == 0
        last = watching.err.splitlines()[-1]
        named = f": {folder / 'strange.jsonl'}" if verbose else ", --verbose names them"
        assert last == f"1 file without an event of a run{named}"


def test_without_folders_the_agents_usual_places_are_watched_under_the_recommended_policy(
    command: Any, home: Path
) -> None:
    append(home / ".codex" / "sessions" / "2026" / "rollout-1.jsonl", codex("old", range(1)))
    with command("watch-sessions") as watching:
        watching.wait_for("Ctrl-C ends")
        assert f"watching Codex: {home / '.codex' / 'sessions'}, 1 file" in watching.err
        assert "the recommended one" in watching.err
        # An agent that is used for the first time.
        append(home / ".claude" / "projects" / "-tmp" / "a.jsonl", claude_code("a", range(11)))
        watching.wait_for("generic_repeat")

        assert "Claude Code" in watching.out
        assert "10/10" in watching.out


def test_the_other_command_of_the_page_judges_what_is_there(run: Callable[..., Any], home: Path) -> None:
    append(home / ".claude" / "projects" / "-tmp" / "a.jsonl", claude_code("a", range(21)))
    page = (ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")

    watching, judging = [command for block in blocks(page, "sh") for command in commands_in(block)]
    ran = run(*(Path(word).expanduser() for word in judging.split()[1:]))

    assert watching == "loopwarden watch-sessions"  # run above
    assert ran.code == 0, ran.err
    assert "1 run, 21 calls: 10 warned about, 1 blocked" in ran.out


def test_where_no_agent_is_it_says_where_it_looked(run: Callable[..., Any], home: Path) -> None:
    ran = run("watch-sessions")

    assert (ran.code, ran.out) == (2, "")
    assert f"Claude Code: {home / '.claude' / 'projects'}" in ran.err
    assert "name the folder" in ran.err


def test_a_folder_that_is_not_there_is_named(run: Callable[..., Any], tmp_path: Path) -> None:
    assert run("watch-sessions", tmp_path / "x") == (2, "", f"loopwarden: {tmp_path / 'x'}: there is no such folder\n")


def test_with_a_broker_what_is_new_is_published(
    command: Any, broker: LocalBroker, topics: Topics, tmp_path: Path
) -> None:
    file = tmp_path / "sessions" / "a.jsonl"
    append(file, claude_code("a", range(2)))
    options = ("--broker", broker.bootstrap_servers, "--prefix", topics.prefix)
    with command("watch-sessions", tmp_path / "sessions", *options) as watching:
        watching.wait_for(f"events go to {topics.events.name}")
        append(file, claude_code("a", range(2, 4)))
        consumer = KafkaConsumer(
            topics.events.name,
            bootstrap_servers=broker.bootstrap_servers,
            auto_offset_reset="earliest",
            consumer_timeout_ms=60_000,
        )
        events = [decode_record(next(consumer).value)[0] for _ in range(4)]
        consumer.close()
        watching.interrupt()
        assert watching.exit_code() == 0

    assert [event.call_id for event in events if isinstance(event, EventOfRun)] == ["a-2", "a-2", "a-3", "a-3"]  # type: ignore[union-attr]


def test_one_file_is_followed_by_judge_as_well(command: Any, policy: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    append(file, claude_code("a", range(2)))
    with command("judge", file, "--policy", policy, "--follow") as judging:
        append(file, claude_code("a", range(2, 5)))
        judging.wait_for("generic_repeat")
        judging.interrupt()

        assert judging.exit_code() == 0
        assert "1 run, 5 calls: 1 warned about" in judging.out


def test_one_file_is_followed_by_import_as_well(command: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    append(file, claude_code("a", range(1)))
    with command("import", "sessions", file, "--follow") as importing:
        importing.wait_for("a-0")
        append(file, claude_code("a", range(1, 2)))
        importing.wait_for("a-1")
        importing.interrupt()

        assert importing.exit_code() == 0
        assert "1 run, 4 events, 2 calls" in importing.err
